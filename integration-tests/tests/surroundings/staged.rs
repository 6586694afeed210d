//! Sessions that only stage, and nodes whose staged session is applied later.

use integration_tests::{bos::Bos, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::MachinePlan;

use crate::{
    scene::{MeshScene, TEMPLATE},
    served::MeshProcess,
};

const NODES: u32 = 8;

impl MeshScene {
    async fn clear_stage(&self, clear: bool) {
        self.mesh.bos.options(&json!({"clear_stage": clear})).await;
    }

    /// Stages something for these nodes.
    async fn stage(&self, operation: &str, ids: &[String]) -> String {
        staged(&self.mesh.bos, operation, ids).await
    }

    async fn apply(&self, ids: &[String]) -> Value {
        applied(&self.mesh.bos, ids).await
    }

    async fn status(&self, session: &str) -> Value {
        self.mesh.bos.get(&format!("/v2/sessions/{session}/status")).await
    }

    /// Waits until nodes are left alone with nothing wrong.
    async fn settle(&self, ids: &[String]) {
        let what = format!("{} nodes to settle", ids.len());
        self.until(&what, ids, |one| one["enabled"] == false && one["status"]["status"] == "stable").await;
    }
}

async fn staged(bos: &Bos, operation: &str, ids: &[String]) -> String {
    let wish =
        json!({"template_name": TEMPLATE, "operation": operation, "limit": ids.join(","), "stage": true});
    let session = bos.expect(Method::POST, "/v2/sessions", Some(&wish)).await;
    let name = session["name"].as_str().unwrap().to_owned();
    eventually("a session that runs", async || {
        let session = bos.get(&format!("/v2/sessions/{name}")).await;
        (session["status"]["status"] == "running").then_some(())
    })
    .await;
    name
}

async fn applied(bos: &Bos, ids: &[String]) -> Value {
    bos.expect(Method::POST, "/v2/applystaged", Some(&json!({"xnames": ids}))).await
}

fn outcome(succeeded: &[String], failed: &[String], ignored: &[String]) -> Value {
    json!({"succeeded": succeeded, "failed": failed, "ignored": ignored})
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_sessions_run_when_applied() {
    let scene = MeshScene::new(NODES).await;
    scene.clear_stage(true).await;
    let all = scene.mesh.bos.get("/v2/components").await;
    let all: Vec<_> =
        all.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let name = scene.stage("boot", &all).await;
    let session = scene.mesh.bos.get(&format!("/v2/sessions/{name}")).await;
    let members: Vec<_> = session["components"].as_str().unwrap().split(',').map(str::to_owned).collect();
    let (early, late) = members.split_at(members.len() / 2);
    let status = scene.status(&name).await;
    assert_eq!(
        (&status["percent_staged"], &status["managed_components_count"]),
        (&json!(100.0), &json!(members.len()))
    );
    scene.were_asked(&members, &[]);

    let strange = ["x9999c0s0b0n0".to_owned()];
    let twice = [early, &strange, &early[..1]].concat();
    let ignored = [&strange[..], &early[..1]].concat();
    assert_eq!(scene.apply(&twice).await, outcome(early, &[], &ignored));
    scene.settle(early).await;
    scene.were_asked(early, &["On"]);
    scene.were_asked(late, &[]);
    let status = scene.status(&name).await;
    let half = json!(50.0);
    assert_eq!([&status["percent_staged"], &status["percent_successful"]], [&half, &half], "{status}");
    assert_eq!(status["status"], "running");

    assert_eq!(scene.apply(late).await, outcome(late, &[], &[]));
    scene.succeeds(&name).await;
    scene.were_asked(&members, &["On"]);
    let component = scene.mesh.bos.component(&early[0]).await;
    assert_eq!(component["staged_state"].get("session"), None, "{component}");

    for operation in ["reboot", "shutdown"] {
        let name = scene.stage(operation, &members).await;
        assert_eq!(scene.status(&name).await["percent_staged"], json!(100.0));
        assert_eq!(scene.apply(&members).await, outcome(&members, &[], &[]));
        scene.succeeds(&name).await;
    }
    scene.were_asked(&members, &["On", "Soft-Off", "On", "Soft-Off"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_stays_staged_can_be_applied_again() {
    for complete_applied in [false, true] {
        let scene = MeshScene::of(MachinePlan::quick(NODES), |settings| {
            settings.sessions.complete_applied = complete_applied;
        })
        .await;
        let ids = scene.first(1);
        let name = scene.stage("reboot", &ids).await;
        scene.apply(&ids).await;
        scene.settle(&ids).await;
        if complete_applied {
            scene.succeeds(&name).await;
        } else {
            let status = scene.status(&name).await;
            assert_eq!(
                (&status["status"], &status["percent_successful"]),
                (&json!("running"), &json!(100.0))
            );
        }
        assert_eq!(scene.apply(&ids).await, outcome(&ids, &[], &[]));
        scene
            .until("the node to be rebooted", &ids, |one| {
                one["enabled"] == false && one["last_action"]["action"] == "powering_on"
            })
            .await;
        scene.were_asked(&ids, &["On", "Soft-Off", "On"]);
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_apply_names_its_reason() {
    for strict in [false, true] {
        let plan = MachinePlan::quick(NODES);
        let node = plan.hardware.iter().find(|one| one.role == "Compute").unwrap().id.clone();
        let tenants = [("blue".to_owned(), vec![node.clone()]), ("green".to_owned(), vec![])].into();
        let scene =
            MeshScene::of(MachinePlan { tenants, ..plan }, |settings| settings.compat.strict_bos = strict)
                .await;
        scene.clear_stage(true).await;
        let (ids, blue) = ([node], scene.mesh.bos.of_tenant("blue"));
        let nobody = scene.mesh.bos.of_tenant("nobody");
        let unknown = nobody.send(Method::POST, "/v2/applystaged", Some(&json!({}))).await;
        assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
        assert_eq!(unknown.body["title"], "Bad Request");
        let detail = "Error parsing the data provided: Data not found for tenant nobody";
        assert_eq!(unknown.body["detail"], detail);

        blue.template(TEMPLATE).await;
        let name = staged(&blue, "boot", &ids).await;
        let elsewhere = ["x9999c0s0b0n0".to_owned()];
        assert_eq!(applied(&blue, &elsewhere).await, outcome(&[], &[], &elsewhere));
        let component = format!("/v2/components/{}", ids[0]);
        let before = scene.mesh.bos.get(&component).await;
        let green = scene.mesh.bos.of_tenant("green");
        assert_eq!(applied(&green, &ids).await, outcome(&[], &[], &ids));
        assert_eq!(
            scene.mesh.bos.get(&component).await,
            before,
            "who does not have the node changes nothing"
        );
        if strict {
            assert_eq!(scene.apply(&ids).await, outcome(&[], &ids, &[]));
            let error = format!("Staged session no longer exists (session: {name}, tenant: )");
            assert_eq!(scene.mesh.bos.get(&component).await["error"], error);
        } else {
            scene.clear_stage(false).await;
            assert_eq!(scene.apply(&ids).await, outcome(&[], &ids, &[]));
            assert_eq!(scene.mesh.bos.get(&component).await, before);
            scene.clear_stage(true).await;
            assert_eq!(scene.apply(&ids).await, outcome(&[], &ids, &[]));
            let mut after = scene.mesh.bos.get(&component).await;
            assert_eq!(after["staged_state"].get("session"), None, "{after}");
            after["staged_state"] = before["staged_state"].clone();
            assert_eq!(after, before);
        }
        blue.complete(&name).await;
        assert_eq!(applied(&blue, &ids).await, outcome(&[], &[], &ids));

        let incomplete = json!({"staged_state": {"session": "by-hand", "boot_artifacts": {"kernel": "k"}}});
        scene.mesh.bos.expect(Method::PATCH, &component, Some(&incomplete)).await;
        assert_eq!(scene.apply(&ids).await, outcome(&[], &ids, &[]));
        let shown = scene.mesh.bos.get(&component).await;
        let gone =
            if strict { "Staged session no longer exists" } else { "the staged session no longer exists" };
        let error = format!("{gone} (session: by-hand, tenant: )");
        assert_eq!((&shown["error"], &shown["session"]), (&json!(error), &json!("by-hand")));
        assert_eq!(
            (&shown["enabled"], &shown["last_action"]["action"]),
            (&json!(false), &json!("apply_staged"))
        );
        scene.end().await;
    }
}

/// A tenant and the administrator each stage something under the same name, both for nodes of the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_same_name_are_told_apart() {
    let plan = MachinePlan::quick(NODES);
    let nodes: Vec<_> = plan.hardware.iter().filter(|one| one.role == "Compute").take(2).cloned().collect();
    let ids: Vec<_> = nodes.into_iter().map(|node| node.id).collect();
    let tenants = [("blue".to_owned(), ids.clone())].into();
    let scene = MeshScene::of(MachinePlan { tenants, ..plan }, |_| {}).await;
    scene.clear_stage(true).await;
    let (admin, blue) = (scene.mesh.bos.clone(), scene.mesh.bos.of_tenant("blue"));
    blue.template(TEMPLATE).await;
    let (own, theirs) = (&ids[..1], &ids[1..]);
    for (bos, limit) in [(&admin, own), (&blue, theirs)] {
        let wish = json!({"name": "s", "template_name": TEMPLATE, "operation": "boot", "stage": true,
            "limit": limit.join(",")});
        bos.expect(Method::POST, "/v2/sessions", Some(&wish)).await;
        eventually("a session that runs", async || {
            (bos.get("/v2/sessions/s").await["status"]["status"] == "running").then_some(())
        })
        .await;
        let status = bos.get("/v2/sessions/s/status").await;
        assert_eq!(status["managed_components_count"], 1, "{status}");
    }
    let listed = async |bos: &Bos, query: &str| {
        let found = bos.get(&format!("/v2/components?{query}")).await;
        found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&admin, "staged_session=s").await, ids);
    assert_eq!(listed(&blue, "staged_session=s").await, theirs);

    scene.clear_stage(false).await;
    assert_eq!(applied(&admin, theirs).await, outcome(&[], theirs, &[]));
    scene.clear_stage(true).await;
    assert_eq!(applied(&admin, own).await, outcome(own, &[], &[]));
    assert_eq!(admin.complete("s").await["components"], own[0].as_str());
    assert_eq!(blue.get("/v2/sessions/s").await["status"]["status"], "running");
    assert_eq!(applied(&blue, &ids).await, outcome(theirs, &[], own));
    assert_eq!(blue.complete("s").await["components"], theirs[0].as_str());
    assert_eq!(listed(&admin, "session=s").await, ids);
    assert_eq!(listed(&blue, "session=s").await, theirs);

    let patch = json!({"filters": {"session": "s"}, "patch": {"error": "looked at"}});
    let patched = blue.expect(Method::PATCH, "/v2/components", Some(&patch)).await;
    let patched: Vec<_> = patched.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(patched, theirs);
    for (bos, limit) in [(&admin, own), (&blue, theirs)] {
        let saved = bos.expect(Method::POST, "/v2/sessions/s/status", None).await;
        let errors =
            if limit == theirs { json!({"looked at": {"count": 1, "list": theirs[0]}}) } else { json!({}) };
        assert_eq!((&saved["managed_components_count"], &saved["error_summary"]), (&json!(1), &errors));
    }
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_boot_once_though_the_mesh_is_killed_midway() {
    let mut mesh = MeshProcess::prepare(MachinePlan::quick(NODES), "t", "s").await;
    mesh.start().await;
    mesh.bos.options(&json!({"clear_stage": true, "default_retry_policy": 1})).await;
    mesh.bos.template(TEMPLATE).await;
    let ids: Vec<_> = mesh.upstreams.ids();
    let name = staged(&mesh.bos, "boot", &ids).await;
    mesh.kill().await;
    mesh.start().await;
    let told = applied(&mesh.bos, &ids).await;
    mesh.kill().await;
    mesh.start().await;
    let session = mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status} {session}");
    for id in told["succeeded"].as_array().unwrap() {
        let events = mesh.upstreams.history(id.as_str().unwrap()).unwrap();
        let asked = events.iter().filter(|event| matches!(event.what, upstreams::EventKind::Asked { .. }));
        assert_eq!(asked.count(), 1, "{id}");
    }
    mesh.kill().await;
}
