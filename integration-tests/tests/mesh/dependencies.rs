//! Which crate of the workspace may know which.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

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
        access-policy: domain
        chassis: domain proto; tests: test-databases
        command: access-policy domain
        component-registry: chassis domain proto upstream; tests: test-databases
        config-coordinator: chassis domain proto upstream; tests: test-databases test-registry
        domain:
        fleet-manager: chassis domain proto; tests: status-evaluator test-databases test-registry
        gateway: access-policy chassis proto; tests: fleet-manager test-registry
        host-calls: chassis domain proto redfish upstream
        host-provisioner: chassis domain host-calls ironic proto redfish upstream; tests: power-controller simulator status-evaluator test-registry
        insight: chassis domain proto
        integration-tests: chassis proto reveille test-databases upstreams; tests: component-registry domain gateway session-manager simulator
        ironic: chassis domain host-calls upstream
        power-controller: chassis domain host-calls ironic proto redfish upstream; tests: test-databases test-registry
        proto:
        redfish: chassis proto upstream; tests: chassis
        reveille: access-policy chassis command component-registry config-coordinator domain fleet-manager gateway host-provisioner insight power-controller proto session-manager simulator status-evaluator upstream upstreams
        session-manager: chassis domain proto upstream; tests: test-databases test-registry
        simulation: chassis component-registry config-coordinator domain power-controller proto session-manager simulator status-evaluator
        simulator: chassis domain proto
        status-evaluator: chassis domain proto; tests: test-registry
        test-databases:
        test-registry: chassis component-registry domain proto
        upstream: chassis domain
        upstreams: proto simulator
    "#]].assert_eq(&lines.concat());
}

/// The generic modules of `chassis` know no kind of resource: of the rules they use `core`, of the wire what every package
/// has in common.
#[test]
fn generic_modules_know_no_nouns() {
    let mut used = BTreeSet::new();
    for module in ["lease", "mesh", "observe", "process", "simulation", "store"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services/chassis/src").join(module);
        let sources = rust_sources(&folder);
        assert!(!sources.is_empty(), "{module}");
        used.extend(sources.iter().flat_map(|source| paths_into(source, &["domain", "proto"])));
    }
    let used: String = used.iter().map(|path| format!("{path}\n")).collect();
    expect![[r#"
        domain::core
        proto::DESCRIPTORS
        proto::Message
        proto::WatchRequest
        proto::event
        proto::peer
        proto::{Encoded, Message}
        proto::{Encoded, WatchedMessage}
        proto::{Message, WatchBatch, watch}
        proto::{Message, event as wire}
        proto::{WatchRequest, WatchedMessage, watch_kind}
    "#]]
    .assert_eq(&used);
}

/// Texts of all Rust files below `folder` but those of tests, which may play any kind.
fn rust_sources(folder: &Path) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
    let is_source = |path: &&PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs")
    };
    let files = files.iter().filter(is_source);
    let mut sources: Vec<_> = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    sources.extend(folders.iter().flat_map(|folder| rust_sources(folder)));
    sources
}

/// Beginnings, of two names, of the paths in `source` that lead into one of `crates`. A group in braces counts as one name.
fn paths_into(source: &str, crates: &[&str]) -> Vec<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut paths = Vec::new();
    for name in crates {
        for (at, found) in code.match_indices(&format!("{name}::")) {
            if code[..at].ends_with(is_name) || code[..at].ends_with("::") {
                continue;
            }
            let rest = &code[at + found.len()..];
            let end = match rest.strip_prefix('{') {
                Some(group) => group.find('}').map(|end| end + 2),
                None => rest.find(|letter: char| !is_name(letter)),
            };
            let end = end.unwrap_or(rest.len());
            paths.push(format!("{name}::{}", &rest[..end]));
        }
    }
    paths
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
