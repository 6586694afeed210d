//! Which crate of the workspace may know which.

use std::{fmt::Write, process::Command};

use expect_test::expect;
use serde_json::Value;

/// Services meet at `proto` and stand on `chassis`: none knows another, and the rules know nobody. Only what
/// starts all of them knows all of them.
#[test]
fn services_do_not_know_each_other() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut lines: Vec<_> = metadata["packages"].as_array().unwrap().iter().map(dependencies).collect();
    lines.sort_unstable();
    expect![[r#"
        chassis domain proto
        component-registry chassis domain proto
        config-coordinator chassis domain proto
        domain
        gateway chassis proto
        integration-tests chassis domain proto reveille
        power-controller chassis domain proto
        proto
        reveille chassis component-registry config-coordinator domain gateway power-controller proto session-manager simulator status-evaluator
        session-manager chassis domain proto
        simulator chassis proto
        status-evaluator chassis domain proto
    "#]].assert_eq(&lines.concat());
}

/// One line: a crate and the crates of the workspace that it depends on, for whatever purpose.
fn dependencies(package: &Value) -> String {
    let all = package["dependencies"].as_array().unwrap().iter();
    let within = all.filter(|dependency| dependency["path"].is_string());
    let mut names: Vec<_> = within.map(|dependency| dependency["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    let mut line = package["name"].as_str().unwrap().to_owned();
    for name in names {
        write!(line, " {name}").unwrap();
    }
    line + "\n"
}
