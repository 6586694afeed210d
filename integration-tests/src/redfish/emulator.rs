//! A process that emulates a BMC with many systems.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::{authority::CertificateAuthority, eventually, tools};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// User of every BMC.
pub const USER: &str = "root";
/// Password of [`USER`].
pub const PASSWORD: &str = "s3cret-of-the-bmc";

/// Password file of the BMC: [`USER`] with [`PASSWORD`], hashed at the lowest cost.
const USERS: &str = "root:$2b$04$5q1O7AQEBbS5qnaBzremkuMuzFlTmVLlmfn/DVF4ZJicPv1l9d.TW";

/// The emulator's program, with a fixed delay of power-ons in place of random delays of all changes of power, and with
/// a record of every reset. The list of systems and other values are put before it.
const CONFIGURATION: &str = r#"
from sushy_tools.emulator.resources.systems import fakedriver
switch = fakedriver.FakeDriver.set_power_state
def note_and_switch(driver, system, kind):
    with open(RESETS, "a") as notes:
        notes.write(f"{driver.name(system)} {kind}\n")
    fakedriver.random.randint = lambda low, high: ON_AFTER if kind == "On" else 0
    if kind != "GracefulShutdown" or driver.name(system) not in DEAF:
        switch(driver, system, kind)
fakedriver.FakeDriver.set_power_state = note_and_switch
SUSHY_EMULATOR_LISTEN_IP = "127.0.0.1"
SUSHY_EMULATOR_LISTEN_PORT = 0
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_FEATURE_SET = "minimum"
"#;

/// Returns the path of the program; `None` where the tools of the tests are not installed, and need not be.
pub fn program() -> Option<PathBuf> {
    tools::program("sushy-emulator")
}

/// An emulator that runs until it is dropped.
pub struct RedfishEmulator {
    /// Address of its Redfish service, without a path.
    pub url: String,
    directory: TempDir,
    client: reqwest::Client,
    _process: Child,
}

impl RedfishEmulator {
    /// Starts `program` with `systems`, all off, and a certificate of `authority`. Systems in `deaf` ignore graceful
    /// shutdowns. A system turns on `on_after` seconds after the request.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(
        program: &Path,
        authority: &CertificateAuthority,
        systems: &[&str],
        deaf: &[&str],
        on_after: u32,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        authority.issue(directory.path());
        fs::write(at("users"), USERS).expect("a writable directory");
        fs::write(at("resets"), "").expect("a writable directory");
        let text = configuration(directory.path(), systems, deaf, on_after);
        fs::write(at("emulator.conf"), text).expect("a writable directory");
        let log = fs::File::create(at("log")).expect("a log file");
        let process = Command::new(program)
            .arg("--config")
            .arg(at("emulator.conf"))
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let url = eventually("an emulator of BMCs", async || address(&at("log"))).await;
        let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true);
        let client = client.build().expect("a client");
        Self { url, directory, client, _process: process }
    }

    /// Returns the power state of a system as the BMC reports it.
    ///
    /// # Panics
    /// When the BMC reports no power state.
    pub async fn power(&self, system: usize) -> String {
        let request = self.client.get(format!("{}{}", self.url, path(system)));
        let answer = request.basic_auth(USER, Some(PASSWORD)).send().await.expect("an answer");
        let text = answer.error_for_status().expect("success").text().await.expect("a whole answer");
        let system: Value = serde_json::from_str(&text).expect("JSON");
        system["PowerState"].as_str().expect("a text").to_owned()
    }

    /// Resets that the BMC was asked for, in order: names of systems and kinds of reset.
    ///
    /// # Panics
    /// When no record of them exists.
    pub fn resets(&self) -> Vec<(String, String)> {
        let notes = fs::read_to_string(self.directory.path().join("resets")).expect("notes");
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

/// Returns the emulator's own configuration: a Python file, with literals spelt like those of JSON.
fn configuration(directory: &Path, systems: &[&str], deaf: &[&str], on_after: u32) -> String {
    let systems = systems
        .iter()
        .enumerate()
        .map(|(index, name)| json!({ "uuid": uuid(index), "name": name, "power_state": "Off", "nics": [] }));
    let values = [
        ("RESETS", json!(directory.join("resets"))),
        ("DEAF", json!(deaf)),
        ("ON_AFTER", json!(on_after)),
        ("SUSHY_EMULATOR_STATE_DIR", json!(directory)),
        ("SUSHY_EMULATOR_AUTH_FILE", json!(directory.join("users"))),
        ("SUSHY_EMULATOR_SSL_CERT", json!(directory.join("certificate.pem"))),
        ("SUSHY_EMULATOR_SSL_KEY", json!(directory.join("key.pem"))),
        ("SUSHY_EMULATOR_FAKE_SYSTEMS", systems.collect()),
    ];
    let values = values.map(|(name, value)| format!("{name} = {value}\n"));
    values.concat() + CONFIGURATION
}

/// Address of the emulator, once its log shows it.
fn address(log: &Path) -> Option<String> {
    let log = fs::read_to_string(log).expect("a log");
    let (_, rest) = log.split_once("Running on ")?;
    let (address, _) = rest.split_once('\n')?;
    Some(address.trim().to_owned())
}
