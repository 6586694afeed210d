//! The commands of operators against a mesh with simulated nodes.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Sections of the settings with an address.
const PARTS: [&str; 10] = [
    "gateway",
    "component_registry",
    "session_manager",
    "status_evaluator",
    "power_controller",
    "config_coordinator",
    "host_provisioner",
    "fleet_manager",
    "insight",
    "simulator",
];

/// Longest wait for what takes seconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Template that the simulated upstreams accept.
const TEMPLATE: &str = "\
name: compute
description: compute nodes
boot_sets:
  compute:
    type: s3
    path: s3://boot-images/compute/manifest.json
    node_list: [x1000c0s0b0n0, x1000c0s0b0n1, x1000c0s0b1n0]
";

/// Mesh in a process of its own, which ends with the test.
struct RunningMesh {
    process: Child,
    directory: TempDir,
    url: String,
}

impl RunningMesh {
    /// Starts a mesh with eight nodes and waits until it knows them.
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Held together, so that no port is given twice.
        let listeners = PARTS.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        let mut settings = String::new();
        for (part, port) in PARTS.iter().zip(ports) {
            settings += &format!("[{part}]\nlisten = '127.0.0.1:{port}'\nurl = 'http://127.0.0.1:{port}'\n");
        }
        settings += "nodes = 8\nspeed = 0.0\n";
        let file = directory.path().join("settings.toml");
        std::fs::write(&file, settings).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_reveille"))
            .args(["serve", "--log", "error", "--config"])
            .arg(&file)
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mesh = Self { process, directory, url: format!("http://127.0.0.1:{}", ports[0]) };
        let began = Instant::now();
        while mesh.run("status -o json").document()["components"]["count"] != 8 {
            assert!(began.elapsed() < PATIENCE, "the mesh does not get ready");
            std::thread::sleep(Duration::from_millis(200));
        }
        mesh
    }

    fn command(&self, line: &str) -> Command {
        let mut command = operator(self.directory.path(), line);
        command.env("REVEILLE_URL", &self.url);
        command
    }

    /// Runs a command to its end.
    fn run(&self, line: &str) -> Ended {
        Ended(self.command(line).output().unwrap())
    }

    /// Runs a command, checks its exit code, and returns its standard output.
    fn ends(&self, line: &str, code: i32) -> String {
        let ended = self.run(line);
        assert_eq!(ended.0.status.code(), Some(code), "{line}: {ended:?}");
        ended.output()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let file = self.directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }
}

