//! The table for people.

use std::fmt::Write;

use super::{Figure, Outcome, Report};
use crate::targets::Target;

/// One measured row on one database.
pub fn line(target: &Target, database: &str, figure: &Figure) -> String {
    let (least, middle, most) = figure.spread();
    let Target { id, unit, .. } = target;
    let (least, middle, most) = (number(least), number(middle), number(most));
    format!("{id:11} {database:10} {middle:>9} {unit} ({least} to {most}, {} runs)", figure.values.len())
}

/// Every row.
pub fn table(report: &Report) -> String {
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
            table += &row(target, "", &Outcome::Left("not part of this run".to_owned()));
        }
    }
    table
}

fn row(target: &Target, database: &str, outcome: &Outcome) -> String {
    let Target { id, what, unit, goal, .. } = target;
    let mut row = format!("{id:11} {database:10} ");
    // Writing to a text cannot fail.
    let _infallible = match outcome {
        Outcome::Left(why) => writeln!(row, "not measured: {why} ({what})"),
        Outcome::Measured(figure) => {
            let (least, middle, most) = figure.spread();
            writeln!(
                row,
                "{:>9} {:>9} {:>9} {unit:12} {:>4} {:>8} {:>8} {:>12}  {:6}  {what}",
                number(least),
                number(middle),
                number(most),
                figure.values.len(),
                number(*goal),
                target.floor.map(number).unwrap_or_default(),
                original(target),
                verdict(target, middle),
            )
        }
    };
    row
}

/// How a value stands to goal and floor.
pub fn verdict(target: &Target, value: f64) -> &'static str {
    let meets = |bar| target.meets(value, bar);
    match (meets(target.goal), target.floor.map(meets)) {
        (true, _) => "goal",
        (false, Some(true)) => "floor",
        (false, Some(false)) => "MISSED",
        (false, None) => "missed",
    }
}

/// What was measured of the original; empty: nothing.
pub fn original(target: &Target) -> String {
    match target.original {
        None => String::new(),
        Some((best, worst)) if best == worst => number(best),
        Some((best, worst)) => format!("{}-{}", number(best), number(worst)),
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
