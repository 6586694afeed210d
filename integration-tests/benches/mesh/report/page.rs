//! The page of published results.

use super::{
    Outcome, Report,
    table::{number, original, verdict},
};
use crate::targets::Target;

/// The page, as Markdown.
pub fn page(report: &Report) -> String {
    let host = &report.host;
    let mut page = format!(
        "# Results\n\n\
         Written by `cargo bench -p integration-tests -- --database both --scale full --publish`, which measures\n\
         everything again; do not edit. Figures are medians, with the least and the most of the runs. N is the number of\n\
         components, nodes, watches or decisions of a row.\n\n\
         {date}, commit {commit}, {profile} build, scale {scale}; {cores} x {processor}, {memory:.0} GiB. The load was\n\
         {before} before and {after} after. The mesh, its databases, the systems around it and who measures shared this\n\
         machine. `Original` is BOS 2.50.0 with fake peers on two busy cores.\n\n\
         ![Medians as multiples of their goals](targets.svg)\n\n\
         | row | what | database | median | least to most | N | runs | goal | floor | original | verdict |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
        date = host.date,
        commit = host.commit,
        profile = host.profile,
        scale = report.command.scale.word(),
        cores = host.cores,
        processor = host.processor,
        memory = host.memory,
        before = host.load_before,
        after = host.load_after,
    );
    let mut left = String::new();
    for (target, outcomes) in report.rows() {
        for (database, outcome) in outcomes {
            match outcome {
                Outcome::Measured(_) => page += &row(target, database, outcome),
                Outcome::Left(why) => {
                    left += &format!("- {} ({database}), {}: {why}\n", target.id, target.what);
                }
            }
        }
    }
    if !left.is_empty() {
        page += &format!("\n## Not measured\n\n{left}");
    }
    page
}

fn row(target: &Target, database: &str, outcome: &Outcome) -> String {
    let Outcome::Measured(figure) = outcome else { return String::new() };
    let (least, middle, most) = figure.spread();
    format!(
        "| {} | {} | {database} | {} {} | {} to {} | {} | {} | {} | {} | {} | {} |\n",
        target.id,
        target.what,
        number(middle),
        target.unit,
        number(least),
        number(most),
        number(figure.count as f64),
        figure.values.len(),
        number(target.goal),
        target.floor.map(number).unwrap_or_default(),
        original(target),
        verdict(target, middle),
    )
}
