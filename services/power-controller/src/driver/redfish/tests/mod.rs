//! The driver against BMCs of all kinds.

mod hardware;
mod power;
mod switching;

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use chassis::settings;

use super::*;
use crate::driver::progress::TaskState;

use hardware::{BmcHardware, FakeBmc as Double, SYSTEMS, redfish_error};

const DEADLINE: Duration = Duration::from_secs(5);

/// Returns settings with which a test does not take long.
fn quick() -> settings::Power {
    let power = settings::Power::default();
    settings::Power {
        follow_seconds: 0.01,
        effect_seconds: 5.0,
        redfish: settings::Peer { plain_http: true, answer_seconds: 5.0, ..power.redfish },
        ..power
    }
}

fn with_credentials(path: &Path, text: &str) -> settings::Power {
    std::fs::write(path, text).unwrap();
    let power = quick();
    let credentials = format!("file:{}", path.display());
    settings::Power { redfish: settings::Peer { credentials, ..power.redfish }, ..power }
}

/// Returns nodes, each with the address of its BMC and the path of its system, in the form of a machine file.
fn listed(nodes: &[(&str, SocketAddr, &str)]) -> String {
    let mut text = String::new();
    for (index, (id, address, system)) in nodes.iter().enumerate() {
        let first = nodes.iter().position(|(_, other, _)| other == address).unwrap();
        if first == index {
            writeln!(text, "[[bmc]]\nname = 'b{first}'\nurl = 'http://{address}'").unwrap();
        }
        writeln!(text, "[[node]]\nid = '{id}'\nbmc = 'b{first}'\nsystem = '{system}'").unwrap();
    }
    text
}

fn drive(settings: &settings::Power, nodes: &[(&str, SocketAddr, &str)]) -> RedfishDriver {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.toml");
    // The directory is removed afterwards without effect: its contents were read.
    RedfishDriver::new(machine_file(&path, &listed(nodes)), settings).unwrap()
}

fn machine_file(path: &Path, text: &str) -> MachineFile {
    std::fs::write(path, text).unwrap();
    MachineFile::open(path).unwrap()
}

fn system(name: &str) -> String {
    format!("{SYSTEMS}/{name}")
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

/// Returns the reading of a node as one text.
async fn read(redfish: &RedfishDriver, id: &str) -> String {
    let mut readings = redfish.power(ids(&[id]), DEADLINE).await;
    let (_, NodeReading { reading, error, .. }) = readings.pop().expect("a node of the machine");
    format!("{} {error}", reading.as_str_name().trim_start_matches("POWER_READING_")).trim().to_owned()
}

/// Carries an action out and waits for its end. Returns the results in the order of the nodes.
async fn act(redfish: &RedfishDriver, action: Action, nodes: &[&str]) -> Vec<TaskState> {
    let id = redfish.start(action, ids(nodes), || true);
    ended(redfish, &id).await
}

async fn ended(redfish: &RedfishDriver, id: &str) -> Vec<TaskState> {
    let end = async {
        loop {
            let progress = redfish.follow(id).expect("an action of this test");
            if progress.ended {
                return progress.tasks.into_iter().map(|task| task.state).collect();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), end).await.expect("an end within its time")
}

/// Returns the text of the only result, which is a failure.
fn failure(states: Vec<TaskState>) -> String {
    match &states[..] {
        [TaskState::Failed(text) | TaskState::TimedOut(text) | TaskState::Refused { words: text, .. }] => {
            text.clone()
        }
        other => panic!("{other:?}"),
    }
}
