//! Two tenants with the same names for everything, and the administrator.

use std::collections::BTreeMap;

use chassis::settings::Settings;
use expect_test::expect;
use futures_util::future::join_all;
use integration_tests::{bos::Bos, eventually, eventually_shown};
use reqwest::Method;
use serde_json::{Value, json};
use upstreams::{
    HardwareFault, IdCollection, MachinePlan, NodeFaults, Service::Tapms, ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk};

/// Eight nodes: the first four belong to `blue`, which also has an unknown one, the next two to `green`, and the last
/// two to no tenant. `bare` has no nodes.
async fn scene(adjust: impl FnOnce(&mut Settings)) -> MeshScene {
    let plan = MachinePlan::quick(8);
    let ids: Vec<_> =
        plan.hardware.iter().filter(|one| one.r#type == "Node").map(|one| one.id.clone()).collect();
    let with = |ids: &[String]| ids.to_vec();
    let tenants = BTreeMap::from([
        ("blue".to_owned(), [with(&ids[..4]), vec!["x9c9s9b9n9".to_owned()]].concat()),
        ("green".to_owned(), with(&ids[4..6])),
        ("bare".to_owned(), Vec::new()),
    ]);
    MeshScene::of(MachinePlan { tenants, ..plan }, adjust).await
}

/// The names that the tables have for nodes.
fn named(scene: &MeshScene, text: &str, by_id: bool) -> String {
    scene.upstreams.ids().iter().enumerate().fold(text.to_owned(), |text, (n, id)| match by_id {
        true => text.replace(id, &format!("n{n}")),
        false => text.replace(&format!("n{n}"), id),
    })
}

impl MeshScene {
    fn bos_of(&self, tenant: &str) -> Bos {
        self.mesh.bos.of_tenant(tenant)
    }

    /// The request, its status, and the names or the problem in the answer, as one line. Nodes are called `n0` and so
    /// on in request and line.
    async fn line(&self, tenant: &str, method: &str, path: &str, body: &str) -> String {
        let (asked, sent) = (named(self, path, false), named(self, body, false));
        let body_sent: Option<Value> = (!sent.is_empty()).then(|| serde_json::from_str(&sent).unwrap());
        let method_sent = Method::from_bytes(method.as_bytes()).unwrap();
        let answer = self.bos_of(tenant).send(method_sent, &asked, body_sent.as_ref()).await;
        let name = |one: &Value| {
            let name = one["id"].as_str().or(one["name"].as_str()).unwrap_or("?").to_owned();
            match one["tenant"].as_str() {
                Some(tenant) => format!("{tenant}/{name}"),
                None => name,
            }
        };
        let told = match &answer.body {
            Value::Array(all) => {
                let mut all: Vec<_> = all.iter().map(name).collect();
                all.sort_unstable();
                format!("[{}]", all.join(" "))
            }
            one if answer.status.is_success() && one.is_object() => name(one),
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            problem => format!(
                "{}: {}",
                problem["title"].as_str().unwrap_or_default(),
                problem["detail"].as_str().unwrap_or_default()
            ),
        };
        let tenant = if tenant.is_empty() { "-" } else { tenant };
        let line = format!("{tenant} {method} {path} {body} -> {} {told}", answer.status.as_u16());
        named(self, &line, true).split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
    }

    async fn lines(&self, rows: &[(&str, &str, &str, &str)]) -> String {
        let mut lines = String::new();
        for (tenant, method, path, body) in rows {
            lines += &self.line(tenant, method, path, body).await;
        }
        lines
    }

    /// Nodes that have this error, as the administrator sees it.
    async fn with_error(&self, error: &str) -> String {
        let components = self.mesh.bos.get("/v2/components").await;
        let components = components.as_array().unwrap().iter();
        let ids = components.filter(|one| one["error"] == error).map(|one| one["id"].as_str().unwrap());
        named(self, &ids.collect::<Vec<_>>().join(" "), true)
    }

    /// Sets the nodes of a tenant in the tenant service.
    fn gives(&self, tenant: &str, nodes: &[&str]) {
        let ids = nodes.iter().map(|node| named(self, node, false)).collect();
        self.upstreams.set_collection(IdCollection::Tenant, tenant, Some(ids));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn to_a_tenant_only_its_own_nodes_exist() {
    let scene = scene(|_| {}).await;
    check_reads(&scene).await;
    check_patches(&scene).await;
    check_puts_and_deletions(&scene).await;
    scene.end().await;
}

async fn check_reads(scene: &MeshScene) {
    let lines = scene
        .lines(&[
            ("", "GET", "/v2/components", ""),
            ("blue", "GET", "/v2/components", ""),
            ("green", "GET", "/v2/components?enabled=false", ""),
            ("bare", "GET", "/v2/components", ""),
            ("blue", "GET", "/v2/components?ids=n5,n0,x9c9s9b9n9", ""),
            ("blue", "GET", "/v2/components?ids=n5,n6", ""),
            ("blue", "GET", "/v2/components?page_size=2&start_after_id=n0", ""),
            ("blue", "GET", "/v2/components/n3", ""),
            ("blue", "GET", "/v2/components/n4", ""),
            ("bare", "GET", "/v2/components/n4", ""),
            ("blue", "GET", "/v2/components/x9c9s9b9n9", ""),
        ])
        .await;
    expect![[r#"
        - GET /v2/components -> 200 [n0 n1 n2 n3 n4 n5 n6 n7]
        blue GET /v2/components -> 200 [n0 n1 n2 n3]
        green GET /v2/components?enabled=false -> 200 [n4 n5]
        bare GET /v2/components -> 200 []
        blue GET /v2/components?ids=n5,n0,x9c9s9b9n9 -> 200 [n0]
        blue GET /v2/components?ids=n5,n6 -> 200 []
        blue GET /v2/components?page_size=2&start_after_id=n0 -> 200 [n1 n2]
        blue GET /v2/components/n3 -> 200 n3
        blue GET /v2/components/n4 -> 404 The resource was not found: Component 'n4' does not exist
        bare GET /v2/components/n4 -> 404 The resource was not found: Component 'n4' does not exist
        blue GET /v2/components/x9c9s9b9n9 -> 404 The resource was not found: Component 'x9c9s9b9n9' does not exist
    "#]].assert_eq(&lines);
}

async fn check_patches(scene: &MeshScene) {
    let lines = scene
        .lines(&[
            (
                "",
                "PATCH",
                "/v2/components",
                r#"[{"id":"n0","session":"s"},{"id":"n4","session":"s"},{"id":"n6","session":"s"}]"#,
            ),
            ("blue", "GET", "/v2/components?session=s", ""),
            ("bare", "GET", "/v2/components?session=s", ""),
            ("blue", "PATCH", "/v2/components/n4", r#"{"error":"by blue"}"#),
            ("blue", "PATCH", "/v2/components/n1", r#"{"error":"by blue"}"#),
            ("blue", "PATCH", "/v2/components", "[]"),
            (
                "blue",
                "PATCH",
                "/v2/components",
                r#"[{"id":"n2","error":"by blue"},{"id":"n5","error":"by blue"}]"#,
            ),
            (
                "blue",
                "PATCH",
                "/v2/components?skip_bad_ids=true",
                r#"[{"id":"n3","error":"by blue"},{"id":"n5","error":"by blue"}]"#,
            ),
            ("blue", "PATCH", "/v2/components", r#"{"patch":{"error":"by blue"},"filters":{"ids":"n2,n6"}}"#),
            (
                "blue",
                "PATCH",
                "/v2/components?skip_bad_ids=true",
                r#"{"patch":{"error":"by blue"},"filters":{"ids":"n6"}}"#,
            ),
            ("blue", "PATCH", "/v2/components", r#"{"patch":{"error":"by blue"},"filters":{"session":"s"}}"#),
            ("bare", "PATCH", "/v2/components", r#"{"patch":{"error":"by bare"},"filters":{"session":"s"}}"#),
        ])
        .await;
    expect![[r#"
        - PATCH /v2/components [{"id":"n0","session":"s"},{"id":"n4","session":"s"},{"id":"n6","session":"s"}] -> 200 [n0 n4 n6]
        blue GET /v2/components?session=s -> 200 [n0]
        bare GET /v2/components?session=s -> 200 []
        blue PATCH /v2/components/n4 {"error":"by blue"} -> 404 The resource was not found: Component 'n4' does not exist
        blue PATCH /v2/components/n1 {"error":"by blue"} -> 200 n1
        blue PATCH /v2/components [] -> 200 []
        blue PATCH /v2/components [{"id":"n2","error":"by blue"},{"id":"n5","error":"by blue"}] -> 404 The resource was not found: Component 'n5' does not exist
        blue PATCH /v2/components?skip_bad_ids=true [{"id":"n3","error":"by blue"},{"id":"n5","error":"by blue"}] -> 200 [n3]
        blue PATCH /v2/components {"patch":{"error":"by blue"},"filters":{"ids":"n2,n6"}} -> 404 The resource was not found: Component 'n6' does not exist
        blue PATCH /v2/components?skip_bad_ids=true {"patch":{"error":"by blue"},"filters":{"ids":"n6"}} -> 200 []
        blue PATCH /v2/components {"patch":{"error":"by blue"},"filters":{"session":"s"}} -> 200 [n0]
        bare PATCH /v2/components {"patch":{"error":"by bare"},"filters":{"session":"s"}} -> 200 []
    "#]].assert_eq(&lines);
    assert_eq!(scene.with_error("by blue").await, "n0 n1 n3");
    assert_eq!(scene.with_error("by bare").await, "");
}

async fn check_puts_and_deletions(scene: &MeshScene) {
    let lines = scene
        .lines(&[
            ("blue", "PUT", "/v2/components/n4", r#"{"error":"put"}"#),
            ("blue", "PUT", "/v2/components", r#"[{"id":"n2","error":"put"},{"id":"n7","error":"put"}]"#),
            ("bare", "PUT", "/v2/components", r#"[{"id":"n2","error":"put"}]"#),
            ("blue", "PUT", "/v2/components/n1", r#"{"error":"put"}"#),
            ("blue", "PUT", "/v2/components", r#"[{"id":"x9c9s9b9n9","error":"put"}]"#),
            ("blue", "DELETE", "/v2/components/n4", ""),
            ("blue", "DELETE", "/v2/components/x9c9s9b9n9", ""),
            ("blue", "DELETE", "/v2/components/x9c9s9b9n9", ""),
        ])
        .await;
    expect![[r#"
        blue PUT /v2/components/n4 {"error":"put"} -> 400 Bad Request: components that the tenant does not have: n4
        blue PUT /v2/components [{"id":"n2","error":"put"},{"id":"n7","error":"put"}] -> 400 Bad Request: components that the tenant does not have: n7
        bare PUT /v2/components [{"id":"n2","error":"put"}] -> 400 Bad Request: components that the tenant does not have: n2
        blue PUT /v2/components/n1 {"error":"put"} -> 200 n1
        blue PUT /v2/components [{"id":"x9c9s9b9n9","error":"put"}] -> 200 [x9c9s9b9n9]
        blue DELETE /v2/components/n4 -> 404 The resource was not found: Component 'n4' does not exist
        blue DELETE /v2/components/x9c9s9b9n9 -> 204
        blue DELETE /v2/components/x9c9s9b9n9 -> 404 The resource was not found: Component 'x9c9s9b9n9' does not exist
    "#]].assert_eq(&lines);
    assert_eq!(scene.with_error("put").await, "n1");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_defines_its_answer_to_an_unknown_tenant() {
    let scene = scene(|_| {}).await;
    let template =
        json!({"boot_sets": {"c": {"path": "s3://b/i/manifest.json", "type": "s3", "node_list": ["n0"]}}});
    let template = template.to_string();
    let session = json!({"template_name": TEMPLATE, "operation": "boot", "name": "s"}).to_string();
    let nobody = "stranger";
    let lines = scene
        .lines(&[
            (nobody, "PUT", "/v2/sessiontemplates/t", &template),
            (nobody, "PUT", "/v2/sessiontemplates/t", r#"{"boot_sets":{"c":{"path":"p","type":"s3"}}}"#),
            (nobody, "POST", "/v2/sessions", &session),
            (nobody, "GET", "/v2/components", ""),
            (nobody, "GET", "/v2/components/n0", ""),
            (nobody, "PATCH", "/v2/components/n0", r#"{"error":"e"}"#),
            (nobody, "DELETE", "/v2/components/n0", ""),
            (nobody, "PATCH", "/v2/components", "[]"),
            (nobody, "PATCH", "/v2/components", r#"{"patch":{"error":"e"},"filters":{"ids":"n0"}}"#),
            (nobody, "PUT", "/v2/components/n0", r#"{"error":"e"}"#),
            (nobody, "PUT", "/v2/components", r#"[{"id":"n0","error":"e"}]"#),
            (nobody, "POST", "/v2/applystaged", r#"{"xnames":[]}"#),
            (nobody, "GET", "/v2/sessiontemplates", ""),
            (nobody, "GET", "/v2/sessions", ""),
            (nobody, "GET", &format!("/v2/sessiontemplates/{TEMPLATE}"), ""),
            (nobody, "PATCH", &format!("/v2/sessiontemplates/{TEMPLATE}"), r#"{"description":"d"}"#),
            (nobody, "DELETE", &format!("/v2/sessiontemplates/{TEMPLATE}"), ""),
            (nobody, "GET", &format!("/v2/sessiontemplatesvalid/{TEMPLATE}"), ""),
            (nobody, "GET", "/v2/sessions/s", ""),
            (nobody, "PATCH", "/v2/sessions/s", "{}"),
            (nobody, "DELETE", "/v2/sessions/s", ""),
            (nobody, "GET", "/v2/sessions/s/status", ""),
            (nobody, "POST", "/v2/sessions/s/status", ""),
            (nobody, "DELETE", "/v2/sessions", ""),
            (&"x".repeat(127), "GET", "/v2/sessions", ""),
            (&"x".repeat(128), "GET", "/v2/sessions", ""),
            (&"x".repeat(128), "GET", "/v2/components", ""),
            ("", "GET", "/v2/components/n0", ""),
        ])
        .await;
    expect![[r#"
        stranger PUT /v2/sessiontemplates/t {"boot_sets":{"c":{"node_list":["n0"],"path":"s3://b/i/manifest.json","type":"s3"}}} -> 400 Invalid tenant: The provided tenant does not exist
        stranger PUT /v2/sessiontemplates/t {"boot_sets":{"c":{"path":"p","type":"s3"}}} -> 400 Invalid tenant: The provided tenant does not exist
        stranger POST /v2/sessions {"name":"s","operation":"boot","template_name":"image-1"} -> 400 Invalid tenant: The provided tenant does not exist
        stranger GET /v2/components -> 400 Invalid tenant: Data not found for tenant stranger
        stranger GET /v2/components/n0 -> 400 Invalid tenant: Data not found for tenant stranger
        stranger PATCH /v2/components/n0 {"error":"e"} -> 400 Invalid tenant: Data not found for tenant stranger
        stranger DELETE /v2/components/n0 -> 400 Invalid tenant: Data not found for tenant stranger
        stranger PATCH /v2/components [] -> 400 Bad Request: Error parsing the data provided: Data not found for tenant stranger
        stranger PATCH /v2/components {"patch":{"error":"e"},"filters":{"ids":"n0"}} -> 400 Bad Request: Error parsing the data provided: Data not found for tenant stranger
        stranger PUT /v2/components/n0 {"error":"e"} -> 400 Invalid tenant: Data not found for tenant stranger
        stranger PUT /v2/components [{"id":"n0","error":"e"}] -> 400 Invalid tenant: Data not found for tenant stranger
        stranger POST /v2/applystaged {"xnames":[]} -> 400 Bad Request: Error parsing the data provided: Data not found for tenant stranger
        stranger GET /v2/sessiontemplates -> 200 []
        stranger GET /v2/sessions -> 200 []
        stranger GET /v2/sessiontemplates/image-1 -> 404 The resource was not found: Session template for tenant 'stranger' 'image-1' does not exist
        stranger PATCH /v2/sessiontemplates/image-1 {"description":"d"} -> 404 The resource was not found: Session template for tenant 'stranger' 'image-1' does not exist
        stranger DELETE /v2/sessiontemplates/image-1 -> 404 The resource was not found: Session template for tenant 'stranger' 'image-1' does not exist
        stranger GET /v2/sessiontemplatesvalid/image-1 -> 404 The resource was not found: Session template for tenant 'stranger' 'image-1' does not exist
        stranger GET /v2/sessions/s -> 404 The resource was not found: Session for tenant 'stranger' 's' does not exist
        stranger PATCH /v2/sessions/s {} -> 404 The resource was not found: Session for tenant 'stranger' 's' does not exist
        stranger DELETE /v2/sessions/s -> 404 The resource was not found: Session for tenant 'stranger' 's' does not exist
        stranger GET /v2/sessions/s/status -> 404 The resource was not found: Session for tenant 'stranger' 's' does not exist
        stranger POST /v2/sessions/s/status -> 404 The resource was not found: Session for tenant 'stranger' 's' does not exist
        stranger DELETE /v2/sessions -> 204
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx GET /v2/sessions -> 200 []
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx GET /v2/sessions -> 400 Bad Request: header 'cray-tenant-name' has more than 127 characters
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx GET /v2/components -> 400 Bad Request: header 'cray-tenant-name' has more than 127 characters
        - GET /v2/components/n0 -> 200 n0
    "#]].assert_eq(&lines);
    for path in ["/v2/options", "/v2/version", "/v2/healthz", "/v2/sessiontemplatetemplate"] {
        scene.bos_of(nobody).get(path).await;
    }
    let strict = scene_strict().await;
    let lines = strict
        .lines(&[
            (nobody, "PUT", "/v2/components/n0", r#"{"error":"e"}"#),
            ("blue", "PUT", "/v2/components", r#"[{"id":"n4","error":"e"}]"#),
        ])
        .await;
    expect![[r#"
        stranger PUT /v2/components/n0 {"error":"e"} -> 200 n0
        blue PUT /v2/components [{"id":"n4","error":"e"}] -> 200 [n4]
    "#]]
    .assert_eq(&lines);
    assert_eq!(strict.with_error("e").await, "n0 n4");
    strict.end().await;
    scene.end().await;
}

/// Starts a scene whose mesh repeats the surprises of BOS.
async fn scene_strict() -> MeshScene {
    scene(|settings| settings.compat.strict_bos = true).await
}

/// A session of every owner, all of one name, from templates of one name.
async fn namesakes(scene: &MeshScene, operation: &str) -> [Bos; 3] {
    let owners = [scene.mesh.bos.clone(), scene.bos_of("blue"), scene.bos_of("green")];
    let rest = scene.upstreams.ids()[6..].join(",");
    for bos in &owners {
        bos.template("t").await;
        let limit = if std::ptr::eq(bos, &owners[0]) { rest.as_str() } else { "" };
        let wish = json!({"template_name": "t", "operation": operation, "name": "s", "limit": limit});
        bos.expect(Method::POST, "/v2/sessions", Some(&wish)).await;
    }
    owners
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_one_name_are_of_three_owners() {
    let scene = scene(|_| {}).await;
    let owners = namesakes(&scene, "boot").await;
    let mut rows = String::new();
    for bos in &owners {
        let session = bos.complete("s").await;
        let mut members: Vec<_> = session["components"].as_str().unwrap().split(',').collect();
        members.sort_unstable();
        let status = bos.get("/v2/sessions/s/status").await;
        rows += &format!(
            "{}: {} | {} managed, {} % successful\n",
            session["tenant"],
            named(&scene, &members.join(" "), true),
            status["managed_components_count"],
            status["percent_successful"]
        );
    }
    expect![[r#"
        null: n6 n7 | 2 managed, 100.0 % successful
        "blue": n0 n1 n2 n3 | 4 managed, 100.0 % successful
        "green": n4 n5 | 2 managed, 100.0 % successful
    "#]]
    .assert_eq(&rows);

    let wish =
        |template: &str| json!({"template_name": template, "operation": "boot", "name": "s"}).to_string();
    let lines = scene
        .lines(&[
            ("", "GET", "/v2/sessions", ""),
            ("blue", "GET", "/v2/sessions", ""),
            ("bare", "GET", "/v2/sessions", ""),
            ("", "GET", "/v2/sessiontemplates", ""),
            ("green", "GET", "/v2/sessiontemplates", ""),
            ("", "GET", "/v2/sessions/s", ""),
            ("green", "GET", "/v2/sessions/s", ""),
            ("bare", "GET", "/v2/sessions/s", ""),
            ("bare", "GET", "/v2/sessiontemplates/t", ""),
            ("blue", "POST", "/v2/sessions", &wish("t")),
            ("blue", "POST", "/v2/sessions", &wish(TEMPLATE)),
            ("blue", "GET", &format!("/v2/sessiontemplates/{TEMPLATE}"), ""),
            ("blue", "GET", "/v2/sessiontemplatesvalid/t", ""),
            ("bare", "PATCH", "/v2/sessiontemplates/t", r#"{"description":"d"}"#),
            ("blue", "PATCH", "/v2/sessiontemplates/t", r#"{"description":"of blue"}"#),
            ("blue", "PATCH", "/v2/sessions/s", r#"{"status":{"error":"of blue"}}"#),
            ("bare", "DELETE", "/v2/sessions/s", ""),
            ("bare", "POST", "/v2/sessions/s/status", ""),
            ("green", "DELETE", "/v2/sessiontemplates/t", ""),
            ("", "GET", "/v2/sessiontemplates", ""),
            ("green", "DELETE", "/v2/sessions", ""),
            ("", "GET", "/v2/sessions", ""),
            ("bare", "DELETE", "/v2/sessions?status=complete", ""),
            ("", "DELETE", "/v2/sessions/s", ""),
            ("", "GET", "/v2/sessions", ""),
        ])
        .await;
    expect![[r#"
        - GET /v2/sessions -> 200 [blue/s green/s s]
        blue GET /v2/sessions -> 200 [blue/s]
        bare GET /v2/sessions -> 200 []
        - GET /v2/sessiontemplates -> 200 [blue/t green/t image-1 t]
        green GET /v2/sessiontemplates -> 200 [green/t]
        - GET /v2/sessions/s -> 200 s
        green GET /v2/sessions/s -> 200 green/s
        bare GET /v2/sessions/s -> 404 The resource was not found: Session for tenant 'bare' 's' does not exist
        bare GET /v2/sessiontemplates/t -> 404 The resource was not found: Session template for tenant 'bare' 't' does not exist
        blue POST /v2/sessions {"name":"s","operation":"boot","template_name":"t"} -> 409 The resource to be created already exists: Session 's' already exists for tenant 'blue'
        blue POST /v2/sessions {"name":"s","operation":"boot","template_name":"image-1"} -> 400 Bad Request: Session Template Name invalid: image-1
        blue GET /v2/sessiontemplates/image-1 -> 404 The resource was not found: Session template for tenant 'blue' 'image-1' does not exist
        blue GET /v2/sessiontemplatesvalid/t -> 200 Valid
        bare PATCH /v2/sessiontemplates/t {"description":"d"} -> 404 The resource was not found: Session template for tenant 'bare' 't' does not exist
        blue PATCH /v2/sessiontemplates/t {"description":"of blue"} -> 200 blue/t
        blue PATCH /v2/sessions/s {"status":{"error":"of blue"}} -> 200 blue/s
        bare DELETE /v2/sessions/s -> 404 The resource was not found: Session for tenant 'bare' 's' does not exist
        bare POST /v2/sessions/s/status -> 404 The resource was not found: Session for tenant 'bare' 's' does not exist
        green DELETE /v2/sessiontemplates/t -> 204
        - GET /v2/sessiontemplates -> 200 [blue/t image-1 t]
        green DELETE /v2/sessions -> 204
        - GET /v2/sessions -> 200 [blue/s s]
        bare DELETE /v2/sessions?status=complete -> 204
        - DELETE /v2/sessions/s -> 204
        - GET /v2/sessions -> 200 [blue/s]
    "#]].assert_eq(&lines);
    let texts = join_all(owners[..2].iter().map(|bos| bos.get("/v2/sessiontemplates/t"))).await;
    assert_eq!(texts[0]["description"], Value::Null);
    assert_eq!(texts[1]["description"], "of blue");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn administrator_deletes_matching_sessions_without_namesakes() {
    let scene = scene(|_| {}).await;
    // The administrator's own session never completes.
    let stuck = scene.upstreams.ids()[6..].to_vec();
    scene.faults(&stuck, NodeFaults::hardware(Some(HardwareFault::StuckOff)));
    let owners = namesakes(&scene, "boot").await;
    for bos in &owners[1..] {
        bos.complete("s").await;
    }
    let lines = scene
        .lines(&[("", "DELETE", "/v2/sessions?status=complete", ""), ("", "GET", "/v2/sessions", "")])
        .await;
    expect![[r#"
        - DELETE /v2/sessions?status=complete -> 204
        - GET /v2/sessions -> 200 [s]
    "#]]
    .assert_eq(&lines);

    // Sessions kept for long enough are deleted for every owner, and no younger namesake with them.
    let wish = json!({"template_name": "t", "operation": "shutdown", "name": "s"});
    owners[1].expect(Method::POST, "/v2/sessions", Some(&wish)).await;
    owners[1].complete("s").await;
    let long_ago = json!({"status": {"start_time": "2020-01-01T00:00:00"}});
    owners[1].expect(Method::PATCH, "/v2/sessions/s", Some(&long_ago)).await;
    eventually_shown("the tenant's session to be cleaned up", async || {
        match scene.line("", "GET", "/v2/sessions", "").await {
            line if line.ends_with("200 [s]\n") => Ok(()),
            line => Err(line),
        }
    })
    .await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_session_has_the_tenants_nodes_or_fails() {
    let scene = scene(|_| {}).await;
    let blue = scene.bos_of("blue");
    let ids = scene.upstreams.ids();
    blue.template_with("listed", |template| {
        template["boot_sets"]["compute"]["node_list"] = json!([&ids[0], &ids[4], &ids[6], "x9c9s9b9n9"]);
    })
    .await;
    let failed = blue.complete(&blue.session("listed", "boot").await).await;
    assert_eq!(failed["components"], "");
    let error = named(&scene, failed["status"]["error"].as_str().unwrap(), true);
    expect![
        "The session template includes nodes which do not exist or are not available to this tenant: n4,n6"
    ]
    .assert_eq(&error);

    // Roles are intersected, and a limit takes no others in.
    blue.template("roles").await;
    for (limit, expected) in [("", "n0 n1 n2 n3"), (ids[1].as_str(), "n1")] {
        let name = blue.session_of("roles", "shutdown", &[limit.to_owned()]).await;
        let session = blue.complete(&name).await;
        let mut members: Vec<_> = session["components"].as_str().unwrap().split(',').collect();
        members.sort_unstable();
        assert_eq!(named(&scene, &members.join(" "), true), expected, "{session}");
        let told = named(&scene, &session.to_string(), true);
        let left_out = blue.get(&format!("/v2/sessions/{name}/left_out")).await;
        let told = told + &named(&scene, &left_out.to_string(), true);
        assert!(["n4", "n5", "n6", "n7"].iter().all(|foreign| !told.contains(foreign)), "{told}");
    }
    let name = blue.session_of("roles", "shutdown", &ids[4..5]).await;
    let nobody = blue.complete(&name).await;
    assert_eq!(nobody["status"]["error"], "No nodes were found to act upon.");
    scene.end().await;
}

/// Asks until the answer begins so.
async fn until(scene: &MeshScene, asked: (&str, &str, &str, &str), begins: &str) -> String {
    let (tenant, method, path, body) = asked;
    eventually_shown(&format!("{method} {path}: {begins}"), async || {
        let line = scene.line(tenant, method, path, body).await;
        let answer = line.split_once("-> ").unwrap().1.to_owned();
        if answer.starts_with(begins) { Ok(answer) } else { Err(line) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_need_a_troubled_tenant_service_report_it() {
    let scene = scene(brisk).await;
    let template =
        json!({"boot_sets": {"c": {"path": "s3://b/i/manifest.json", "type": "s3", "node_list": ["n0"]}}});
    let template = template.to_string();
    let session = json!({"template_name": "t", "operation": "boot", "name": "s"}).to_string();
    scene.bos_of("blue").template("t").await;
    for effect in [
        TroubleEffect::Status { code: 500, body: "no etcd".to_owned(), retry_after: None },
        TroubleEffect::Hang,
    ] {
        scene.upstreams.trouble(ServiceTrouble::new(Tapms, effect));
        for asked in [
            ("green", "GET", "/v2/components", ""),
            ("green", "GET", "/v2/components/n4", ""),
            ("green", "PATCH", "/v2/components/n4", r#"{"error":"e"}"#),
            ("green", "PATCH", "/v2/components", "[]"),
            ("green", "PUT", "/v2/components/n4", r#"{"error":"e"}"#),
            ("green", "DELETE", "/v2/components/n4", ""),
            ("blue", "PUT", "/v2/sessiontemplates/t", &template),
            ("blue", "POST", "/v2/sessions", &session),
        ] {
            let told = until(&scene, asked, "503").await;
            let begins = "503 Unable to connect to the Redis database: tenant service: TAPMS at ";
            assert!(told.starts_with(begins), "{told}");
        }
        let lines = scene
            .lines(&[
                ("", "PATCH", "/v2/components/n4", r#"{"error":"by nobody"}"#),
                ("blue", "GET", "/v2/sessions", ""),
                ("blue", "GET", "/v2/sessiontemplates", ""),
                ("blue", "GET", "/v2/sessiontemplates/t", ""),
            ])
            .await;
        expect![[r#"
            - PATCH /v2/components/n4 {"error":"by nobody"} -> 200 n4
            blue GET /v2/sessions -> 200 []
            blue GET /v2/sessiontemplates -> 200 [blue/t]
            blue GET /v2/sessiontemplates/t -> 200 blue/t
        "#]]
        .assert_eq(&lines);
        scene.upstreams.clear_troubles(Some(Tapms));
        until(&scene, ("green", "GET", "/v2/components", ""), "200 [n4 n5]").await;
    }
    assert_eq!(scene.with_error("e").await, "");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_queries_are_shared_and_made_only_for_tenants() {
    let scene = scene(|_| {}).await;
    let asked = || scene.upstreams.requests(Tapms, "GET /tenants/{name}");
    scene
        .lines(&[("", "GET", "/v2/components", ""), ("", "PATCH", "/v2/components/n0", r#"{"error":"e"}"#)])
        .await;
    scene.lines(&[("blue", "GET", "/v2/sessions", ""), ("blue", "GET", "/v2/options", "")]).await;
    assert_eq!(asked(), 0);
    scene.upstreams.trouble(ServiceTrouble::new(Tapms, TroubleEffect::Delay { seconds: 0.5 }));
    join_all((0..40).map(|_| scene.line("blue", "GET", "/v2/components/n0", ""))).await;
    assert!(asked() <= 2, "{} questions for 40 requests at the same time", asked());
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_change_hands_show_to_the_new_tenant_only() {
    let scene = scene(|_| {}).await;
    scene.mesh.bos.options(&json!({"polling_frequency": 1, "max_power_on_wait_time": 86_400})).await;
    let blue = scene.bos_of("blue");
    let own = scene.first(4);
    scene.faults(&own, NodeFaults::hardware(Some(HardwareFault::StuckOff)));
    blue.template("t").await;
    let name = blue.session("t", "boot").await;
    let counts = async |wanted: u64| {
        eventually(&format!("{wanted} nodes that count"), async || {
            let status = blue.get(&format!("/v2/sessions/{name}/status")).await;
            (status["managed_components_count"] == wanted).then_some(())
        })
        .await;
    };
    counts(4).await;
    scene.gives("blue", &["n0", "n6"]);
    scene.gives("green", &["n1", "n2", "n3", "n4"]);
    until(&scene, ("blue", "GET", "/v2/components", ""), "200 [n0 n6]").await;
    until(&scene, ("green", "GET", "/v2/components", ""), "200 [n1 n2 n3 n4]").await;
    until(&scene, ("blue", "GET", "/v2/components/n1", ""), "404").await;
    counts(1).await;
    let session = blue.get(&format!("/v2/sessions/{name}")).await;
    assert_eq!(session["status"]["status"], "running", "{session}");
    // A session without nodes is over, whatever the state of its former nodes.
    scene.gives("blue", &["n6"]);
    blue.complete(&name).await;
    let status = blue.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["managed_components_count"], 0, "{status}");
    scene.end().await;
}
