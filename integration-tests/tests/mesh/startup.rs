//! Parts that cannot start name the reason and end with an error.

use std::net::TcpListener;

use integration_tests::processes::{PARTS, ProgramExit, run};

/// The parts that keep something.
const OWNERS: [&str; 6] = [
    "component_registry",
    "session_manager",
    "power_controller",
    "config_coordinator",
    "host_provisioner",
    "fleet_manager",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named_with_its_setting() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().to_str().unwrap();
    for (part, binary) in PARTS {
        let listen = format!("{part}.listen={address}");
        let ended = run(binary, &["--data-dir", data_dir, "--set", &listen]).await;
        refused(binary, &ended, &[&format!("{part}.listen"), &address]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unwritable_directory_is_named_with_its_setting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let data_dir = file.join("data").display().to_string();
    for (part, binary) in PARTS.into_iter().filter(|(part, _)| OWNERS.contains(part)) {
        let listen = format!("{part}.listen=127.0.0.1:0");
        let ended = run(binary, &["--data-dir", &data_dir, "--set", &listen]).await;
        refused(binary, &ended, &["data_dir", &data_dir]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_setting_is_named_with_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.toml");
    std::fs::write(&file, "[gateway]\nlissen = \"127.0.0.1:0\"\n").unwrap();
    for (_, binary) in PARTS {
        let ended = run(binary, &["--config", file.to_str().unwrap()]).await;
        refused(binary, &ended, &["settings.toml", "lissen"]);
    }
}

/// Checks that a program ended with an error of one line that contains all of `told`.
fn refused(binary: &str, ended: &ProgramExit, told: &[&str]) {
    assert_eq!(ended.status.code(), Some(1), "{binary}: {ended:?}");
    let error = ended.errors.lines().find(|line| line.starts_with("error: "));
    let error = error.unwrap_or_else(|| panic!("{binary} gives no reason: {ended:?}"));
    for word in told {
        assert!(error.contains(word), "{binary} does not tell {word}: {error}");
    }
}
