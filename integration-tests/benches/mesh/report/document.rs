//! The report for programs.

use serde_json::{Map, Value, json};

use super::{Outcome, Report, table::verdict};
use crate::targets::{Better, Target};

/// The whole report as JSON.
pub fn document(report: &Report) -> Value {
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
            "better": match target.better { Better::Lower => "lower", Better::Higher => "higher" },
            "floor": target.floor,
            "goal": target.goal,
            "original": target.original.map(|(best, worst)| json!({"best": best, "worst": worst})),
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
    })
}

fn result(target: &Target, outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Left(why) => json!({"not_measured": why}),
        Outcome::Measured(figure) => {
            let (least, median, most) = figure.spread();
            json!({
                "n": figure.count,
                "runs": figure.values.len(),
                "min": least,
                "median": median,
                "max": most,
                "values": figure.values,
                "load": figure.load,
                "verdict": verdict(target, median),
            })
        }
    }
}
