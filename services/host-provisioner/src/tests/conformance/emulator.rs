//! A process that emulates BMCs, which others wrote.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::{Child, Command},
    task::JoinHandle,
};

use crate::tests::until;

/// Set where the tools of the tests have to be there.
const TOOLS: &str = "REVEILLE_TEST_TOOLS";

/// The emulator's program, with CPUs and disks, changes of power after a second, settings of the BIOS that hold once a reset
/// is over, and a record of every reset. An Ironic names the system to update only where there are several.
const CONFIGURATION: &str = r#"
import bcrypt
from sushy_tools.emulator.resources.systems import fakedriver
fake = fakedriver.FakeDriver
fake.get_total_cpus = lambda self, system: 8
fake.get_total_memory = lambda self, system: 32
fake.get_processors = lambda self, system: [
    {"id": "CPU0", "socket": "CPU 0", "vendor": "Emulated", "model": "Emulated CPU", "cores": 8, "threads": 8}]
fake.find_or_create_storage_volume = lambda self, data: data["Id"]
fakedriver.random.randint = lambda low, high: 1
switch = fake.set_power_state
def note_and_switch(driver, system, kind):
    with open(DIRECTORY + "/resets", "a") as notes:
        notes.write(kind + "\n")
    switch(driver, system, kind)
fake.set_power_state = note_and_switch
BIOS = {"ProcTurboMode": "Enabled", "BootMode": "Uefi", "EmbeddedSata": "Raid"}
fake.get_bios = lambda self, system: self._get(system).get("bios", BIOS)
fake.set_bios = lambda self, system, changes: self._update(system, staged={**self.get_bios(system), **changes})
fake.get_versions = lambda self, system: {"BiosVersion": self._get(system).get("version", "1.0.0")}
fake.set_versions = lambda self, system, versions: self._update(system, version=versions["BiosVersion"])
def test_itself(driver, system, settle=fake._update_if_needed):
    system = settle(driver, system)
    if system.get("tested") and system["power_state"] == "On":
        driver._update(system, bios=system["tested"], tested=None)
    return system
fake._update_if_needed = test_itself
def note_and_start(driver, system, kind, switch=fake.set_power_state):
    staged = driver._get(system).get("staged")
    if staged and ("On" in kind or "Restart" in kind):
        driver._update(system, tested=staged, staged=None)
    switch(driver, system, kind)
fake.set_power_state = note_and_start
with open(DIRECTORY + "/users", "w") as users:
    users.write("admin:" + bcrypt.hashpw(b"password", bcrypt.gensalt(4)).decode())
SYSTEM = "5e7a11e0-0000-4000-8000-000000000001"
SUSHY_EMULATOR_LISTEN_IP = "127.0.0.1"
SUSHY_EMULATOR_LISTEN_PORT = 0
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_FEATURE_SET = "full"
SUSHY_EMULATOR_STATE_DIR = DIRECTORY
SUSHY_EMULATOR_AUTH_FILE = DIRECTORY + "/users"
SUSHY_EMULATOR_FAKE_SYSTEMS = [{"uuid": SYSTEM, "name": "h", "power_state": "Off", "external_notifier": False,
    "nics": [{"mac": "00:5c:52:31:00:01", "ip": "172.22.0.1"}]},
    {"uuid": SYSTEM[:-1] + "2", "name": "other", "power_state": "Off", "external_notifier": False, "nics": []}]
SUSHY_EMULATOR_STORAGE = {SYSTEM: [{"Id": "1", "Name": "Local Storage Controller",
    "StorageControllers": [{"MemberId": "0", "Name": "RAID", "SpeedGbps": 12}], "Drives": ["D1"]}]}
SUSHY_EMULATOR_DRIVES = {(SYSTEM, "1"): [{"Id": "D1", "Name": "Drive 1", "CapacityBytes": 107374182400, "Protocol": "SAS"}]}
SUSHY_EMULATOR_VOLUMES = {(SYSTEM, "1"): []}
"#;

/// Path of the only system.
pub(in crate::tests) const SYSTEM: &str = "/redfish/v1/Systems/5e7a11e0-0000-4000-8000-000000000001";

/// An emulator that runs until it is dropped, and a server of an image for it.
pub(in crate::tests) struct RedfishEmulator {
    /// Address without a protocol.
    pub(in crate::tests) authority: String,
    /// Address of an image.
    pub(in crate::tests) image: String,
    directory: TempDir,
    _process: Child,
    _images: JoinHandle<()>,
}

impl RedfishEmulator {
    /// Starts the emulator; `None` where the tools of the tests are not installed, and need not be.
    pub(in crate::tests) async fn start() -> Option<Self> {
        let program = program()?;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let text = format!("DIRECTORY = {}\n{CONFIGURATION}", json!(directory.path()));
        fs::write(at("emulator.conf"), text).unwrap();
        fs::write(at("resets"), "").unwrap();
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
        let authority = until("an emulator of BMCs", || async { address(&at("log")) }).await;
        let (image, images) = serve_image().await;
        Some(Self { authority, image, directory, _process: process, _images: images })
    }

    /// Kinds of reset that the BMC was asked for, in order.
    pub(in crate::tests) fn resets(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.directory.path().join("resets")).unwrap();
        notes.lines().map(str::to_owned).collect()
    }
}

fn program() -> Option<PathBuf> {
    let needed = env::var_os(TOOLS);
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let tools = needed.as_ref().map_or_else(usual, PathBuf::from);
    let program = tools.join("venv/bin/sushy-emulator");
    assert!(needed.is_none() || program.exists(), "{} is missing", program.display());
    program.exists().then_some(program)
}

/// Address of the emulator, once its log shows it.
fn address(log: &Path) -> Option<String> {
    let log = fs::read_to_string(log).unwrap();
    let (_, rest) = log.split_once("Running on http://")?;
    let (address, _) = rest.split_once('\n')?;
    Some(address.trim().to_owned())
}

/// Serves the same small image for every request, and returns its address.
async fn serve_image() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/live.iso", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _request = connection.read(&mut head).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\niso\n";
            let _sent = connection.write_all(answer).await;
        }
    });
    (url, serving)
}
