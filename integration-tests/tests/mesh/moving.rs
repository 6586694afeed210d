//! Moving in and out: `reveille export` and `reveille import` against meshes.

use std::{fs, path::Path};

use integration_tests::{
    mesh::Mesh,
    processes::{ProgramExit, run},
};
use reqwest::Method;
use serde_json::{Value, json};

const FILES: [&str; 3] = ["options.json", "sessiontemplates.json", "components.json"];

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_makes_a_fresh_mesh_the_same() {
    let (old, new) = (furnished().await, empty().await);
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));

    told(&export(&old, &first).await, true, &["options.json", "2 sessiontemplates", "9 components"]);
    let dry = import(&new, &first, &["--dry-run"]).await;
    told(&dry, true, &["1 to change", "2 to create", "9 to create", "nothing was written"]);
    assert_eq!(new.bos.get("/v2/components").await, json!([]), "a dry run writes nothing");

    let done = import(&new, &first, &[]).await;
    told(&done, true, &["1 changed", "2 created", "9 created", "imported"]);
    told(&import(&new, &first, &[]).await, true, &["2 left", "9 left", "nothing to change"]);

    told(&export(&new, &second).await, true, &["wrote"]);
    for file in FILES {
        let [first, second] = [&first, &second].map(|folder| read(&folder.join("v2").join(file)));
        assert_eq!(second, first, "{file}");
    }
    old.stop().await;
    new.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_records_are_told_and_keep_no_other_out() {
    let mesh = empty().await;
    let directory = tempfile::tempdir().unwrap();
    let boot_sets = json!({"a": {"type": "s3", "path": "s3://b/i/manifest.json", "node_list": ["x1"]}});
    let mut too_long = boot_sets.clone();
    too_long["a"]["kernel_parameters"] = "k".repeat(4097).into();
    let write =
        |name: &str, content: Value| fs::write(directory.path().join(name), content.to_string()).unwrap();
    write("options.json", json!({"clear_stage": true, "bss_read_timeout": 1, "frobnicate": {}}));
    write(
        "sessiontemplates.json",
        json!([
            {"name": "-bad", "boot_sets": boot_sets},
            {"name": "good", "tenant": null, "boot_sets": boot_sets},
            {"name": "good", "description": "another", "boot_sets": boot_sets},
            {"name": "long", "boot_sets": too_long},
        ]),
    );
    let mut components: Vec<_> = (0..40).map(|number| json!({"id": format!("c{number:02}")})).collect();
    components[7]["retry_policy"] = json!(-1);
    components[23] = json!({"enabled": false});
    write("components.json", components.into());

    let before = mesh.bos.get("/v2/options").await;
    let dry = import(&mesh, directory.path(), &["--dry-run"]).await;
    told(&dry, false, &["1 to change, 0 left, 2 skipped", "1 to create, 0 to change, 0 left, 3 skipped"]);
    told(&dry, false, &["38 to create, 0 to change, 0 left, 2 skipped"]);
    for path in ["/v2/sessiontemplates", "/v2/components"] {
        assert_eq!(mesh.bos.get(path).await, json!([]), "a dry run writes nothing");
    }
    assert_eq!(mesh.bos.get("/v2/options").await, before, "a dry run writes nothing");

    let done = import(&mesh, directory.path(), &[]).await;
    told(
        &done,
        false,
        &["1 changed, 0 left, 2 skipped", "1 created, 0 changed, 0 left, 3 skipped", "38 created"],
    );
    assert_eq!(skipped(&done), skipped(&dry), "a dry run knows what will be skipped");
    for skipped in [
        "options.json: bss_read_timeout: ",
        "options.json: frobnicate: is no option",
        "sessiontemplates.json[0] -bad: name: ",
        "sessiontemplates.json[2] good: name: was there before",
        "sessiontemplates.json[3] long: ",
        "components.json[7] c07: ",
        "components.json[23]: id: is missing",
    ] {
        assert!(done.errors.contains(&format!("skipped: {skipped}")), "{skipped} in {}", done.errors);
    }
    assert_eq!(mesh.bos.get("/v2/components").await.as_array().unwrap().len(), 38);
    assert_eq!(mesh.bos.get("/v2/options").await["clear_stage"], true);

    // An unreadable file is found before any other file is imported.
    write("options.json", json!({"reject_nids": true}));
    fs::write(directory.path().join("components.json"), "[\n{\"id\": \"late\"},\n").unwrap();
    let broken = import(&mesh, directory.path(), &[]).await;
    assert!(!broken.status.success() && broken.errors.starts_with("error: EOF"), "{broken:?}");
    assert!(broken.errors.contains("components.json)"), "{broken:?}");
    assert_eq!(mesh.bos.get("/v2/options").await["reject_nids"], false);
    mesh.stop().await;
}

/// The records that were skipped, with the reasons.
fn skipped(ended: &ProgramExit) -> Vec<&str> {
    ended.errors.lines().filter(|line| line.starts_with("skipped: ")).collect()
}

/// A mesh with options, templates and components of its own.
async fn furnished() -> Mesh {
    let mesh = Mesh::start(async |_| {}).await;
    mesh.bos.options(&json!({"max_boot_wait_time": 901})).await;
    mesh.bos.template("t1").await;
    mesh.bos.of_tenant("blue").template("t1").await;
    let record = json!({
        "enabled": false, "retry_policy": 2, "session": "s1", "error": "line\nline",
        "desired_state": {"configuration": "c", "boot_artifacts": {"kernel": "k", "initrd": "i"}},
        "staged_state": {"configuration": "next"},
        "status": {"phase": "", "status_override": "on_hold"},
    });
    mesh.bos.expect(Method::PUT, "/v2/components/held", Some(&record)).await;
    mesh
}

/// A mesh without anything.
async fn empty() -> Mesh {
    Mesh::start(async |settings| settings.simulator.nodes = 0).await
}

async fn export(mesh: &Mesh, directory: &Path) -> ProgramExit {
    moving(mesh, "export", directory, &[]).await
}

async fn import(mesh: &Mesh, directory: &Path, flags: &[&str]) -> ProgramExit {
    moving(mesh, "import", directory, flags).await
}

async fn moving(mesh: &Mesh, task: &str, directory: &Path, flags: &[&str]) -> ProgramExit {
    run("reveille", &[&[task, directory.to_str().unwrap(), "--url", mesh.bos.url()], flags].concat()).await
}

fn told(ended: &ProgramExit, success: bool, words: &[&str]) {
    assert_eq!(ended.status.success(), success, "{ended:?}");
    for word in words {
        assert!(ended.output.contains(word), "'{word}' is not told: {ended:?}");
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
