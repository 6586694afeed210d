use expect_test::expect;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::{MachinePlan, NodeChange, NodeFaults, Service::Cfs};

use crate::stage::{Stage, each, stage};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";

async fn patch(stage: &Stage, path: &str, body: Value) -> (StatusCode, Value) {
    stage.ask(Cfs, Method::PATCH, path, Some(&body)).await
}

fn spoil(stage: &Stage, id: &str, faults: NodeFaults) {
    let change = NodeChange { faults: Some(faults), ..NodeChange::default() };
    stage.upstreams.change(&[id.to_owned()], &change).expect("known");
}

#[tokio::test]
async fn filter_changes_known_components_and_ignores_others() {
    let stage = stage(MachinePlan::quick(4)).await;
    let change =
        json!({"enabled": false, "desired_config": "c1", "tags": {"bos_session": "s1"}, "state": []});
    let ids = format!("{B},{A},x9c0s0b0n0");
    let (status, changed) =
        patch(&stage, "/components", json!({"patch": change, "filters": {"ids": ids}})).await;
    assert_eq!((status, each_id(&changed)), (StatusCode::OK, vec![B.to_owned(), A.to_owned()]));
    let (_, one) = stage.get(Cfs, &format!("/components/{A}")).await;
    expect![[r#"
        {
          "configuration_status": "pending",
          "desired_config": "c1",
          "enabled": false,
          "error_count": 0,
          "id": "x1000c0s0b0n0",
          "logs": "ara.local/hosts?name=x1000c0s0b0n0",
          "retry_policy": 3,
          "tags": {
            "bos_session": "s1"
          }
        }"#]]
    .assert_eq(&format!("{one:#}"));
    let requests = stage.upstreams.configuration_requests();
    assert_eq!(
        (requests.len(), requests[0].ids.len(), &requests[0].patch["desired_config"]),
        (1, 2, &json!("c1"))
    );
}

fn each_id(changed: &Value) -> Vec<String> {
    serde_json::from_value(changed["component_ids"].clone()).expect("a list of ids")
}

#[tokio::test]
async fn a_list_changes_each_of_its_components_or_none() {
    let stage = stage(MachinePlan::quick(4)).await;
    let one = |id: &str, config: &str| json!({"id": id, "desired_config": config});
    assert_eq!(
        patch(&stage, "/components", json!([one(A, "c1"), one("x9", "c1")])).await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(patch(&stage, "/components", json!([one(A, "c1"), one(B, "c2")])).await.0, StatusCode::OK);
    let (_, list) = stage.get(Cfs, "/components?config_name=c2").await;
    assert_eq!(each(&list["components"], "id"), [B]);
}

#[tokio::test]
async fn faults_of_a_node_show() {
    let stage = stage(MachinePlan::quick(4)).await;
    let none = NodeFaults::default;
    spoil(&stage, A, NodeFaults { cfs_missing: true, ..none() });
    spoil(&stage, B, NodeFaults { cfs_reject: true, cfs_status: Some("baffled".into()), ..none() });
    let refused = json!({"patch": {"enabled": true}, "filters": {"ids": format!("x1000c0s0b1n0,{B}")}});
    let mut seen = String::new();
    for (method, path, body) in [
        (Method::GET, "/components/x1000c0s0b0n0", None),
        (Method::PATCH, "/components", Some(refused)),
        (Method::PATCH, "/components", Some(json!({"patch": {}, "filters": {}}))),
        (Method::PATCH, "/components/x1000c0s0b1n0", Some(json!({"enabled": 7}))),
    ] {
        let (status, answer) = stage.ask(Cfs, method, path, body.as_ref()).await;
        seen += &format!("{} {}\n", status.as_u16(), answer["detail"]);
    }
    expect![[r#"
        404 "Component x1000c0s0b0n0 could not be found"
        400 "component x1000c0s0b0n1 cannot be changed"
        400 "filters: ids must name at least one component"
        400 "invalid type: integer `7`, expected a boolean"
    "#]]
    .assert_eq(&seen);
    let (_, list) = stage.get(Cfs, "/components").await;
    let words = each(&list["components"], "configuration_status");
    assert_eq!(words.iter().filter(|word| **word == "baffled").count(), 1);
    assert_eq!(stage.get(Cfs, "/components?status=baffled").await.0, StatusCode::BAD_REQUEST);
    assert_eq!(stage.get(Cfs, "/options").await.1["default_page_size"], 1000);
}
