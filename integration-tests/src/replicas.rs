//! Several processes of each part on databases of a PostgreSQL, one of which acts.

use std::{collections::BTreeMap, fs::File, process::Stdio, time::Duration};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    PATIENCE,
    bos::Bos,
    eventually, eventually_shown,
    ports::free_ports,
    processes::{PARTS, binaries},
};

/// The parts that there are several of and that act, by the sections of their settings.
pub const ACTING: [&str; 7] = [
    "component_registry",
    "session_manager",
    "status_evaluator",
    "power_controller",
    "config_coordinator",
    "host_provisioner",
    "fleet_manager",
];

/// A mesh with several replicas of each part but the simulator. They are killed when it is dropped.
pub struct Replicas {
    /// Directory of settings and logs.
    pub directory: TempDir,
    /// The gateways.
    pub gateways: Vec<Bos>,
    ports: BTreeMap<&'static str, Vec<u16>>,
    running: BTreeMap<(&'static str, usize), Child>,
}

impl Replicas {
    /// Starts `count` replicas of each part, of at most `most`, with a simulated fleet of `nodes` whose hardware takes
    /// `speed` of its real time. `None` where the environment offers no PostgreSQL.
    ///
    /// # Panics
    /// When a part does not start.
    pub async fn start(count: usize, most: usize, nodes: u32, speed: f64) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut ports = BTreeMap::new();
        let mut settings =
            format!("data_dir = \"{}\"\n[log]\nfilter = \"info\"\n", directory.path().display());
        // Replicas cannot make a key that all of them know.
        settings += &format!("[hosts]\nsecret_keys = [\"{}\"]\n", "5e".repeat(32));
        for (part, _) in PARTS {
            let own = free_ports(if part == "simulator" { 1 } else { most });
            let urls: Vec<_> = own.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
            // Nodes report over plain HTTP, and know one address of the gateway.
            let url = if part == "gateway" { urls[0].clone() } else { urls.join(",") };
            settings += &format!("[{part}]\nurl = \"{url}\"\n");
            if part == "simulator" {
                settings += &format!("nodes = {nodes}\nspeed = {speed:?}\n");
            }
            if ACTING.contains(&part) {
                settings += &format!("database_url = \"{}\"\n", test_databases::on_postgres().await?);
            }
            ports.insert(part, own);
        }
        std::fs::write(directory.path().join("reveille.toml"), settings).expect("a writable directory");
        let gateways = ports["gateway"].iter().map(|port| Bos::new(&format!("http://127.0.0.1:{port}")));
        let gateways = gateways.collect();
        let mut mesh = Self { directory, gateways, ports, running: BTreeMap::new() };
        mesh.start_replica("simulator", 0);
        for index in 0..count {
            mesh.start_all(index);
        }
        for bos in &mesh.gateways[..count] {
            bos.ready().await;
        }
        mesh.gateways[0].discovered(nodes as usize).await;
        for part in ACTING {
            mesh.holder(part).await;
        }
        Some(mesh)
    }

    /// The contract, as the first gateway serves it.
    #[must_use]
    pub fn bos(&self) -> &Bos {
        &self.gateways[0]
    }

    /// Starts one more replica of every part but the simulator.
    ///
    /// # Panics
    /// When a process cannot be started.
    pub fn start_all(&mut self, index: usize) {
        for (part, _) in PARTS.into_iter().filter(|(part, _)| *part != "simulator") {
            self.start_replica(part, index);
        }
    }

    /// Starts one replica of a part.
    ///
    /// # Panics
    /// When its process cannot be started.
    pub fn start_replica(&mut self, part: &'static str, index: usize) {
        let (_, binary) = PARTS.iter().find(|(name, _)| *name == part).expect("a part");
        let log = File::options().create(true).append(true).open(self.log_file(part, index)).expect("a log");
        let listen = format!("{part}.listen=127.0.0.1:{}", self.ports[part][index]);
        let child = Command::new(binaries().join(binary))
            .arg("--config")
            .arg(self.directory.path().join("reveille.toml"))
            .args(["--set", &listen])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        self.running.insert((part, index), child);
    }

