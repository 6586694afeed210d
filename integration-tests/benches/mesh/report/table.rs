//! The table for people.

use std::fmt::Write;

use super::{BenchReport, RowOutcome};
use crate::targets::{OriginalFigure, RowTarget};

/// Line of a row on one database, printed as soon as it is measured.
pub fn line(target: &RowTarget, database: &str, outcome: &RowOutcome) -> String {
    let RowTarget { id, unit, .. } = target;
    let mut line = format!("{id:11} {database:10} ");
    if outcome.is_measured() {
        let (least, middle, most) = outcome.spread(target);
        let (least, middle, most) = (number(least), number(middle), number(most));
        let (runs, load) = (outcome.values.len(), outcome.load);
        let verdict = verdict(target, outcome.spread(target).1);
        line += &format!(
            "{middle:>9} {unit} ({least} to {most}, {runs} runs, load {load}), {verdict}, power service: {} ",
            target.power.word()
        );
    }
    if let Some(trouble) = &outcome.trouble {
        line += trouble;
    }
    line
}

/// Every row.
pub fn table(report: &BenchReport) -> String {
    let head = ("row", "database", "least", "median", "most", "unit", "runs", "goal", "floor", "original");
    let (id, database, least, median, most, unit, runs, goal, floor, original) = head;
    let mut table = format!(
        "{id:11} {database:10} {least:>9} {median:>9} {most:>9} {unit:12} {runs:>4} {goal:>8} {floor:>8} {original:>12}\n"
    );
    for (target, outcomes) in report.rows() {
        for (database, outcome) in &outcomes {
            table += &row(target, database, outcome);
        }
        if outcomes.is_empty() {
            table += &format!("{:11} not part of this run ({})\n", target.id, target.what);
        }
    }
    table
}

fn row(target: &RowTarget, database: &str, outcome: &RowOutcome) -> String {
    let RowTarget { id, what, unit, goal, .. } = target;
    let mut row = format!("{id:11} {database:10} ");
    if outcome.is_measured() {
        let (least, middle, most) = outcome.spread(target);
        // Writing to a text cannot fail.
        let _infallible = write!(
            row,
            "{:>9} {:>9} {:>9} {unit:12} {:>4} {:>8} {:>8} {:>12}  {:24}  ",
            number(least),
            number(middle),
            number(most),
            outcome.values.len(),
            number(*goal),
            target.floor.map(number).unwrap_or_default(),
            original(target),
            verdict(target, middle),
        );
    }
    if let Some(trouble) = &outcome.trouble {
        row += &format!("NOT MEASURED: {trouble}; ");
    }
    format!("{row}{what} ({})\n", target.power.word())
}

/// Measurements by duration, longest first.
pub fn times(times: &[(String, f64)]) -> String {
    let mut times = times.to_vec();
    times.sort_by(|one, other| other.1.total_cmp(&one.1));
    // The sum of no numbers is minus zero.
    let sum = times.iter().map(|(_, seconds)| seconds).sum::<f64>().abs();
    let lines = times.iter().map(|(what, seconds)| format!("{seconds:8.1} s  {what}\n"));
    lines.chain([format!("{sum:8.1} s  together\n")]).collect()
}

/// Returns the relation of a value to goal and floor, and the factor by which it misses them.
pub fn verdict(target: &RowTarget, value: f64) -> String {
    let misses = |bar| format!("{}x", number(target.distance(value, bar)));
    if target.meets(value, target.goal) {
        return "goal met".to_owned();
    }
    match target.floor {
        Some(floor) if target.meets(value, floor) => format!("goal missed {}", misses(target.goal)),
        Some(floor) => format!("FLOOR MISSED {}, goal {}", misses(floor), misses(target.goal)),
        None => format!("goal missed {}", misses(target.goal)),
    }
}

/// Returns the figures of the original; empty: there are none to compare with.
pub fn original(target: &RowTarget) -> String {
    match target.original() {
        None => String::new(),
        Some(OriginalFigure { best, worst, .. }) if best == worst => number(best),
        Some(OriginalFigure { best, worst, .. }) => format!("{}-{}", number(best), number(worst)),
    }
}

/// A value with three digits that mean something, and commas between thousands.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        return with_commas(value);
    }
    let decimals = [(100.0, 0), (10.0, 1), (1.0, 2), (0.1, 3)].iter().find(|(from, _)| size >= *from);
    match decimals {
        Some((_, decimals)) => without_zeros(&format!("{value:.decimals$}")),
        None => without_zeros(&format!("{value:.4}")),
    }
}

fn with_commas(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

fn without_zeros(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}
