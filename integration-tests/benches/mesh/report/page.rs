//! The page of published results.

use super::{
    BenchReport, RowOutcome,
    table::{number, original, verdict},
};
use crate::targets::{RowTarget, TypicalFigure};

/// The page, as Markdown.
pub fn page(report: &BenchReport) -> String {
    let (mut rows, mut troubles) = (String::new(), String::new());
    for (target, outcomes) in report.rows() {
        for (database, outcome) in outcomes {
            if outcome.is_measured() {
                rows += &row(target, database, outcome);
            }
            if let Some(trouble) = &outcome.trouble {
                troubles += &format!("- {} ({database}), {}: {trouble}\n", target.id, target.what);
            }
        }
    }
    if !troubles.is_empty() {
        troubles = format!("\n## Not measured\n\n{troubles}");
    }
    format!(
        "{}{}\n\
         ![Medians as multiples of their goals](targets.svg)\n\n\
         | row | what | power service | database | median | least to most | runs | N | goal | verdict | floor | \
         original | load | measured |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n\
         {rows}{troubles}",
        head(report),
        summary(report),
    )
}

fn head(report: &BenchReport) -> String {
    let host = &report.host;
    format!(
        "# Results\n\n\
         Written by `cargo bench -p integration-tests -- --database both --scale full --publish`, which measures\n\
         everything again; do not edit. Figures are medians of as many runs as the column `runs` says, with the least\n\
         and the most of them; rows may be of different days (column `measured`). N is the number of\n\
         components, nodes, callers, watches or decisions of a row; `load` the average load of the minute before its last\n\
         value; `original` BOS 2.50.0 on two busy cores, of hosts what Metal3 has published. `Power service` is what the row was measured with; a figure of the\n\
         original stands beside ours only where its power service had the same timing: a quick one for rows of fleets, PCS\n\
         itself, as shipped, for O12, where ours is the same timing played. `Mean` stands for the median in rows whose\n\
         values depend on when they begin. `Goal missed 2x` is a median twice as bad as the goal.\n\n\
         {date}, commit {commit}, {profile} build, scale {scale}; {cores} x {processor}, {memory:.0} GiB. The load was\n\
         {before} before and {after} after. The mesh, its databases, the systems around it and who measures shared this\n\
         machine. PostgreSQL has its default durability, and SQLite syncs every commit.\n\n",
        date = host.date,
        commit = host.commit,
        profile = host.profile,
        scale = report.command.scale.word(),
        cores = host.cores,
        processor = host.processor,
        memory = host.memory,
        before = host.load_before,
        after = host.load_after,
    )
}

fn summary(report: &BenchReport) -> String {
    let (mut measured, mut met, mut missed) = (0, 0, Vec::new());
    for (target, outcomes) in report.rows() {
        for (database, outcome) in outcomes.into_iter().filter(|(_, outcome)| outcome.is_measured()) {
            let typical = outcome.spread(target).1;
            measured += 1;
            if target.meets(typical, target.goal) {
                met += 1;
            } else {
                let times = number(target.distance(typical, target.goal));
                missed.push(format!("{} on {database} {times}x", target.id));
            }
        }
    }
    let missed = missed.iter().map(|missed| format!("- {missed}\n")).collect::<String>();
    let head = if missed.is_empty() { "" } else { " These miss theirs, by how much:\n\n" };
    format!("{met} of {measured} figures meet their goals.{head}{missed}\n")
}

fn row(target: &RowTarget, database: &str, outcome: &RowOutcome) -> String {
    let (least, middle, most) = outcome.spread(target);
    format!(
        "| {} | {} | {} | {database} | {}{} {} | {} to {} | {} | {} | {} | {} | {} | {} | {} | {} {} |\n",
        target.id,
        target.what,
        target.power.word(),
        if target.typical == TypicalFigure::Mean { "mean " } else { "" },
        number(middle),
        target.unit,
        number(least),
        number(most),
        outcome.values.len(),
        number(outcome.n as f64),
        number(target.goal),
        verdict(target, middle),
        target.floor.map(number).unwrap_or_default(),
        original(target),
        outcome.load,
        outcome.date,
        outcome.commit,
    )
}