impl Drop for RunningMesh {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Command that sees no settings of the user.
fn operator(directory: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
    command.args(line.split(' ')).stdin(Stdio::null());
    command.env("REVEILLE_CONTEXT_FILE", directory.join("contexts.toml"));
    for variable in ["REVEILLE_URL", "REVEILLE_TOKEN", "REVEILLE_TENANT", "REVEILLE_CONTEXT"] {
        command.env_remove(variable);
    }
    command
}

/// Result of a command.
#[derive(Debug)]
struct Ended(Output);

impl Ended {
    fn output(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn errors(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// Returns the JSON of the output; `null` if there is none.
    fn document(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).unwrap_or_default()
    }
}

#[test]
fn operator_boots_nodes_and_sees_how_it_went() {
    let mesh = RunningMesh::start();
    let file = mesh.file("compute.yaml", TEMPLATE);
    assert_eq!(mesh.ends(&format!("template validate -f {file}"), 0), "template compute is valid\n");
    assert_eq!(mesh.ends("get templates -o name", 0), "", "a check stores nothing");
    assert_eq!(mesh.ends(&format!("template apply -f {file}"), 0), "template compute stored\n");
    assert_eq!(mesh.ends("get templates -o name", 0), "compute\n");
    mesh.ends("template get compute -o yaml", 0);

    let boot = mesh.run("boot compute --name one --limit X1000c0s0b0n[00-01] --wait --interval 100ms");
    assert_eq!(boot.0.status.code(), Some(0), "{boot:?}");
    assert!(boot.output().contains("session one succeeded"), "{boot:?}");
    assert!(!boot.errors().contains('\u{1b}'), "nothing steers a terminal that is none: {boot:?}");

    let listed = mesh.run("get components --session one -o json").document();
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["x1000c0s0b0n0", "x1000c0s0b0n1"]);
    assert_eq!(mesh.ends("get components x1000c0s0b0n[0-1] -o name", 0), "x1000c0s0b0n0\nx1000c0s0b0n1\n");
    assert!(mesh.ends("get components --status stable", 0).starts_with("ID  "));
    assert!(mesh.ends("events --session one", 0).contains("session"));
    assert!(mesh.ends("explain x1000c0s0b0n0", 0).starts_with("x1000c0s0b0n0 is as wanted"));
    let explained = mesh.run("explain session one -o json").document();
    assert_eq!((&explained["subject"], &explained["reason"]), (&"one".into(), &"session_as_wanted".into()));
    let followed = mesh.run("watch session one -o json").document();
    assert_eq!((&followed["name"], &followed["result"]), (&"one".into(), &"succeeded".into()));
    assert!(mesh.ends("session get one -o yaml", 0).contains("name: one"));
    assert_eq!(mesh.ends("enable x1000c0s0b0n[0-1] -o name", 0), "x1000c0s0b0n0\nx1000c0s0b0n1\n");
    mesh.ends("session delete one", 0);
    mesh.ends("session get one", 3);
    mesh.ends("template delete compute", 0);
}

#[test]
fn operator_boots_by_a_plan() {
    let mesh = RunningMesh::start();
    let file = mesh.file("compute.yaml", TEMPLATE);
    mesh.ends(&format!("template apply -f {file}"), 0);
    let limit = "--limit X1000c0s0b0n[00-01]";
    let shown = mesh.ends(&format!("plan compute {limit}"), 0);
    assert!(shown.contains("2      power_on"), "{shown}");
    let next = shown.lines().find_map(|line| line.strip_prefix("next: reveille ")).unwrap();
    assert_eq!(mesh.ends("get sessions -o name", 0), "", "a plan creates no session");
    assert_eq!(mesh.ends(&format!("plan compute {limit} -o name"), 0), "x1000c0s0b0n0\nx1000c0s0b0n1\n");
    let planned = mesh.run(&format!("plan compute {limit} -o json")).document();
    assert_eq!(planned["taken"], 2, "{planned:#}");
    assert!(mesh.ends(&format!("plan compute {limit} -o wide"), 0).contains("x1000c0s0b0n1"));
    assert!(mesh.ends(&format!("plan compute {limit} -o yaml"), 0).contains("taken: 2"));

    // The command that the plan ends with, as a shell would split it.
    let hash = planned["hash"].as_str().unwrap();
    assert!(next.ends_with(&format!("--plan {hash} --wait")), "{next}");
    let other = mesh.run(&format!("boot compute --plan {hash}"));
    assert_eq!(other.0.status.code(), Some(1), "{other:?}");
    assert!(other.errors().contains("it took 2 nodes, and 3 would be taken now"), "{other:?}");
    mesh.ends(&format!("{} --interval 100ms", next.replace('\'', "")), 0);
    let again = mesh.run(&format!("plan compute {limit} -o json")).document();
    assert_eq!(again["actions"], serde_json::json!({"none": 2}), "{again:#}");
    mesh.ends("plan compute --limit x9999c0s0b0n0", 7);
    mesh.ends("plan nothing", 1);
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let mesh = RunningMesh::start();
    let absent = TEMPLATE.replace("[x1000c0s0b0n0, x1000c0s0b0n1, x1000c0s0b1n0]", "[x9999c0s0b0n0]");
    let file = mesh.file("absent.yaml", &absent);
    mesh.ends(&format!("template apply absent -f {file}"), 0);
    let idle = mesh.run("boot absent --name none --wait --interval 100ms -o json");
    assert_eq!(idle.0.status.code(), Some(7), "{idle:?}");
    assert_eq!(idle.document()["result"], "nothing_to_do");
    assert_eq!(mesh.run("watch session none").0.status.code(), Some(7));

    for (line, code, told) in [
        ("boot nothing", 1, "Session Template Name invalid: nothing"),
        ("boot absent --limit x1000c[3-0]", 2, "the range ends below its beginning (character 8)"),
        ("get components x1000c0s0b0n[0-9]", 3, "next: `reveille get components` lists them"),
        ("explain x9999c0s0b0n0", 3, "there is no component x9999c0s0b0n0"),
        ("explain session unknown", 3, "there is no session unknown"),
        ("explain host unknown", 3, "there is no host default/unknown"),
        ("explain host unknown --namespace metal", 3, "there is no host metal/unknown"),
        ("explain device unknown", 3, "there is no device unknown"),
        ("explain x1000c0s0b0n[0-1]", 2, "one node is explained at a time"),
        ("explain", 2, "<NODE>"),
        ("enable x9999c0s0b0n0", 3, "there is no component x9999c0s0b0n0"),
        ("watch session unknown", 3, "there is no session unknown"),
        ("options set no_such_option=1", 3, "there is no option no_such_option"),
        ("options set max_boot_wait_time=-1", 1, "max_boot_wait_time"),
        ("status --context unknown", 3, "there is no context unknown"),
        ("status --url http://127.0.0.1:1", 4, "does not answer"),
        ("frobnicate", 2, "unrecognized subcommand"),
    ] {
        let ended = mesh.run(line);
        assert_eq!(ended.0.status.code(), Some(code), "{line}: {ended:?}");
        assert!(ended.errors().contains(told), "{line}: {ended:?}");
    }
    assert!(mesh.ends("options set max_boot_wait_time=1234", 0).contains("1234"));
    assert!(mesh.ends("options get max_boot_wait_time", 0).contains("1234"));
}

#[test]
fn readers_may_leave() {
    let mesh = RunningMesh::start();
    let mut watch = mesh.command("watch components --interval 100ms").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("x1000c0s0b0n0"), "{line}");
    drop(lines);
    mesh.ends("options get", 0);
    let file = mesh.file("compute.yaml", TEMPLATE);
    mesh.ends(&format!("template apply -f {file}"), 0);
    // A change is written to nobody, which ends the watch. One between two looks is not seen, so it takes some.
    let began = Instant::now();
    let status = loop {
        if let Some(status) = watch.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "the watch does not end");
        mesh.ends("reboot compute --wait --interval 100ms", 0);
    };
    assert!(status.success(), "{status}");
}

