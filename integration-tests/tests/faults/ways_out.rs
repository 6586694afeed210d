//! Calls leave a process only through code with failpoints: the peers of the crate `upstream`, the channels and the
//! ledger of `chassis`.

use std::{fs, path::Path};

use expect_test::expect;

/// Code that opens a connection.
const WAYS: [&str; 8] = [
    "reqwest::",
    "reqwest;",
    "TcpStream::connect",
    "UdpSocket",
    "UnixStream",
    "Endpoint::from",
    "Database::connect",
    "client::conn",
];

#[test]
fn every_outgoing_connection_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["services", "gateway"] {
        search(&root, &root.join(folder), &mut found);
    }
    found.sort();
    // The simulator's reporter plays the nodes, and its port of agents the devices; `moving`, `demo` and `command` are clients of the gateway like
    // any other. `backup` reads addresses and tries whether parts listen. The gateway fetches the keys of issuers, which changes nothing there.
    expect![[r#"
        gateway/src/identity/fetch.rs
        services/all-in-one/src/backup/postgres.rs
        services/all-in-one/src/backup/restore.rs
        services/all-in-one/src/demo/rest.rs
        services/all-in-one/src/doctor/peers.rs
        services/all-in-one/src/moving/site.rs
        services/chassis/src/mesh/channel.rs
        services/chassis/src/mesh/channel/addresses.rs
        services/chassis/src/store/database.rs
        services/command/src/client.rs
        services/command/src/connection.rs
        services/command/src/contexts.rs
        services/command/src/enable.rs
        services/command/src/options.rs
        services/command/src/plan.rs
        services/command/src/sessions.rs
        services/command/src/templates.rs
        services/simulator/src/agents/port.rs
        services/simulator/src/reporter.rs
        services/upstream/src/base.rs
        services/upstream/src/client.rs
        services/upstream/src/exchange.rs
        services/upstream/src/late_check.rs
        services/upstream/src/wire.rs
    "#]]
    .assert_eq(&found.concat());
}

/// Adds the files of programs, and not of tests, that hold one of the words.
fn search(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_test = name == "tests" || name == "tests.rs" || name == "benches";
        if path.is_dir() && !is_test {
            search(root, &path, found);
        } else if name.ends_with(".rs") && !is_test {
            let text = fs::read_to_string(&path).unwrap();
            let program = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            if WAYS.iter().any(|word| program.contains(word)) {
                found.push(format!("{}\n", path.strip_prefix(root).unwrap().display()));
            }
        }
    }
}