    /// Returns the address of one replica.
    #[must_use]
    pub fn url(&self, part: &str, index: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[part][index])
    }

    /// Sends a signal such as `STOP` to one replica.
    ///
    /// # Panics
    /// When it has ended.
    pub async fn signal(&self, part: &'static str, index: usize, signal: &str) {
        let id = self.running[&(part, index)].id().expect("a process that was not waited for").to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status().await.expect("kill");
        assert!(sent.success(), "{part} {index} has ended");
    }

    /// Ends one replica without warning, as a crash does.
    ///
    /// # Panics
    /// When it had ended before.
    pub async fn kill(&mut self, part: &'static str, index: usize) {
        let mut child = self.running.remove(&(part, index)).expect("a running replica");
        assert_eq!(child.try_wait().expect("a status"), None, "{part} {index} had ended before");
        child.kill().await.expect("a process to kill");
    }

    /// Asks one replica to end and waits until it has.
    ///
    /// # Panics
    /// When it does not end in time or ends with an error.
    pub async fn stop(&mut self, part: &'static str, index: usize) {
        self.signal(part, index, "TERM").await;
        self.ended(part, index).await;
    }

    /// Waits until one replica that was asked to has ended.
    ///
    /// # Panics
    /// When it does not end in time or ends with an error.
    pub async fn ended(&mut self, part: &'static str, index: usize) {
        let mut child = self.running.remove(&(part, index)).expect("a running replica");
        let ended =
            tokio::time::timeout(PATIENCE, child.wait()).await.expect("an end in time").expect("a status");
        assert!(ended.success(), "{part} {index} ended with {ended}; its log:\n{}", self.log(part, index));
    }

    /// The replicas of a part that run.
    #[must_use]
    pub fn replicas(&self, part: &str) -> Vec<usize> {
        self.running.keys().filter(|(name, _)| *name == part).map(|(_, index)| *index).collect()
    }

    /// Returns whether a replica holds the role of its part; `None` if it does not report that.
    pub async fn holds(&self, part: &str, index: usize) -> Option<bool> {
        let asked = reqwest::Client::new().get(format!("{}/metrics", self.url(part, index)));
        let text = asked.timeout(Duration::from_secs(2)).send().await.ok()?.text().await.ok()?;
        let line = text.lines().find(|line| line.starts_with("reveille_role_held{"))?;
        line.rsplit(' ').next()?.parse::<u32>().ok().map(|held| held > 0)
    }

    /// Waits until every running replica of a part reports whether it holds the role, and one does. Returns that one.
    ///
    /// # Panics
    /// When that does not happen.
    pub async fn holder(&self, part: &str) -> usize {
        let replicas = self.replicas(part);
        eventually_shown(&format!("a holder of the role of {part}"), async || {
            let mut held = Vec::new();
            for index in &replicas {
                held.push(self.holds(part, *index).await);
            }
            let holders = replicas.iter().zip(&held).filter(|(_, held)| **held == Some(true));
            let holders: Vec<_> = holders.map(|(index, _)| *index).collect();
            match holders[..] {
                [holder] if !held.contains(&None) => Ok(holder),
                _ => Err(held),
            }
        })
        .await
    }

    /// Waits until the replicas of a part serve the gateway.
    pub async fn serves(&self) {
        for index in self.replicas("gateway") {
            self.gateways[index].ready().await;
        }
    }

    /// Returns the log of a replica.
    #[must_use]
    pub fn log(&self, part: &str, index: usize) -> String {
        std::fs::read_to_string(self.log_file(part, index)).unwrap_or_default()
    }

    /// Returns how often a replica has logged a text.
    #[must_use]
    pub fn logged(&self, part: &str, index: usize, text: &str) -> usize {
        self.log(part, index).matches(text).count()
    }

    /// Waits until a replica has logged a text more often than `before`.
    ///
    /// # Panics
    /// When it does not happen.
    pub async fn logs(&self, part: &str, index: usize, text: &str, before: usize) {
        let more = async || (self.logged(part, index, text) > before).then_some(());
        eventually(&format!("'{text}' in the log of {part} {index}"), more).await;
    }

    fn log_file(&self, part: &str, index: usize) -> std::path::PathBuf {
        self.directory.path().join(format!("{part}.{index}.log"))
    }
}

/// A test that fails shows how the parts fared.
impl Drop for Replicas {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for (part, index) in self.running.keys() {
            let log = self.log(part, *index);
            let last = log.lines().rev().take(4).collect::<Vec<_>>();
            eprintln!("--- the last lines of {part} {index}");
            last.into_iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}
