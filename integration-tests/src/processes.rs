//! A mesh of processes: one per part, as in a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt::Write as _,
    fs::File,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
};
use upstreams::{MachinePlan, Service, Upstreams};

use crate::{PATIENCE, bos::Bos, eventually, ports::free_ports};

/// The parts of a mesh: the section of the settings and the binary of each.
pub const PARTS: [(&str, &str); 10] = [
    ("simulator", "reveille-simulator"),
    ("component_registry", "reveille-component-registry"),
    ("session_manager", "reveille-session-manager"),
    ("status_evaluator", "reveille-status-evaluator"),
    ("power_controller", "reveille-power-controller"),
    ("config_coordinator", "reveille-config-coordinator"),
    ("host_provisioner", "reveille-host-provisioner"),
    ("fleet_manager", "reveille-fleet-manager"),
    ("insight", "reveille-insight"),
    ("gateway", "reveille-gateway"),
];

/// Enough to follow a request from part to part.
const LOG: &str = "info,chassis=debug,gateway=debug";

/// Systems of the profile for CSM: the section of the settings and the played system.
pub const PEERS: [(&str, Service); 7] = [
    ("inventory.hsm", Service::Hsm),
    ("power.pcs", Service::Pcs),
    ("boot_parameters.bss", Service::Bss),
    ("configuration.cfs", Service::Cfs),
    ("images.s3", Service::S3),
    ("images.ims", Service::Ims),
    ("tenants.tapms", Service::Tapms),
];

/// File with the settings of all parts.
const SETTINGS: &str = "reveille.toml";

/// The signal of a process that aborts.
const ABORTED: i32 = 6;

/// Lines of a log that are shown when a test fails, but for answers, which a waiting test asks for without end.
const LAST_LINES: usize = 40;
const ANSWERED: &str = "\"message\":\"answered\"";

/// A mesh of processes, killed on drop.
pub struct Processes {
    /// The REST contract.
    pub bos: Bos,
    /// Directory of settings, databases and logs.
    pub directory: TempDir,
    ports: Vec<u16>,
    /// Directory with the certificates of the parts; `None`: the mesh speaks no TLS.
    certificates: Option<PathBuf>,
    profile: &'static str,
    /// Parts that are not started.
    left_out: BTreeSet<&'static str>,
    environment: Vec<(String, OsString)>,
    /// Program and arguments in front of the command of each part; empty: none.
    wrapper: Vec<String>,
    running: BTreeMap<&'static str, Child>,
    /// Length of the log of each part when it was started last.
    logged_before: BTreeMap<&'static str, usize>,
}

/// End of a program.
#[derive(Debug)]
pub struct ProgramExit {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Standard output.
    pub output: String,
    /// Standard error: complaints and logs.
    pub errors: String,
}