#[test]
fn contexts_are_kept_for_their_owner() {
    let directory = tempfile::tempdir().unwrap();
    let done = |line: &str| {
        let ended = Ended(operator(directory.path(), line).output().unwrap());
        assert!(ended.0.status.success(), "{line}: {ended:?}");
        ended.output()
    };
    done("context add east --url https://east.example:7700 --tenant blue");
    done("context add west --url http://127.0.0.1:1");
    assert_eq!(done("context list -o name"), "east\nwest\n");
    done("context use west");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(directory.path().join("contexts.toml")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let ended = Ended(operator(directory.path(), "get sessions").output().unwrap());
    assert!(ended.errors().contains("http://127.0.0.1:1 does not answer"), "{ended:?}");
    done("context remove west");
    assert!(done("context list").contains("https://east.example:7700"));
}

#[test]
fn shells_and_manuals_know_the_commands() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let ended = Ended(operator(directory.path(), &format!("completions {shell}")).output().unwrap());
        assert!(ended.output().contains("limit"), "{shell}");
    }
    let pages = directory.path().join("man");
    let ended = operator(directory.path(), &format!("man --directory {}", pages.display())).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let mut page = String::new();
    let mut file = std::fs::File::open(pages.join("reveille-boot.1")).unwrap();
    file.read_to_string(&mut page).unwrap();
    assert!(page.contains("limit"), "{page}");
}
