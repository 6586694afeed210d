//! Table tests of the rules about devices. [`scene`] explains the words of the tables, [`show`] the lines of decisions.
//! Rows begin with the number of their case in the device reference, where it has one.

use expect_test::Expect;

mod agents;
mod certificates;
mod changes;
mod enrolments;
mod fleets;
mod properties;
mod restores;
pub(in crate::device) mod scene;
mod selections;
mod show;
mod statuses;
mod writes;

use scene::scene;

/// Compares each row of words with the line that `decide` makes of it.
fn check(rows: &[&str], decide: fn(&str) -> String, expected: Expect) {
    let lines: Vec<_> = rows.iter().map(|words| format!("{words}\n    {}\n", decide(words))).collect();
    expected.assert_eq(&lines.concat());
}