/// Runs a binary of the mesh to its end.
///
/// # Panics
/// When it cannot be started or does not end in time.
pub async fn run(binary: &str, arguments: &[&str]) -> ProgramExit {
    let mut command = Command::new(binaries().join(binary));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.unwrap_or_else(|_| panic!("{binary} {arguments:?} does not end")).expect("a process");
    ProgramExit {
        status: ended.status,
        output: String::from_utf8_lossy(&ended.stdout).into_owned(),
        errors: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

/// Runs the operator's command `line` against a gateway, and returns what it prints.
///
/// # Panics
/// When it fails or does not end in time.
pub async fn operate(bos: &Bos, line: &str) -> String {
    operate_to_end(bos, line).await.output
}

/// Runs the operator's command `line` against a gateway, as [`operate`] does, and returns its complaints too.
///
/// # Panics
/// When it fails or does not end in time.
pub async fn operate_to_end(bos: &Bos, line: &str) -> ProgramExit {
    let mut line: Vec<_> = line.split(' ').collect();
    line.extend(["--url", bos.url()]);
    let ended = run("reveille", &line).await;
    assert!(ended.status.success(), "{ended:?}");
    ended
}

impl Processes {
    /// Starts every part with a simulated fleet of `nodes` whose hardware takes `speed` of its real time.
    ///
    /// # Panics
    /// When a part does not start.
    pub async fn start(nodes: u32, speed: f64) -> Self {
        let mut mesh = Self::prepare();
        mesh.set(&format!("[simulator]\nnodes = {nodes}\nspeed = {speed:?}\n"));
        mesh.begin().await;
        mesh.bos.discovered(nodes as usize).await;
        mesh
    }

    /// A mesh that is not started yet, on a simulated fleet unless [`Self::among`] replaces it.
    ///
    /// # Panics
    /// When the files cannot be written.
    #[must_use]
    pub fn prepare() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ports = free_ports(PARTS.len());
        let gateway = ports.last().expect("one port for each part");
        let bos = Bos::new(&format!("http://127.0.0.1:{gateway}"));
        let text = settings(&directory, &ports);
        std::fs::write(directory.path().join(SETTINGS), text).expect("a writable directory");
        let environment = Vec::new();
        let (wrapper, running, logged_before) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let left_out = BTreeSet::new();
        let profile = "simulated";
        let certificates = None;
        Self {
            bos,
            directory,
            ports,
            certificates,
            profile,
            left_out,
            environment,
            wrapper,
            running,
            logged_before,
        }
    }

    /// Leaves a part out that the mesh does not need.
    pub fn leave_out(&mut self, part: &'static str) {
        self.left_out.insert(part);
    }

    /// Merges `text`, a part of a settings file, into the settings, also into existing sections.
    ///
    /// # Panics
    /// When the result is not valid.
    pub fn set(&mut self, text: &str) {
        let file = self.directory.path().join(SETTINGS);
        let held = std::fs::read_to_string(&file).expect("settings");
        let mut all: toml::Table = held.parse().expect("settings");
        merge(&mut all, text.parse().expect("settings"));
        std::fs::write(file, all.to_string()).expect("a writable directory");
    }

    /// Has the mesh, which is not started yet, speak TLS with the files in `certificates`: `ca.pem`, and of each part
    /// `PART.pem` and `PART-key.pem`. Clients of the gateway trust `authorities`, certificates as PEM.
    ///
    /// # Panics
    /// When the settings cannot be written.
    pub fn encrypt(&mut self, certificates: &Path, authorities: &str) {
        self.certificates = Some(certificates.to_owned());
        let files = certificates.display();
        let mut text = format!("tls.ca_file = \"{files}/ca.pem\"\n");
        writeln!(text, "gateway.certificate = \"{files}/gateway.pem\"").expect("a text grows");
        writeln!(text, "gateway.key = \"{files}/gateway-key.pem\"").expect("a text grows");
        for (part, _) in PARTS {
            writeln!(text, "{part}.url = \"{}\"", self.url(part)).expect("a text grows");
        }
        self.set(&text);
        self.bos = Bos::trusting(authorities, &self.url("gateway"));
    }

    /// Sets an environment variable for every part that is started from now on.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    /// Makes every part that starts from now on ignore `SIGXFSZ`, so that a file that must not grow fails its writes,
    /// as on a full disk.
    pub fn survive_full_disks(&mut self) {
        self.wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""].map(str::to_owned).to_vec();
    }

    /// Lets every part that is started from now on have `most` file descriptors.
    pub fn limit_descriptors(&mut self, most: u32) {
        let limited = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        self.wrapper = vec!["sh".to_owned(), "-c".to_owned(), limited];
    }

    /// Fills the disk for one part that [survives](Self::survive_full_disks) that, or makes room again: none of its
    /// files can be written, or all can.
    ///
    /// # Panics
    /// When the limit cannot be set.
    pub async fn fill_disk(&self, part: &str, full: bool) {
        let limit = if full { "--fsize=0:unlimited" } else { "--fsize=unlimited:unlimited" };
        let id = self.process_id(part).to_string();
        let set = Command::new("prlimit").args(["--pid", &id, limit]).status().await.expect("prlimit");
        assert!(set.success(), "the limit of {part} cannot be set");
    }

    /// The process of a part that runs.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn process_id(&self, part: &str) -> u32 {
        self.running[part].id().expect("a process that was not waited for")
    }

    /// The most memory that the process of a part has had, in bytes.
    ///
    /// # Panics
    /// When the part does not run.
    #[must_use]
    pub fn peak_memory(&self, part: &str) -> u64 {
        let status = format!("/proc/{}/status", self.process_id(part));
        let status = std::fs::read_to_string(status).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("kilobytes") << 10
    }

    /// Starts the systems of `plan` and has the mesh, which is not started yet, use them.
    ///
    /// # Panics
    /// When they cannot be had.
    pub async fn among(&mut self, plan: MachinePlan) -> Upstreams {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let plan = MachinePlan { gateway_url: self.bos.url().to_owned(), ..plan };
        let upstreams = Upstreams::start(plan, listener).expect("upstreams");
        let mut text = String::new();
        for (peer, service) in PEERS {
            let url = upstreams.url_of(service);
            writeln!(text, "[{peer}]\nurl = \"{url}\"").expect("a text grows");
        }
        // Shorter than in production, where polls load real systems.
        text += "[power]\nfollow_seconds = 0.1\npoll_seconds = 0.2\nconfirm_seconds = 0.0\n";
        text += "[configuration]\npoll_seconds = 0.2\n[inventory]\nlock_poll_seconds = 0.2\n";
        self.set(&text);
        self.profile = "csm";
        upstreams
    }

    /// Starts every part that the profile has, and waits until all listen and the mesh is ready.
    ///
    /// # Panics
    /// When a part does not start.
    pub async fn begin(&mut self) {
        for part in self.parts() {
            self.start_part(part);
        }
        for part in self.parts() {
            self.until_listening(part).await;
        }
        self.bos.ready().await;
    }

    async fn until_listening(&self, part: &str) {
        let before = self.logged_before.get(part).copied().unwrap_or_default();
        let listens = async || {
            let log = self.log(part);
            log.get(before..).is_some_and(|since| since.contains("listening")).then_some(())
        };
        eventually(&format!("{part} to listen"), listens).await;
    }

    /// The parts that the profile has.
    #[must_use]
    pub fn parts(&self) -> Vec<&'static str> {
        let simulated = self.profile == "simulated";
        let names = PARTS.into_iter().map(|(part, _)| part).filter(|part| !self.left_out.contains(part));
        names.filter(|part| simulated || *part != "simulator").collect()
    }

    /// Restarts the parts that have aborted, and returns their names.
    ///
    /// # Panics
    /// When a part has ended in another way.
    pub fn replace_aborted(&mut self) -> Vec<&'static str> {
        let mut aborted = Vec::new();
        for (part, child) in &mut self.running {
            if let Some(status) = child.try_wait().expect("a status") {
                assert_eq!(status.signal(), Some(ABORTED), "{part} ended with {status}");
                aborted.push(*part);
            }
        }
        aborted.iter().for_each(|part| self.start_part(part));
        aborted
    }

    /// Starts one part.
    ///
    /// # Panics
    /// When its process cannot be started.
    pub fn start_part(&mut self, part: &'static str) {
        let (_, binary) = PARTS.iter().find(|(name, _)| *name == part).expect("a part");
        let log = self.directory.path().join(format!("{part}.log"));
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let before = log.metadata().expect("the length of a log").len();
        self.logged_before.insert(part, usize::try_from(before).expect("a length"));
        let program = binaries().join(binary);
        let mut command = match self.wrapper.split_first() {
            Some((wrapper, arguments)) => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(program);
                command
            }
            None => Command::new(program),
        };
        let child = command
            .args(["--profile", self.profile, "--config"])
            .arg(self.directory.path().join(SETTINGS))
            .args(self.certificate_flags(part))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        self.running.insert(part, child);
    }

    fn certificate_flags(&self, part: &str) -> Vec<String> {
        let Some(certificates) = &self.certificates else { return Vec::new() };
        let files = certificates.display();
        let settings =
            [format!("tls.certificate={files}/{part}.pem"), format!("tls.key={files}/{part}-key.pem")];
        settings.into_iter().flat_map(|one| ["--set".to_owned(), one]).collect()
    }

    /// Returns the address of one part.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn url(&self, part: &str) -> String {
        let index = PARTS.iter().position(|(name, _)| *name == part).expect("a part");
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.ports[index])
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
        self.until_listening(part).await;
        let id = self.process_id(part).to_string();
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

    /// Log of a part.
    #[must_use]
    pub fn log(&self, part: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("{part}.log"))).unwrap_or_default()
    }
}

