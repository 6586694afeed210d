//! A PostgreSQL server of a test's own, which can be stopped, killed and started again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{PATIENCE, ports::free_ports};

/// Directory in which Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The directory with the data of a server, and that with those of its copy.
const DATA: &str = "data";
const COPY: &str = "copy";

/// The account as which the server runs where the test is root, as which it refuses to.
const ACCOUNT: &str = "postgres";

/// A server on the loopback interface, which syncs to disk as a real one does, and is killed on drop.
pub struct Postgres {
    /// Removed with the value.
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Postgres {
    /// Starts a server; `None` where PostgreSQL is not installed.
    ///
    /// # Panics
    /// When it cannot be set up.
    pub async fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("not tested: there is no server below {VERSIONS}");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("reveille-postgres").tempdir_in("/tmp");
        let directory = directory.expect("a directory");
        if is_root() {
            let owner = Command::new("chown").arg(ACCOUNT).arg(directory.path()).status().await;
            assert!(owner.expect("chown").success(), "there is no account {ACCOUNT}");
        }
        let port = free_ports(1)[0];
        let mut server = Self { directory, programs, port, running: None };
        let data = server.directory.path().join(DATA);
        let made = server
            .command("initdb")
            .args([
                "--username",
                "reveille",
                "--auth",
                "trust",
                "--encoding",
                "UTF8",
                "--locale",
                "C.UTF-8",
                "--pgdata",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .await;
        assert!(made.expect("initdb").success(), "no data directory");
        server.start_again().await;
        Some(server)
    }

    /// Address of one of its databases, which [`Self::create`] makes.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://reveille@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database.
    ///
    /// # Panics
    /// When that is refused.
    pub async fn create(&self, database: &str) -> String {
        self.sql(&format!("CREATE DATABASE {database}")).await;
        self.url(database)
    }

    /// Runs one statement as the administrator.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn sql(&self, statement: &str) -> String {
        self.sql_in("postgres", statement).await
    }

    /// Runs a statement in one of the server's databases.
    ///
    /// # Panics
    /// When the statement is refused.
    pub async fn sql_in(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        let done =
            psql.arg(self.url(database)).args(["-qtAX", "-c", statement]).output().await.expect("psql");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Starts it again and waits until it takes connections.
    ///
    /// # Panics
    /// When it does not.
    pub async fn start_again(&mut self) {
        let until = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < until {
            self.launch();
            // The backends of a server that was killed may still hold its memory: then it ends at once.
            while self.lives() {
                if self.accepts().await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the server does not start");
    }

    /// Stops the server in order: connections are closed, memory is written.
    ///
    /// # Panics
    /// When the server does not stop.
    pub async fn stop(&mut self) {
        self.end("-INT").await;
    }

    /// Kills the server, as a crash of the machine does from its clients' point of view. (Its other processes notice
    /// and end as well.)
    ///
    /// # Panics
    /// When the server had ended before.
    pub async fn kill(&mut self) {
        self.end("-KILL").await;
    }

    /// Copies all that is committed, for [`Self::fail_over`].
    ///
    /// # Panics
    /// When that is refused.
    pub async fn copy(&self) {
        let copy = self.directory.path().join(COPY);
        let mut command = self.command("pg_basebackup");
        command.args(["--checkpoint=fast", "--wal-method=stream", "--dbname", &self.url("postgres")]);
        let made = command.arg("--pgdata").arg(&copy).status().await;
        assert!(made.expect("pg_basebackup").success(), "no copy");
        fs::write(copy.join("standby.signal"), "").expect("a stand-in");
    }

    /// Kills the server and fails over to the copy, which lacks the commits since it was made.
    ///
    /// # Panics
    /// When there is no copy or it does not take over.
    pub async fn fail_over(&mut self) {
        self.kill().await;
        let home = self.directory.path();
        end_processes_in(&home.join(DATA));
        fs::remove_dir_all(home.join(DATA)).expect("the data of before");
        fs::rename(home.join(COPY), home.join(DATA)).expect("a copy");
        self.start_again().await;
        assert_eq!(self.sql("SELECT pg_promote()").await, "t", "it does not take over");
    }

    async fn end(&mut self, signal: &str) {
        let mut child = self.running.take().expect("a server that runs");
        let id = child.id().expect("a process that was not waited for").to_string();
        let told = Command::new("kill").args([signal, &id]).status().await.expect("kill");
        assert!(told.success(), "it had ended before");
        child.wait().await.expect("an end");
    }

    fn launch(&mut self) {
        let home = self.directory.path();
        let child = self
            .command("postgres")
            .arg("-D")
            .arg(home.join(DATA))
            .arg("-k")
            .arg(home)
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a server");
        self.running = Some(child);
    }

    fn lives(&mut self) -> bool {
        self.running.as_mut().is_some_and(|child| child.try_wait().expect("a status").is_none())
    }

    async fn accepts(&self) -> bool {
        let mut asked = Command::new(self.programs.join("pg_isready"));
        let port = self.port.to_string();
        asked.args(["--quiet", "--host", "127.0.0.1", "--port", &port]);
        asked.status().await.expect("pg_isready").success()
    }

    /// A program that runs as the account of the server, under the process id of the spawned child.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let account = [format!("--reuid={ACCOUNT}"), format!("--regid={ACCOUNT}")];
            command.args(account).arg("--init-groups").arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Postgres {
    /// Ends also the remaining processes of killed servers: not each of them always notices.
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // The server may have ended.
            let _ended = running.start_kill();
        }
        end_processes_in(&self.directory.path().join(DATA));
    }
}

/// Ends the processes that work in a directory, as those of a server do in that of its data, and waits until they have.
fn end_processes_in(directory: &Path) {
    let works_there =
        |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|works_in| works_in == directory);
    let all = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let left: Vec<_> = all.map(|process| process.path()).filter(works_there).collect();
    for process in &left {
        let id = process.file_name().unwrap_or_default();
        // The process may end by itself meanwhile.
        let _ended = std::process::Command::new("kill").arg("-KILL").arg(id).status();
    }
    let until = Instant::now() + PATIENCE;
    while left.iter().any(works_there) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.filter_map(Result::ok);
    let number = |path: &PathBuf| -> Option<u32> { path.file_name()?.to_str()?.parse().ok() };
    let newest =
        versions.map(|entry| entry.path()).filter(|path| number(path).is_some()).max_by_key(number)?;
    let programs = newest.join("bin");
    programs.join("initdb").exists().then_some(programs)
}

fn is_root() -> bool {
    let own = fs::metadata("/proc/self").ok();
    own.is_some_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
