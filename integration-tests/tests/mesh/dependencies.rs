//! Which crate of the workspace may know which.

use std::process::Command;

use expect_test::expect;
use serde_json::Value;

/// Services meet at `proto` and rest on `chassis`; no service depends on another, and the rules depend on no service.
/// Only the program that starts all services depends on all.
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
        chassis: domain proto; tests: test-databases
        component-registry: chassis domain proto upstream; tests: test-databases
        config-coordinator: chassis domain proto upstream; tests: test-databases
        domain:
        gateway: chassis proto
        integration-tests: chassis proto reveille test-databases upstreams; tests: component-registry domain gateway session-manager simulator
        power-controller: chassis domain proto upstream; tests: test-databases
        proto:
        reveille: chassis component-registry config-coordinator domain gateway power-controller proto session-manager simulator status-evaluator upstreams
        session-manager: chassis domain proto upstream; tests: test-databases
        simulation: chassis component-registry config-coordinator domain power-controller proto session-manager simulator status-evaluator
        simulator: chassis proto
        status-evaluator: chassis domain proto
        test-databases:
        upstream: chassis domain
        upstreams: proto simulator
    "#]].assert_eq(&lines.concat());
}

/// A crate, the crates of the workspace that it depends on, and those of its tests alone, as one line.
fn dependencies(package: &Value) -> String {
    let all = package["dependencies"].as_array().unwrap();
    let within = |kind: Value| {
        let of_kind = all.iter().filter(|one| one["path"].is_string() && one["kind"] == kind);
        let mut names: Vec<_> = of_kind.map(|one| format!(" {}", one["name"].as_str().unwrap())).collect();
        names.sort_unstable();
        names.concat()
    };
    let (names, tests) = (within(Value::Null), within("dev".into()));
    let tests = if tests.is_empty() { tests } else { format!("; tests:{tests}") };
    format!("{}:{names}{tests}\n", package["name"].as_str().unwrap())
}
