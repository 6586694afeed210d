//! Which JSON fits the contract, and what is said about JSON that does not.

use std::fmt::Debug;

use expect_test::Expect;
use serde::de::DeserializeOwned;

use crate::http::extract::parse;

mod components;
mod options;
mod properties;
mod sessions;
mod templates;

fn check<T: DeserializeOwned>(bodies: &[&str], expected: Expect) {
    let lines = bodies.iter().map(|body| {
        let outcome = parse::<T>(body.as_bytes());
        format!("{body} -> {}\n", outcome.as_ref().err().map_or("fits", |problem| &problem.detail))
    });
    expected.assert_eq(&lines.collect::<String>());
}

fn read<T: DeserializeOwned + Debug>(body: &str) -> T {
    parse(body.as_bytes()).unwrap_or_else(|problem| panic!("{body}: {}", problem.detail))
}
