//! A process that emulates a BMC with many systems.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use integration_tests::{authority::Authority, eventually, tools};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

pub const USER: &str = "root";
pub const PASSWORD: &str = "s3cret-of-the-bmc";

/// Whom the BMC lets in: [`USER`] with [`PASSWORD`], hashed at the lowest cost.
const USERS: &str = "root:$2b$04$5q1O7AQEBbS5qnaBzremkuMuzFlTmVLlmfn/DVF4ZJicPv1l9d.TW";

/// The program itself, without the delays that it adds to every change of power. It notes every reset that it is
/// asked for. Its list of systems and the like come before this.
const CONFIGURATION: &str = r#"
from sushy_tools.emulator.resources.systems import fakedriver
fakedriver.random.randint = lambda low, high: 0
switch = fakedriver.FakeDriver.set_power_state
def note_and_switch(driver, system, kind):
    with open(RESETS, "a") as notes:
        notes.write(f"{driver.name(system)} {kind}\n")
    if kind != "GracefulShutdown" or driver.name(system) not in DEAF:
        switch(driver, system, kind)
fakedriver.FakeDriver.set_power_state = note_and_switch
SUSHY_EMULATOR_LISTEN_IP = "127.0.0.1"
SUSHY_EMULATOR_LISTEN_PORT = 0
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_FEATURE_SET = "minimum"
"#;

/// The program; none where the tools of the tests are not installed, and need not be.
pub fn program() -> Option<PathBuf> {
    tools::program("sushy-emulator")
}

/// An emulator that runs until it is dropped.
pub struct Emulator {
    /// Where its Redfish service is, without path.
    pub url: String,
    directory: TempDir,
    client: reqwest::Client,
    _process: Child,
}

impl Emulator {
    /// Starts `program` with `systems` that are off, and a certificate of `authority`. Those of `deaf` do not
    /// heed requests to shut down.
    pub async fn start(program: &Path, authority: &Authority, systems: &[&str], deaf: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        authority.issue(directory.path());
        fs::write(at("users"), USERS).unwrap();
        fs::write(at("resets"), "").unwrap();
        fs::write(at("emulator.conf"), configuration(directory.path(), systems, deaf)).unwrap();
        let log = fs::File::create(at("log")).unwrap();
        let process = Command::new(program)
            .arg("--config")
            .arg(at("emulator.conf"))
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let url = eventually("an emulator of BMCs", async || address(&at("log"))).await;
        let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build().unwrap();
        Self { url, directory, client, _process: process }
    }

    /// What the BMC says of the power of a system.
    pub async fn power(&self, system: usize) -> String {
        let request = self.client.get(format!("{}{}", self.url, path(system)));
        let answer = request.basic_auth(USER, Some(PASSWORD)).send().await.unwrap();
        let text = answer.error_for_status().unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["PowerState"].as_str().unwrap().to_owned()
    }

    /// The resets that the BMC was asked for, in order: names of systems and kinds of reset.
    pub fn resets(&self) -> Vec<(String, String)> {
        let notes = fs::read_to_string(self.directory.path().join("resets")).unwrap();
        // The last line may not be whole yet.
        let whole = notes.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(system, kind)| (system.to_owned(), kind.to_owned())).collect()
    }
}

/// Path of a system by its place in the list.
pub fn path(system: usize) -> String {
    format!("/redfish/v1/Systems/{}", uuid(system))
}

fn uuid(system: usize) -> String {
    format!("5e7a11e0-0000-4000-8000-{system:012}")
}

/// The emulator's own configuration is a Python file, whose literals look like those of JSON.
fn configuration(directory: &Path, systems: &[&str], deaf: &[&str]) -> String {
    let systems = systems
        .iter()
        .enumerate()
        .map(|(index, name)| json!({ "uuid": uuid(index), "name": name, "power_state": "Off", "nics": [] }));
    let values = [
        ("RESETS", json!(directory.join("resets"))),
        ("DEAF", json!(deaf)),
        ("SUSHY_EMULATOR_STATE_DIR", json!(directory)),
        ("SUSHY_EMULATOR_AUTH_FILE", json!(directory.join("users"))),
        ("SUSHY_EMULATOR_SSL_CERT", json!(directory.join("certificate.pem"))),
        ("SUSHY_EMULATOR_SSL_KEY", json!(directory.join("key.pem"))),
        ("SUSHY_EMULATOR_FAKE_SYSTEMS", systems.collect()),
    ];
    let values = values.map(|(name, value)| format!("{name} = {value}\n"));
    values.concat() + CONFIGURATION
}

/// Where the emulator listens, once its log says so.
fn address(log: &Path) -> Option<String> {
    let log = fs::read_to_string(log).unwrap();
    let (_, rest) = log.split_once("Running on ")?;
    let (address, _) = rest.split_once('\n')?;
    Some(address.trim().to_owned())
}
