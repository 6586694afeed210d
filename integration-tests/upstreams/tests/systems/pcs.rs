use std::time::Duration;

use expect_test::expect;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::{MachinePlan, NodeChange, NodeFaults, PowerCommand, PowerService, Service::Pcs};

use crate::stage::{Stage, stage, until};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";

async fn machine() -> Stage {
    let power = PowerService { most_nodes: 4, ..PowerService::quick() };
    stage(MachinePlan { power, ..MachinePlan::quick(8) }).await
}

fn spoil(stage: &Stage, id: &str, faults: NodeFaults) {
    let change = NodeChange { faults: Some(faults), ..NodeChange::default() };
    stage.upstreams.change(&[id.to_owned()], &change).expect("known");
}

fn transition(operation: &str, ids: &[&str]) -> Value {
    let location: Vec<_> = ids.iter().map(|id| json!({"xname": id})).collect();
    json!({"operation": operation, "taskDeadlineMinutes": 1, "location": location})
}

/// The transition, once the service is done with it.
async fn completed(stage: &Stage, id: &Value) -> Value {
    let path = format!("/transitions/{}", id.as_str().expect("an id"));
    for _ in 0..2000 {
        let (_, transition) = stage.get(Pcs, &path).await;
        if transition["transitionStatus"] == "completed" {
            return transition;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never completed");
}

#[tokio::test]
async fn power_states_show_as_far_as_known() {
    let stage = machine().await;
    stage.upstreams.press(PowerCommand::On, &[A.to_owned()]).expect("known");
    until("on", || stage.upstreams.summary().on == 1).await;
    let none = NodeFaults::default;
    spoil(&stage, "x1000c0s0b1n0", NodeFaults { pcs_undefined: true, ..none() });
    spoil(&stage, "x1000c0s0b1n1", NodeFaults { pcs_error: Some("the BMC is silent".into()), ..none() });
    spoil(&stage, "x1000c0s1b0n0", NodeFaults { pcs_missing: true, ..none() });
    spoil(&stage, "x1000c0s1b0n1", NodeFaults { pcs_omitted: true, ..none() });
    let ids = [A, B, "x1000c0s0b1n0", "x1000c0s0b1n1", "x1000c0s1b0n0", "x1000c0s1b0n1", "x9c0s0b0n0"];
    let (_, mut answer) = stage.post(Pcs, "/power-status", json!({"xname": ids})).await;
    let mut seen = String::new();
    for entry in answer["status"].as_array_mut().expect("a list") {
        let at = entry["lastUpdated"].take();
        if entry["managementState"] != "" {
            chrono::DateTime::parse_from_rfc3339(at.as_str().expect("a text")).expect("RFC 3339");
        }
        seen += &format!("{entry}\n");
    }
    expect![[r#"
        {"error":"","lastUpdated":null,"managementState":"available","powerState":"on","supportedPowerTransitions":["On","Force-Off","Soft-Off","Off","Init","Hard-Restart","Soft-Restart"],"xname":"x1000c0s0b0n0"}
        {"error":"","lastUpdated":null,"managementState":"available","powerState":"off","supportedPowerTransitions":["On","Force-Off","Soft-Off","Off","Init","Hard-Restart","Soft-Restart"],"xname":"x1000c0s0b0n1"}
        {"error":"","lastUpdated":null,"managementState":"unavailable","powerState":"undefined","supportedPowerTransitions":["On","Force-Off","Soft-Off","Off","Init","Hard-Restart","Soft-Restart"],"xname":"x1000c0s0b1n0"}
        {"error":"the BMC is silent","lastUpdated":null,"managementState":"unavailable","powerState":"undefined","supportedPowerTransitions":["On","Force-Off","Soft-Off","Off","Init","Hard-Restart","Soft-Restart"],"xname":"x1000c0s0b1n1"}
        {"error":"Component not found in component map.","lastUpdated":null,"managementState":"","powerState":"","supportedPowerTransitions":null,"xname":"x1000c0s1b0n0"}
        {"error":"Component not found in component map.","lastUpdated":null,"managementState":"","powerState":"","supportedPowerTransitions":null,"xname":"x9c0s0b0n0"}
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn a_malformed_name_spoils_the_whole_request() {
    let stage = machine().await;
    let mut seen = String::new();
    for body in
        [json!({"xname": [A, "nid000001"]}), json!({"xname": [A], "powerStateFilter": "maybe"}), json!("all")]
    {
        let (status, answer) = stage.post(Pcs, "/power-status", body).await;
        seen += &format!("{} {}\n", status.as_u16(), answer["detail"]);
    }
    let (_, on) = stage.post(Pcs, "/power-status", json!({"powerStateFilter": "on"})).await;
    let (_, one) = stage.get(Pcs, "/power-status?xname=x1000c0s0b0n0").await;
    let counts = [&on, &one].map(|answer| answer["status"].as_array().expect("a list").len());
    assert_eq!(counts, [0, 1]);
    expect![[r#"
        400 "invalid xnames detected: nid000001"
        400 "invalid powerStateFilter type: maybe"
        400 "invalid type: string \"all\", expected struct StatusQuery at line 1 column 5"
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn a_transition_is_accepted_first_and_told_of_afterwards() {
    let stage = machine().await;
    let (status, accepted) = stage.post(Pcs, "/transitions", transition("on", &[A, B, "x9c0s0b0n0"])).await;
    assert_eq!((status, &accepted["operation"]), (StatusCode::OK, &json!("On")));
    let id = &accepted["transitionID"];
    let mut told = completed(&stage, id).await;
    for member in ["transitionID", "createTime", "automaticExpirationTime"] {
        assert!(told[member].take().is_string(), "{member}");
    }
    expect![[r#"
        {
          "automaticExpirationTime": null,
          "createTime": null,
          "operation": "On",
          "taskCounts": {
            "failed": 1,
            "in-progress": 0,
            "new": 0,
            "succeeded": 2,
            "total": 3,
            "un-supported": 0
          },
          "tasks": [
            {
              "taskStatus": "succeeded",
              "taskStatusDescription": "Transition confirmed, on",
              "xname": "x1000c0s0b0n0"
            },
            {
              "taskStatus": "succeeded",
              "taskStatusDescription": "Transition confirmed, on",
              "xname": "x1000c0s0b0n1"
            },
            {
              "error": "Missing xname",
              "taskStatus": "failed",
              "taskStatusDescription": "Failed to achieve transition",
              "xname": "x9c0s0b0n0"
            }
          ],
          "transitionID": null,
          "transitionStatus": "completed"
        }"#]]
    .assert_eq(&format!("{told:#}"));

    let (_, list) = stage.get(Pcs, "/transitions").await;
    let first = &list["transitions"][0];
    assert_eq!(
        (&first["transitionID"], &first["taskCounts"]["total"], &first["tasks"]),
        (id, &json!(3), &Value::Null)
    );
    let path = format!("/transitions/{}", id.as_str().expect("an id"));
    assert_eq!(stage.ask(Pcs, Method::DELETE, &path, None).await.0, StatusCode::BAD_REQUEST);
    let node = stage.upstreams.node(A).expect("known");
    assert_eq!((node.on, node.power.on, node.reserved_by), (true, 1, None));
}

#[tokio::test]
async fn a_transition_can_be_refused_as_a_whole() {
    let stage = machine().await;
    spoil(&stage, B, NodeFaults { pcs_reject: true, ..NodeFaults::default() });
    let ids = stage.upstreams.ids();
    let five: Vec<_> = ids.iter().take(5).map(String::as_str).collect();
    let mut seen = String::new();
    for body in [transition("On", &five), transition("On", &[A, B]), transition("Sideways", &[A]), json!({})]
    {
        let (status, answer) = stage.post(Pcs, "/transitions", body).await;
        seen += &format!("{} {}\n", status.as_u16(), answer["detail"]);
    }
    expect![[r#"
        500 "etcdserver: request is too large"
        400 "invalid xnames detected: x1000c0s0b0n1"
        400 "invalid Operation type Sideways"
        400 "missing field `operation` at line 1 column 2"
    "#]]
    .assert_eq(&seen);
    assert_eq!(stage.get(Pcs, "/transitions").await.1, json!({"transitions": []}));
    assert_eq!(stage.get(Pcs, "/transitions/none").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_transition_can_be_aborted() {
    let stage = stage(MachinePlan::as_shipped(2)).await;
    let (_, accepted) = stage.post(Pcs, "/transitions", transition("On", &[A])).await;
    let path = format!("/transitions/{}", accepted["transitionID"].as_str().expect("an id"));
    let (status, answer) = stage.ask(Pcs, Method::DELETE, &path, None).await;
    assert_eq!(
        (status, answer),
        (StatusCode::ACCEPTED, json!({"abortStatus": "Accepted - abort initiated"}))
    );
    assert_eq!(stage.get(Pcs, &path).await.1["transitionStatus"], "abort-signaled");
}

#[tokio::test]
async fn a_large_machine_is_turned_on_without_delay() {
    let stage = stage(MachinePlan::quick(10_000)).await;
    for ids in stage.upstreams.ids().chunks(2500) {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        assert_eq!(stage.post(Pcs, "/transitions", transition("On", &ids)).await.0, StatusCode::OK);
    }
    until("all are on and nobody has them", || {
        let summary = stage.upstreams.summary();
        (summary.on, summary.reserved) == (10_000, 0)
    })
    .await;
    let (_, told) = stage.post(Pcs, "/power-status", json!({"xname": stage.upstreams.ids()})).await;
    assert!(told["status"].as_array().expect("a list").iter().all(|entry| entry["powerState"] == "on"));
    let power = stage.upstreams.summary().power;
    assert_eq!((power.on, power.crossings, power.overlaps), (10_000, 0, 0));
}
