//! The program `reveille` as people start it.

use std::{
    net::TcpListener,
    path::Path,
    process::{ExitStatus, Stdio},
};

use integration_tests::{
    PATIENCE,
    processes::{PARTS, ProgramExit, binaries, run},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

const COMMANDS: &str = "serve demo import export status get watch plan boot reboot shutdown session template options events policy \
                        context completions man --help --version";

const COMMON_FLAGS: &str = "--profile --config --set --data-dir --log --print-config --help";

#[tokio::test(flavor = "multi_thread")]
async fn help_mentions_every_command_and_flag() {
    let demo_flags = "--nodes --seed --speed --operation --faults --inventory --groups --template --exit";
    helps("reveille", "--help", COMMANDS).await;
    helps("reveille", "serve --help", COMMON_FLAGS).await;
    helps("reveille", "demo --help", &format!("{demo_flags} {COMMON_FLAGS}")).await;
    let host_flags = "--hosts --speed --exit";
    helps("reveille", "demo hosts --help", &format!("{host_flags} {COMMON_FLAGS}")).await;
    helps("reveille", "demo devices --help", &format!("--devices --speed --exit {COMMON_FLAGS}")).await;
    helps("reveille", "import --help", "--enabled --url --config --dry-run").await;
    helps("reveille", "export --help", "--url --config --dry-run").await;
    for (_, binary) in PARTS {
        helps(binary, "--help", &format!("Serves {COMMON_FLAGS}")).await;
    }
}

/// Checks that a program mentions some words when it is asked for help.
async fn helps(binary: &str, question: &str, mentioned: &str) {
    let ended = run(binary, &question.split(' ').collect::<Vec<_>>()).await;
    assert!(ended.status.success(), "{binary} {question}: {ended:?}");
    for word in mentioned.split(' ') {
        assert!(ended.output.contains(word), "{binary} {question} hides {word}: {}", ended.output);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_boots_its_fleet_and_leaves() {
    let directory = tempfile::tempdir().unwrap();
    for profile in ["simulated", "csm"] {
        let data = directory.path().join(profile);
        let ended = demo(&data, &format!("--exit --speed 0 --profile {profile}")).await;
        assert!(ended.status.success(), "{ended:?}");
        let counts = final_counts(&ended.output);
        assert_eq!(counts, [("stable", "96")], "{profile}: {}", ended.output);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_hosts_boots_them_and_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let ended = demo(&directory.path().join("data"), "hosts --exit --speed 0 --hosts 3").await;
    assert!(ended.status.success(), "{ended:?}");
    let is_available = |line: &&str| line.contains("  available    on");
    assert_eq!(ended.output.lines().filter(is_available).count(), 3, "{}", ended.output);
    assert_eq!(final_counts(&ended.output), [("stable", "3")], "{}", ended.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_devices_updates_them_and_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "devices --exit --speed 0 --devices 4 --set gateway.agents.listen=127.0.0.1:0";
    let ended = demo(&directory.path().join("data"), flags).await;
    assert!(ended.status.success(), "{ended:?}");
    let count = |word: &str| ended.output.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!([count("enrolled"), count("reached"), count("trouble")], [1, 2, 3], "{}", ended.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_tells_injected_faults_from_real_trouble() {
    let directory = tempfile::tempdir().unwrap();
    let ended = demo(directory.path(), "--exit --speed 0 --nodes 20 --faults stuck-off=1").await;
    assert!(ended.status.success(), "{ended:?}");
    let counts = final_counts(&ended.output);
    assert_eq!(counts.iter().find(|(status, _)| *status == "failed"), Some(&("failed", "1")));
    let mut lines = ended.output.lines().skip_while(|line| *line != "what failed and why").skip(1);
    let (why, nodes) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    assert!(why.starts_with("1 node failed: ") && why.ends_with("(injected: stuck-off)"), "{}", ended.output);
    assert!(nodes.trim().starts_with('x'), "no node is named: {}", ended.output);
}

/// Runs the demo to its end.
async fn demo(directory: &Path, flags: &str) -> ProgramExit {
    reveille(&format!("demo {flags}"), directory).await
}

/// Runs a command line to its end, on free ports and with data in `directory` unless the line overrides them.
async fn reveille(line: &str, directory: &Path) -> ProgramExit {
    let words = apart(line, directory);
    run("reveille", &words.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// The words of a command line with flags that keep it apart from everything else. They come before its own,
/// which win.
fn apart(line: &str, directory: &Path) -> Vec<String> {
    let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let own = words.split_off(words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len()));
    for (part, _) in PARTS {
        words.extend(["--set".to_owned(), format!("{part}.listen=127.0.0.1:0")]);
    }
    if !own.iter().any(|word| word == "--data-dir") {
        words.extend(["--data-dir".to_owned(), directory.join("data").display().to_string()]);
    }
    words.extend(own);
    words
}

/// Returns the number of nodes in the summary for each final status.
fn final_counts(output: &str) -> Vec<(&str, &str)> {
    let lines = output.lines().skip_while(|line| !line.starts_with("final status")).skip(1);
    lines.map_while(|line| line.split_once(' ').map(|(status, count)| (status, count.trim()))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_stays_and_shows_calls_that_work() {
    stays("demo --speed 0 --nodes 4").await;
    stays("demo hosts --speed 0 --hosts 2").await;
    stays("demo devices --speed 0 --devices 2 --set gateway.agents.listen=127.0.0.1:0").await;
}

/// Runs a demo that stays, makes the calls that it shows, and interrupts it.
async fn stays(line: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(binaries().join("reveille"))
        .args(apart(line, directory.path()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut calls = Vec::new();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a line in time").unwrap();
        let line = line.expect("a demo that stays");
        if line == "press Ctrl-C to stop" {
            break;
        }
        calls.extend(line.trim().strip_prefix("curl -s ").map(|url| url.trim_matches('\'').to_owned()));
    }
    assert!(calls.len() >= 2, "{calls:?}");
    for url in calls {
        let status = reqwest::get(&url).await.unwrap().status();
        assert!(status.is_success(), "{url}: {status}");
    }
    let id = child.id().unwrap().to_string();
    Command::new("kill").args(["-INT", &id]).status().await.unwrap();
    let ended: ExitStatus = timeout(PATIENCE, child.wait()).await.expect("an end in time").unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_settings_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("reveille.toml");
    let given = ["serve", "--print-config", "--set", "gateway.listen=127.0.0.1:4711", "--log", "debug"];
    let printed = run("reveille", &given).await;
    assert!(printed.status.success() && printed.output.contains("127.0.0.1:4711"), "{printed:?}");
    std::fs::write(&file, &printed.output).unwrap();
    let again = run("reveille", &["serve", "--print-config", "--config", file.to_str().unwrap()]).await;
    assert_eq!(again.output, printed.output, "{}", again.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let write = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let broken = write("broken.json", "{\"Components\": [\n  {\"ID\": \"x1000c0s0b0n0\",\n  }\n]}\n");
    let typed = write("typed.json", "{\"Components\": [\n  {\"ID\": 5, \"Type\": \"Node\"}\n]}\n");
    let groups = write("groups.json", "[{\"label\": \"blue\",\n]\n");
    let template = write("template.json", "{\"boot_sets\": \n");
    let toml = write("bad.toml", "[gateway]\nlissen = \"127.0.0.1:0\"\n");
    let no_directory = format!("{toml}/data");
    let secret = "mysql://bos:s3cret@db.example/bos";
    for (line, told) in [
        ("serve --frobnicate".to_owned(), vec!["--frobnicate"]),
        ("demo --speed fast".to_owned(), vec!["--speed", "fast"]),
        ("demo --faults gremlins=1".to_owned(), vec!["--faults", "gremlins"]),
        ("demo --operation dance".to_owned(), vec!["--operation", "dance"]),
        ("demo --nodes 0".to_owned(), vec!["--nodes", "0"]),
        ("demo hosts --hosts 0".to_owned(), vec!["--hosts", "0"]),
        ("demo devices --devices 501".to_owned(), vec!["--devices", "501"]),
        ("demo devices --set gateway.agents.listen=here".to_owned(), vec!["gateway.agents.listen"]),
        ("demo hosts --set inventory.driver=simulated".to_owned(), vec!["inventory.driver", "hosts"]),
        (format!("serve --config {toml}"), vec!["bad.toml", "lissen"]),
        ("serve --config no-such-file.toml".to_owned(), vec!["no-such-file.toml"]),
        ("serve --set gateway.lissen=127.0.0.1:0".to_owned(), vec!["gateway", "lissen"]),
        (format!("serve --set gateway.listen={address}"), vec!["gateway.listen", &address]),
        (format!("demo --exit --set gateway.listen={address}"), vec!["gateway.listen", &address]),
        ("serve --profile cloud".to_owned(), vec!["--profile", "cloud"]),
        ("serve --profile redfish".to_owned(), vec!["power controller", "machine_file"]),
        ("serve --set inventory.driver=hsm".to_owned(), vec!["inventory.hsm.url", "not set"]),
        (format!("serve --set session_manager.database_url={secret}"), vec!["session_manager.database_url"]),
        (format!("serve --data-dir {no_directory}"), vec!["data_dir", &no_directory]),
        (format!("demo --exit --data-dir {no_directory}"), vec!["data_dir", &no_directory]),
        (format!("demo --exit --inventory {broken}"), vec!["broken.json", "line 3"]),
        (format!("demo --exit --inventory {typed}"), vec!["typed.json", "line 2", "ID"]),
        (format!("demo --exit --inventory {typed}-not-there"), vec!["typed.json-not-there"]),
        (format!("demo --exit --groups {groups}"), vec!["groups.json", "line 2"]),
        (format!("demo --exit --template {template}"), vec!["template.json", "line 2"]),
    ] {
        let ended = reveille(&line, directory.path()).await;
        assert!(matches!(ended.status.code(), Some(1 | 2)), "{line}: {ended:?}");
        assert!(!ended.errors.contains("s3cret"), "{}", ended.errors);
        let error = ended.errors.lines().find(|text| text.starts_with("error: ")).unwrap_or_default();
        for word in told {
            assert!(error.contains(word), "{line} does not tell {word}: {}", ended.errors);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_start_begins_with_its_cause() {
    let directory = tempfile::tempdir().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.display();
    for (line, beginning) in [
        (
            format!("serve --set gateway.listen={address}"),
            "error: Address already in use (gateway.listen: cannot listen on ".to_owned(),
        ),
        (format!("serve --data-dir {file}/data"), "error: Not a directory (".to_owned()),
        (
            format!("serve --set session_manager.database_url=sqlite://{file}/database"),
            "error: unable to open database file (session manager: ".to_owned(),
        ),
        (
            "serve --set component_registry.database_url=postgres://bos:s3cret@127.0.0.1:1/bos".into(),
            "error: Connection refused (component registry: database postgres://…@127.0.0.1:1/bos".into(),
        ),
    ] {
        let ended = reveille(&line, directory.path()).await;
        let error = ended.errors.lines().find(|text| text.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains(&beginning), "{line}: {}", ended.errors);
        assert!(!ended.errors.contains("s3cret"), "{}", ended.errors);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_credentials_are_named_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pcs.toml");
    std::fs::write(&file, "tokn = 's3cret'").unwrap();
    let none = directory.path().join("none.toml");
    let [empty, keys] =
        [("empty.toml", "token = ''"), ("keys.toml", "access_key = 'a'\nsecret_key = 's3cret'")].map(
            |(name, text)| {
                let path = directory.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            },
        );
    let (file, none, empty, keys) = (file.display(), none.display(), empty.display(), keys.display());
    let systems = "--set configuration.driver=cfs --set configuration.cfs.url=http://127.0.0.1:1 \
         --set configuration.cfs.plain_http=true --set images.catalogue=ims --set images.ims.url=http://127.0.0.1:1 \
         --set images.ims.plain_http=true --set power.driver=pcs --set power.pcs.url=http://127.0.0.1:1 --set power.pcs.plain_http=true \
         --set boot_parameters.driver=bss --set boot_parameters.bss.url=http://127.0.0.1:1 \
         --set boot_parameters.bss.plain_http=true";
    // The registry starts last and cannot, so that the program ends.
    let line = format!(
        "serve {systems} --set power.pcs.credentials=file:{file} \
         --set boot_parameters.bss.credentials=file:{none} \
         --set configuration.cfs.credentials=file:{keys} --set images.ims.credentials=file:{empty} \
         --set component_registry.database_url=sqlite://{file}/none"
    );
    let ended = reveille(&line, directory.path()).await;
    for (setting, reason) in [
        ("power.pcs.credentials", "not a TOML document"),
        ("boot_parameters.bss.credentials", "No such file"),
        (
            "configuration.cfs.credentials",
            "access_key cannot be used here; this peer can use token; username",
        ),
        ("images.ims.credentials", "token is empty; this peer can use token; username"),
    ] {
        let line = ended.errors.lines().find(|line| line.contains(setting)).unwrap_or_default();
        assert!(line.contains("credentials cannot be used") && line.contains(reason), "{}", ended.errors);
    }
    assert!(!ended.errors.contains("s3cret"), "{}", ended.errors);
}
