//! The mesh as a process of its own, as `reveille serve --profile csm`, among systems that this process plays.

use std::{
    fmt::Write as _,
    fs::{self, File},
    process::Stdio,
};

use integration_tests::{bos::Bos, ports::free_ports, processes::binaries};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
};
use upstreams::{
    MachinePlan,
    Service::{self, Bss, Cfs, Hsm, Ims, Pcs, S3, Tapms},
    Upstreams,
};

/// Sections of the parts that listen.
const PARTS: [&str; 9] = [
    "component_registry",
    "session_manager",
    "status_evaluator",
    "power_controller",
    "config_coordinator",
    "host_provisioner",
    "fleet_manager",
    "insight",
    "gateway",
];

/// Sections of the systems, and the file with the credentials for each.
const PEERS: [(&str, Service, &str); 7] = [
    ("inventory.hsm", Hsm, TOKEN),
    ("power.pcs", Pcs, TOKEN),
    ("boot_parameters.bss", Bss, TOKEN),
    ("configuration.cfs", Cfs, TOKEN),
    ("images.s3", S3, KEYS),
    ("images.ims", Ims, TOKEN),
    ("tenants.tapms", Tapms, TOKEN),
];

/// File with the token that every system but the image store is shown.
const TOKEN: &str = "token.toml";

/// File with the keys of the image store.
const KEYS: &str = "keys.toml";

/// Logs everything but the traffic between the parts.
const LOG: &str =
    "debug,upstream=trace,reqwest=trace,hyper=trace,hyper_util=trace,h2=info,sqlx=info,sea_orm=info";

/// A mesh in a process, which is killed when this is dropped, and the systems around it.
pub struct MeshProcess {
    pub bos: Bos,
    pub upstreams: Upstreams,
    directory: TempDir,
    ports: Vec<u16>,
    running: Option<Child>,
}

impl MeshProcess {
    /// The systems of `plan`, and everything that a mesh needs, which is not started yet. The systems can be shown
    /// `token`, and the image store `secret_key`.
    pub async fn prepare(plan: MachinePlan, token: &str, secret_key: &str) -> Self {
        let (directory, ports) = (tempfile::tempdir().unwrap(), free_ports(PARTS.len()));
        let gateway_url = format!("http://127.0.0.1:{}", ports.last().unwrap());
        let bos = Bos::new(&gateway_url);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstreams = Upstreams::start(MachinePlan { gateway_url, ..plan }, listener).unwrap();
        let served = Self { bos, upstreams, directory, ports, running: None };
        served.write_token(token);
        let keys = format!("access_key = \"reveille\"\nsecret_key = \"{secret_key}\"\n");
        fs::write(served.directory.path().join(KEYS), keys).unwrap();
        fs::write(served.directory.path().join("reveille.toml"), served.settings()).unwrap();
        served
    }

    /// Writes the token that is to be shown from now on.
    pub fn write_token(&self, token: &str) {
        // Renamed into place, as a rotation of tokens does, so that no reader gets half a file.
        let (new, file) = (self.directory.path().join("token.new"), self.directory.path().join(TOKEN));
        fs::write(&new, format!("token = \"{token}\"\n")).unwrap();
        fs::rename(new, file).unwrap();
    }

    fn settings(&self) -> String {
        let directory = self.directory.path().display();
        let mut text = format!("data_dir = \"{directory}\"\n[log]\nfilter = \"{LOG}\"\n");
        for (part, port) in PARTS.iter().zip(&self.ports) {
            let url = format!("http://127.0.0.1:{port}");
            write!(text, "[{part}]\nlisten = \"127.0.0.1:{port}\"\nurl = \"{url}\"\n").unwrap();
        }
        for (peer, service, credentials) in PEERS {
            let url = self.upstreams.url_of(service);
            write!(text, "[{peer}]\nurl = \"{url}\"\ncredentials = \"file:{directory}/{credentials}\"\n")
                .unwrap();
        }
        text += "[power]\nfollow_seconds = 0.1\npoll_seconds = 0.2\nconfirm_seconds = 0.0\n";
        text + "[configuration]\npoll_seconds = 0.2\n"
    }

    /// Starts the process and waits until it is ready and knows all nodes.
    pub async fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let child = Command::new(binaries().join("reveille"))
            .args(["serve", "--profile", "csm", "--config"])
            .arg(self.directory.path().join("reveille.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let running = self.running.insert(child);
        tokio::select! {
            () = self.bos.ready() => {}
            ended = running.wait() => panic!("it ended at once: {ended:?}"),
        }
        self.bos.discovered(self.upstreams.ids().len()).await;
    }

    /// Ends the process without warning.
    pub async fn kill(&mut self) {
        let mut child = self.running.take().unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "it had ended before:\n{}", self.log());
        child.kill().await.unwrap();
    }

    /// Returns the address of a part.
    pub fn url(&self, part: &str) -> String {
        let index = PARTS.iter().position(|name| *name == part).unwrap();
        format!("http://127.0.0.1:{}", self.ports[index])
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }
}

/// A test that fails shows how the process fared.
impl Drop for MeshProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let last =
                log.lines().rev().filter(|line| !line.contains("\"TRACE\"")).take(20).collect::<Vec<_>>();
            last.into_iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}
