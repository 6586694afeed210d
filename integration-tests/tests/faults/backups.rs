//! `reveille backup` of a mesh that runs, and `reveille restore` once it is stopped, while readers keep running.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use integration_tests::{
    eventually_shown,
    postgres::Postgres,
    processes::{Processes, ProgramExit, run},
    replicas::ACTING,
};
use serde_json::Value;

const NODES: u32 = 8;

/// A node of the simulated fleet.
const NODE: &str = "x1000c0s0b0n0";

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied_while_they_are_used_and_put_back() {
    comes_back(Processes::start(NODES, 0.0).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_a_server_are_copied_and_put_back() {
    let Some(server) = Postgres::start().await else { return };
    let mut mesh = Processes::prepare();
    mesh.set(&format!("[simulator]\nnodes = {NODES}\nspeed = 0.0\n"));
    // The others have files.
    for part in ["component_registry", "session_manager", "power_controller"] {
        let url = server.create(part).await;
        mesh.set(&format!("[{part}]\ndatabase_url = \"{url}\"\n"));
    }
    mesh.begin().await;
    mesh.bos.discovered(NODES as usize).await;
    comes_back(mesh).await;
}

async fn comes_back(mut mesh: Processes) {
    mesh.bos.template("kept").await;
    let before = mesh.bos.session("kept", "boot").await;
    mesh.bos.complete(&before).await;
    let backup = mesh.directory.path().join("backup");
    succeeded(&tool(&mesh, "backup", &backup).await);
    is_private(&backup);

    mesh.bos.template("lost").await;
    let after = mesh.bos.session("lost", "reboot").await;
    mesh.bos.complete(&after).await;
    let refused = tool(&mesh, "restore", &backup).await;
    assert!(!refused.status.success() && refused.errors.contains("stop every part first"), "{refused:?}");
    let again = tool(&mesh, "backup", &backup).await;
    assert!(!again.status.success() && again.errors.contains("exists already"), "{again:?}");

    // The gateway and insight hold their watches meanwhile.
    for part in ACTING {
        mesh.stop_part(part).await;
    }
    succeeded(&tool(&mesh, "restore", &backup).await);
    for part in ACTING {
        mesh.start_part(part);
    }
    mesh.bos.ready().await;
    assert_eq!(names(&mesh, "/v2/sessiontemplates").await, ["kept"]);
    assert_eq!(names(&mesh, "/v2/sessions").await, std::slice::from_ref(&before));
    let component = mesh.bos.component(NODE).await;
    assert_eq!(component["session"], before.as_str(), "{component}");
    readers_follow(&mesh, &before).await;
    let next = mesh.bos.session("kept", "reboot").await;
    let ended = mesh.bos.complete(&next).await;
    assert_eq!(ended["status"]["error"], Value::Null, "{ended}");
    assert!(aside(&mesh), "what was there is kept");
}

/// Waits until a part that has watched all the time explains by the restored records.
async fn readers_follow(mesh: &Processes, session: &str) {
    eventually_shown("insight to follow", async || {
        let explained = mesh.bos.get(&format!("/reveille/v1/explain/components/{NODE}")).await;
        if explained.to_string().contains(session) { Ok(()) } else { Err(explained) }
    })
    .await;
}

async fn tool(mesh: &Processes, command: &str, backup: &Path) -> ProgramExit {
    let settings = mesh.directory.path().join("reveille.toml");
    let [backup, settings] = [backup, &settings].map(|path| path.to_str().unwrap());
    run("reveille", &[command, backup, "--config", settings]).await
}

fn succeeded(exit: &ProgramExit) {
    assert!(exit.status.success(), "{exit:?}");
}

/// Names of the records at a path.
async fn names(mesh: &Processes, path: &str) -> Vec<String> {
    let records = mesh.bos.get(path).await;
    records.as_array().unwrap().iter().map(|record| record["name"].as_str().unwrap().to_owned()).collect()
}

/// Checks that a backup, and the databases of the parts, are private to their user.
fn is_private(backup: &Path) {
    let data = backup.parent().unwrap();
    let databases = files(data).filter(|path| path.to_string_lossy().contains(".sqlite"));
    for path in files(backup).chain(databases).chain([backup.to_owned()]) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}

fn files(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
}

fn aside(mesh: &Processes) -> bool {
    let mut entries = fs::read_dir(mesh.directory.path()).unwrap();
    entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("before-restore-"))
}
