//! Table tests of the rules about hosts. [`scene`] explains the words of the tables, [`show`] the lines of decisions.

use expect_test::Expect;

mod any;
mod conditions;
mod dispatch;
mod lives;
mod rows;
pub(in crate::host) mod scene;
mod show;
mod waits;

use scene::{MOMENT, scene};
use show::show;

use super::step;

fn decide(words: &str) -> String {
    let scene = scene(words);
    show(&scene.host, &step(&scene.host, &scene.seen, &scene.policy, MOMENT))
}

/// Compares each row of words with the decision about its scene.
fn check(rows: &[&str], expected: Expect) {
    let lines: Vec<_> = rows.iter().map(|words| format!("{words}\n    {}\n", decide(words))).collect();
    expected.assert_eq(&lines.concat());
}
