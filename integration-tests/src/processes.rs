//! A mesh of processes: one per part, as in a cluster.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{PATIENCE, bos::Bos, eventually, ports::free_ports};

/// The parts of a mesh: the section of the settings and the binary of each.
pub const PARTS: [(&str, &str); 7] = [
    ("simulator", "reveille-simulator"),
    ("component_registry", "reveille-component-registry"),
    ("session_manager", "reveille-session-manager"),
    ("status_evaluator", "reveille-status-evaluator"),
    ("power_controller", "reveille-power-controller"),
    ("config_coordinator", "reveille-config-coordinator"),
    ("gateway", "reveille-gateway"),
];

/// Enough to follow a request from part to part.
const LOG: &str = "info,chassis=debug,gateway=debug";

/// Lines of a log that are shown when a test fails.
const LAST_LINES: usize = 5;

/// A mesh of processes. They are killed when it is dropped.
pub struct Processes {
    /// The REST contract.
    pub bos: Bos,
    /// Where settings, databases and logs are.
    pub directory: TempDir,
    ports: Vec<u16>,
    running: BTreeMap<&'static str, Child>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed.
    pub output: String,
    /// What it complained about or logged.
    pub errors: String,
}

/// Runs a binary of the mesh to its end.
///
/// # Panics
/// When it cannot be started or does not end in time.
pub async fn run(binary: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(binaries().join(binary));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.unwrap_or_else(|_| panic!("{binary} {arguments:?} does not end")).expect("a process");
    Ended {
        status: ended.status,
        output: String::from_utf8_lossy(&ended.stdout).into_owned(),
        errors: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

impl Processes {
    /// Starts every part with a simulated fleet of `nodes` whose hardware takes `speed` of its real time.
    ///
    /// # Panics
    /// When a part does not start.
    pub async fn start(nodes: u32, speed: f64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ports = free_ports(PARTS.len());
        let gateway = ports.last().expect("one port for each part");
        let bos = Bos::new(&format!("http://127.0.0.1:{gateway}"));
        std::fs::write(directory.path().join("reveille.toml"), settings(&directory, &ports, nodes, speed))
            .expect("a writable directory");
        let mut mesh = Self { bos, directory, ports, running: BTreeMap::new() };
        for (part, _) in PARTS {
            mesh.start_part(part);
        }
        mesh.bos.ready().await;
        mesh.bos.discovered(nodes as usize).await;
        mesh
    }

    /// Starts one part.
    ///
    /// # Panics
    /// When its process cannot be started.
    pub fn start_part(&mut self, part: &'static str) {
        let (_, binary) = PARTS.iter().find(|(name, _)| *name == part).expect("a part");
        let log = self.directory.path().join(format!("{part}.log"));
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let child = Command::new(binaries().join(binary))
            .arg("--config")
            .arg(self.directory.path().join("reveille.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        self.running.insert(part, child);
    }

    /// Where one part is reached.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn url(&self, part: &str) -> String {
        let index = PARTS.iter().position(|(name, _)| *name == part).expect("a part");
        format!("http://127.0.0.1:{}", self.ports[index])
    }

    /// Ends one part without warning, as a crash does.
    ///
    /// # Panics
    /// When it had ended before.
    pub async fn kill_part(&mut self, part: &'static str) {
        let mut child = self.running.remove(part).expect("a running part");
        assert_eq!(child.try_wait().expect("a status"), None, "{part} had ended before:\n{}", self.log(part));
        child.kill().await.expect("a process to kill");
    }

    /// Asks one part to end with SIGTERM and waits until it has.
    ///
    /// # Panics
    /// When it does not end in time or ends with an error.
    pub async fn stop_part(&mut self, part: &'static str) {
        self.ask_part_to_end(part).await;
        self.part_ended(part).await;
    }

    /// Asks one part to end with SIGTERM, once it listens: before that it ends like any program that does not
    /// know the signal.
    ///
    /// # Panics
    /// When it had ended before.
    pub async fn ask_part_to_end(&self, part: &str) {
        eventually(&format!("{part} to listen"), async || self.log(part).contains("listening").then_some(()))
            .await;
        let id = self.running[part].id().expect("a process that was not waited for").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill");
        assert!(asked.success(), "{part} had ended before");
    }

    /// Waits until one part that was asked to has ended.
    ///
    /// # Panics
    /// When it does not end in time or ends with an error.
    pub async fn part_ended(&mut self, part: &str) {
        let mut child = self.running.remove(part).expect("a running part");
        let ended =
            tokio::time::timeout(PATIENCE, child.wait()).await.expect("an end in time").expect("a status");
        assert!(ended.success(), "{part} ended with {ended}; its log:\n{}", self.log(part));
    }

    /// What a part has logged.
    #[must_use]
    pub fn log(&self, part: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("{part}.log"))).unwrap_or_default()
    }
}

/// A test that fails shows how the parts fared.
impl Drop for Processes {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for (part, _) in PARTS {
            let log = self.log(part);
            let last = log.lines().rev().take(LAST_LINES).collect::<Vec<_>>();
            eprintln!("--- the last lines of {part}");
            last.into_iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

fn settings(directory: &TempDir, ports: &[u16], nodes: u32, speed: f64) -> String {
    let mut text = format!("data_dir = \"{}\"\n[log]\nfilter = \"{LOG}\"\n", directory.path().display());
    for ((part, _), port) in PARTS.iter().zip(ports) {
        text += &format!("[{part}]\nlisten = \"127.0.0.1:{port}\"\nurl = \"http://127.0.0.1:{port}\"\n");
        if *part == "simulator" {
            text += &format!("nodes = {nodes}\nspeed = {speed:?}\n");
        }
    }
    text
}

/// Directory of the mesh's binaries, which are built if they are not up to date.
///
/// # Panics
/// When they cannot be built.
pub fn binaries() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let built = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--bins"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo");
        assert!(built.success(), "the binaries cannot be built");
        let test = std::env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("the target directory").to_owned()
    })
}