impl Processes {
    fn show_components(&self) {
        let mut command = std::process::Command::new(binaries().join("reveille"));
        command.args(["get", "components", "-o", "json", "--url", self.bos.url()]);
        match command.output() {
            Ok(shown) => eprintln!("--- the components\n{}", String::from_utf8_lossy(&shown.stdout)),
            Err(error) => eprintln!("--- the components cannot be shown: {error}"),
        }
    }
}

/// A test that fails shows how the parts fared.
impl Drop for Processes {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        self.show_components();
        for (part, _) in PARTS {
            let log = self.log(part);
            let last = log.lines().rev().filter(|line| !line.contains(ANSWERED));
            let last = last.take(LAST_LINES).collect::<Vec<_>>();
            eprintln!("--- the last lines of {part}");
            last.into_iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

fn settings(directory: &TempDir, ports: &[u16]) -> String {
    let mut text = format!("data_dir = \"{}\"\n[log]\nfilter = \"{LOG}\"\n", directory.path().display());
    for ((part, _), port) in PARTS.iter().zip(ports) {
        text += &format!("[{part}]\nlisten = \"127.0.0.1:{port}\"\nurl = \"http://127.0.0.1:{port}\"\n");
    }
    text
}

/// Merges `more` into the settings, section by section.
fn merge(all: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(held)), toml::Value::Table(more)) => merge(held, more),
            (_, value) => drop(all.insert(key, value)),
        }
    }
}

/// Variable that is set once the binaries are built: cargo takes a second of each test to find out that they are.
const ARE_BUILT: &str = "REVEILLE_TEST_BINARIES_ARE_BUILT";

/// Directory of the mesh's binaries, which are built if they are not up to date.
///
/// # Panics
/// When they cannot be built.
pub fn binaries() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        if std::env::var_os(ARE_BUILT).is_none() {
            let built = std::process::Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--workspace", "--bins"])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status()
                .expect("cargo");
            assert!(built.success(), "the binaries cannot be built");
        }
        let test = std::env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("the target directory").to_owned()
    })
}
