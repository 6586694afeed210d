//! Power transitions over REST, and with the operator's command.

use integration_tests::{
    eventually,
    mesh::Mesh,
    processes::{operate, operate_to_end},
};
use reqwest::Method;
use serde_json::{Value, json};
use upstreams::{MachinePlan, PowerService, Service, ServiceTrouble};

const PATH: &str = "/reveille/v1/transitions";

#[tokio::test(flavor = "multi_thread")]
async fn transition_that_is_open_is_given_up() {
    // The power service looks at a transition after 15 seconds only, and holds its nodes until then.
    let plan = MachinePlan { power: PowerService::as_shipped(), ..MachinePlan::quick(4) };
    let (mesh, _upstreams) = Mesh::among(plan, async |_| {}).await;
    let bos = &mesh.bos;
    bos.template("image-1").await;
    bos.session("image-1", "boot").await;
    let open = eventually("an accepted transition", async || {
        bos.get(PATH).await.as_array()?.iter().find(|one| one["delivery"] == "accepted").cloned()
    });
    let open = open.await;
    assert_eq!(
        (&open["action"], &open["members"][0]["attempt"]),
        (&json!("powering_on"), &json!(1)),
        "{open:#}"
    );
    let (id, node) = (text(&open["id"]), text(&open["members"][0]["id"]));
    assert_eq!(bos.get(&format!("{PATH}?component={node}")).await[0]["id"], id);
    assert_eq!(bos.get(&format!("{PATH}?component=x9999")).await, json!([]));

    let shown = operate(bos, &format!("get transitions --node {node} -o name")).await;
    assert_eq!(shown.lines().next(), Some(id), "{shown}");
    let by_node = format!("{PATH}/abandon?component={node}");
    assert_eq!(bos.send(Method::POST, &by_node, None).await.status, 409, "its time is not over");
    let shown = operate(bos, &format!("transition abandon {id}")).await;
    assert!(shown.starts_with("transition ") && shown.contains(node), "{shown}");
    let abandoned = bos.get(&format!("{PATH}?component={node}")).await;
    let is_abandoned = |one: &Value| one["abandoned_at"].is_string() && one["abandoned_by"].is_string();
    assert!(abandoned.as_array().unwrap().iter().any(is_abandoned), "{abandoned:#}");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_of_another_client_is_told_as_the_cause_of_a_wait() {
    let plan = MachinePlan { power: PowerService::as_shipped(), ..MachinePlan::quick(2) };
    let (mesh, upstreams) = Mesh::among(plan, async |_| {}).await;
    let (bos, node) = (&mesh.bos, upstreams.ids()[0].clone());
    let foreign = upstreams.foreign_transition("On", std::slice::from_ref(&node)).unwrap();
    bos.template("image-1").await;
    bos.session("image-1", "boot").await;
    let explained = eventually("an explanation by the transition", async || {
        let explained = bos.get(&format!("/reveille/v1/explain/components/{node}")).await;
        (explained["reason"] == "transition_awaited").then_some(explained)
    });
    let explained = explained.await;
    assert!(text(&explained["sentence"]).contains(&foreign), "{explained:#}");
    let next = format!("reveille get transitions --node {node}");
    assert_eq!(explained["next_step"]["command"], next, "{explained:#}");
    let listed = bos.get(&format!("{PATH}?component={node}")).await;
    let shown = listed.as_array().unwrap().last().cloned().unwrap_or_default();
    assert_eq!((&shown["upstream_id"], shown.get("id")), (&json!(foreign), None), "{listed:#}");
    let shown = operate(bos, &next["reveille ".len()..]).await;
    assert!(shown.contains("of another client"), "{shown}");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_that_may_lack_a_transition_of_another_client_says_so() {
    let (mesh, upstreams) = Mesh::among(MachinePlan::quick(2), async |_| {}).await;
    let (bos, node) = (&mesh.bos, upstreams.ids()[0].clone());
    let list = format!("get transitions --node {node}");
    let told = operate_to_end(bos, &list).await.errors;
    assert!(!told.contains("warning"), "the power service answers: {told}");
    upstreams.trouble(ServiceTrouble::status(Service::Pcs, 503));
    let told = operate_to_end(bos, &list).await.errors;
    assert!(told.starts_with("warning: a transition of another client may be missing: "), "{told}");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transitions_that_do_not_exist_are_not_given_up() {
    let mesh = Mesh::start(async |_| {}).await;
    let mut answers = String::new();
    for query in ["", "?id=a&component=b", "?id=nobody", "?component=x9999"] {
        let answer = mesh.bos.send(Method::POST, &format!("{PATH}/abandon{query}"), None).await;
        answers += &format!("{query} {} {}\n", answer.status.as_u16(), text(&answer.body["detail"]));
    }
    expect_test::expect![[r#"
         400 query parameter 'id': is needed, or 'component' in its place
        ?id=a&component=b 400 query parameter 'id': is given beside 'component', which is one too many
        ?id=nobody 404 transition 'nobody' does not exist
        ?component=x9999 404 transition that holds component 'x9999' does not exist
    "#]]
    .assert_eq(&answers);
    let of_tenant = mesh.bos.of_tenant("blue").send(Method::GET, PATH, None).await;
    assert_eq!(of_tenant.status, 403);
    mesh.stop().await;
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
