//! Plans of sessions over REST, and sessions that are bound to them.

use integration_tests::{
    bos::{Bos, BosAnswer},
    mesh::Mesh,
};
use reqwest::Method;
use serde_json::{Value, json};

const PLANS: &str = "/reveille/v1/plans";
const SESSIONS: &str = "/reveille/v1/sessions";

async fn plan(bos: &Bos, operation: &str, template: &str) -> Value {
    let body = json!({ "operation": operation, "template_name": template });
    bos.expect(Method::POST, PLANS, Some(&body)).await
}

async fn create(bos: &Bos, operation: &str, template: &str, hash: &Value) -> BosAnswer {
    let body = json!({ "operation": operation, "template_name": template, "plan_hash": hash });
    bos.send(Method::POST, SESSIONS, Some(&body)).await
}

/// Returns every record that a plan could have changed.
async fn everything(bos: &Bos) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/v2/components",
        "/v2/sessions",
        "/v2/sessiontemplates",
        "/v2/options",
        "/reveille/v1/timeline?limit=1000",
    ] {
        all.push(bos.get(path).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_fleet_is_planned_and_booted_by_the_plan() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    bos.template("image-1").await;
    let before = everything(bos).await;
    let planned = plan(bos, "boot", "image-1").await;
    assert_eq!(everything(bos).await, before, "a plan changes nothing");

    let nodes = planned["nodes"].as_array().unwrap();
    let components = bos.get("/v2/components").await;
    assert_eq!(nodes.len(), components.as_array().unwrap().len());
    // Nobody has acted on the fleet yet: its power was read for the plan.
    for node in nodes {
        assert!(["on", "off"].contains(&node["power"].as_str().unwrap()), "{node:#}");
        let expected = if node["power"] == "on" { "restart" } else { "power_on" };
        assert_eq!(node["action"], expected, "{node:#}");
    }
    let found = planned["findings"].as_array().unwrap().iter().filter(|one| one["severity"] == "error");
    assert_eq!(found.count(), 0, "{:#}", planned["findings"]);

    let created = create(bos, "boot", "image-1", &planned["hash"]).await;
    assert_eq!(created.status, 201, "{:#}", created.body);
    let session = created.body["name"].as_str().unwrap();
    bos.complete(session).await;
    let ended = bos.get(&format!("{SESSIONS}/{session}")).await;
    assert_eq!(ended["result"], "succeeded", "{ended:#}");
    assert_eq!(ended["members"], nodes.len());

    // Nodes that run the target need nothing more, and their reboot is another plan.
    let again = plan(bos, "boot", "image-1").await;
    assert_eq!(again["actions"], json!({ "none": nodes.len() }), "{again:#}");
    assert_eq!(again["hash"], planned["hash"]);
    let reboot = plan(bos, "reboot", "image-1").await;
    assert_eq!(reboot["actions"], json!({ "restart": nodes.len() }));
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_refused_with_what_has_changed() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    bos.template("image-1").await;
    let planned = plan(bos, "boot", "image-1").await;
    let count = planned["taken"].as_u64().unwrap();
    let first = planned["nodes"][0]["id"].as_str().unwrap();

    bos.template_with("image-1", |template| {
        template["boot_sets"]["compute"]["node_list"] = json!([first]);
        let set = template["boot_sets"]["compute"].as_object_mut().unwrap();
        set.remove("node_roles_groups");
        set.remove("node_groups");
    })
    .await;
    let refused = create(bos, "boot", "image-1", &planned["hash"]).await;
    assert_eq!(refused.status, 409, "{:#}", refused.body);
    let detail = refused.body["detail"].as_str().unwrap();
    let expected = format!("the template has changed; it took {count} nodes, and 1 would be taken now");
    assert!(detail.ends_with(&expected), "{detail}");
    assert_eq!(bos.get("/v2/sessions").await, json!([]));

    for (body, status) in [
        (json!({ "operation": "boot", "template_name": "image-1", "plan_hash": "p1" }), 400),
        (json!({ "operation": "boot", "template_name": "image-1", "plan_hash": "" }), 400),
        (json!({ "operation": "boot", "template_name": "image-1", "plan": "p1" }), 400),
        (json!({ "operation": "boot", "template_name": "none" }), 400),
    ] {
        let answer = bos.send(Method::POST, SESSIONS, Some(&body)).await;
        assert_eq!(answer.status, status, "{body}: {:#}", answer.body);
    }
    let unknown = json!({ "operation": "boot", "template_name": "none" });
    assert_eq!(bos.send(Method::POST, PLANS, Some(&unknown)).await.status, 400);
    // The contract of BOS has no plans.
    let strange = json!({ "operation": "boot", "template_name": "image-1", "plan_hash": planned["hash"] });
    assert_eq!(bos.send(Method::POST, "/v2/sessions", Some(&strange)).await.status, 400);
    mesh.stop().await;
}
