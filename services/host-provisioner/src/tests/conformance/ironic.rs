//! An Ironic that others wrote, with a database of its own.

use std::{
    env, fs,
    net::TcpListener as Port,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

use crate::tests::until;

/// Set where the tools of the tests have to be there.
const TOOLS: &str = "REVEILLE_TEST_TOOLS";

/// Configuration without authentication and message bus. Fake hardware needs nothing; Redfish needs the emulator.
const CONFIGURATION: &str = "
[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = localhost
my_ip = 127.0.0.1
state_path = DIRECTORY
tempdir = DIRECTORY
log_file = DIRECTORY/log
enabled_hardware_types = fake-hardware,redfish
enabled_bios_interfaces = fake,no-bios,redfish
enabled_boot_interfaces = fake,redfish-virtual-media
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake,direct,ramdisk
enabled_firmware_interfaces = fake,no-firmware,redfish
enabled_inspect_interfaces = fake,no-inspect,agent,redfish
enabled_management_interfaces = fake,redfish
enabled_network_interfaces = noop
enabled_power_interfaces = fake,redfish
enabled_raid_interfaces = fake,no-raid,agent,redfish
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = fake,noop
enabled_vendor_interfaces = fake,no-vendor
default_network_interface = noop
[agent]
require_tls = false
[api]
host_ip = 127.0.0.1
port = PORT
[conductor]
automated_clean = false
sync_power_state_interval = 5
power_failure_recovery_interval = 5
power_state_sync_max_retries = 1
[database]
connection = sqlite:///DIRECTORY/ironic.sqlite
[deploy]
http_url = IMAGES
http_root = DIRECTORY/http
iso_master_path = DIRECTORY/isos
[dhcp]
dhcp_provider = none
[inventory]
data_backend = database
[oslo_concurrency]
lock_path = DIRECTORY/lock
[pxe]
tftp_root = DIRECTORY/tftp
tftp_master_path = DIRECTORY/tftp/master
images_path = DIRECTORY/images
instance_master_path = DIRECTORY/images/master
[redfish]
connection_attempts = 1
connection_retry_interval = 1
firmware_update_status_interval = 2
firmware_update_fail_interval = 2
[service_catalog]
endpoint_override = http://127.0.0.1:PORT
";

/// Derives the keys of cached sessions in one round: Ironic takes 600,000 rounds, half a second, before each call of a BMC.
const FAST_KEYS: &str = "\
import hashlib
derived = hashlib.pbkdf2_hmac
hashlib.pbkdf2_hmac = lambda name, password, salt, rounds, length=None: derived(name, password, salt, 1, length)
";

/// File that every Python runs at its start.
const AT_START: &str = "sitecustomize.py";

/// Folders that Ironic expects.
const FOLDERS: [&str; 4] = ["http", "lock", "tftp/master", "images/master"];

/// An Ironic that runs until it is dropped.
pub(in crate::tests) struct IronicServer {
    /// Address without the version.
    pub(in crate::tests) url: String,
    programs: PathBuf,
    directory: TempDir,
    process: Option<Child>,
}

impl IronicServer {
    /// Starts an Ironic that publishes images at `images`; `None` where the tools of the tests are not installed, and
    /// need not be.
    pub(in crate::tests) async fn start(images: &str) -> Option<Self> {
        let programs = programs()?;
        let directory = tempfile::tempdir().unwrap();
        for folder in FOLDERS {
            fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        let port = Port::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = CONFIGURATION
            .replace("DIRECTORY", directory.path().to_str().unwrap())
            .replace("PORT", &port.to_string())
            .replace("IMAGES", images);
        fs::write(directory.path().join("ironic.conf"), text).unwrap();
        fs::write(directory.path().join(AT_START), FAST_KEYS).unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let mut server = Self { url, programs, directory, process: None };
        server.run().await;
        Some(server)
    }

    /// Kills the Ironic, which loses its database, and starts it anew.
    pub(in crate::tests) async fn restart_without_database(&mut self) {
        self.kill();
        fs::remove_file(self.directory.path().join("ironic.sqlite")).unwrap();
        self.run().await;
    }

    async fn run(&mut self) {
        let made = self.command("ironic-dbsync").arg("create_schema").status().await.unwrap();
        assert!(made.success(), "{}", self.log());
        self.process = Some(self.command("ironic").spawn().unwrap());
        let address = self.url.strip_prefix("http://").unwrap();
        let answers = || async { TcpStream::connect(address).await.ok().map(drop) };
        until("an Ironic", answers).await;
    }

    fn command(&self, program: &str) -> Command {
        let output = fs::File::options().append(true).create(true).open(self.directory.path().join("output"));
        let output = output.unwrap();
        let mut command = Command::new(self.programs.join(program));
        command
            .arg("--config-file")
            .arg(self.directory.path().join("ironic.conf"))
            .env("PYTHONPATH", self.directory.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .kill_on_drop(true);
        command
    }

    /// Kills the Ironic with its worker, which would outlive it. Both are a process group of their own.
    fn kill(&mut self) {
        let Some(process) = self.process.take() else { return };
        let Some(id) = process.id() else { return };
        let group = format!("-{id}");
        let killed = std::process::Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.is_ok_and(|killed| killed.success()), "no process group {id}");
    }

    /// Last lines of the log.
    fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
        let text = read("output") + &read("log");
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for IronicServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn programs() -> Option<PathBuf> {
    let needed = env::var_os(TOOLS);
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let tools = needed.as_ref().map_or_else(usual, PathBuf::from);
    let programs = tools.join("ironic/bin");
    assert!(needed.is_none() || programs.join("ironic").exists(), "{} has no ironic", programs.display());
    programs.join("ironic").exists().then_some(programs)
}
