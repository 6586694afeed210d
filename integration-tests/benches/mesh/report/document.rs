//! The report for programs, and for runs that are added to it.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::{BenchReport, DATABASES, Outcomes, RowOutcome, table::verdict};
use crate::targets::{BetterDirection, RowTarget, TARGETS};

/// The whole report as JSON.
pub fn document(report: &BenchReport) -> Value {
    let host = &report.host;
    let rows = report.rows().map(|(target, outcomes)| {
        let results: Map<_, _> = outcomes
            .into_iter()
            .map(|(database, outcome)| (database.to_owned(), result(target, outcome)))
            .collect();
        json!({
            "id": target.id,
            "what": target.what,
            "unit": target.unit,
            "better": match target.better { BetterDirection::Lower => "lower", BetterDirection::Higher => "higher" },
            "floor": target.floor,
            "goal": target.goal,
            "power": target.power.word(),
            "original": target.original().map(|one| json!({"best": one.best, "worst": one.worst})),
            "results": results,
        })
    });
    json!({
        "date": host.date,
        "commit": host.commit,
        "program": report.command.program,
        "profile": host.profile,
        "scale": report.command.scale.word(),
        "machine": {
            "cores": host.cores,
            "processor": host.processor,
            "memory_gib": host.memory,
            "load_before": host.load_before,
            "load_after": host.load_after,
        },
        "rows": rows.collect::<Vec<_>>(),
        "times": report.times,
    })
}

/// An outcome with its derived figures.
fn result(target: &RowTarget, outcome: &RowOutcome) -> Value {
    let mut result = json!(outcome);
    if outcome.is_measured() {
        let (least, typical, most) = outcome.spread(target);
        result["min"] = json!(least);
        result[target.typical.word()] = json!(typical);
        result["max"] = json!(most);
        result["verdict"] = json!(verdict(target, typical));
    }
    result
}

/// The outcomes of a report that was written before. Rows that are no longer measured, or no longer with that power
/// service, are left out.
///
/// # Errors
/// When it is no such report.
pub fn outcomes(text: &str) -> anyhow::Result<Outcomes> {
    let document: Value = serde_json::from_str(text)?;
    let rows = document["rows"].as_array().context("no rows")?;
    let mut outcomes = Outcomes::new();
    for row in rows {
        let Some(target) = TARGETS.iter().find(|target| row["id"] == target.id) else { continue };
        for database in DATABASES {
            if let Some(result) = row["results"].get(database) {
                let outcome: RowOutcome = serde_json::from_value(result.clone())?;
                if outcome.is_of(target) {
                    outcomes.insert((target.id, database), outcome);
                }
            }
        }
    }
    Ok(outcomes)
}
