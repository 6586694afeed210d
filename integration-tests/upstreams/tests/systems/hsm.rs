use axum::{Router, extract::State, routing::post};
use expect_test::expect;
use proto::inventory::{Group, Hardware};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use upstreams::{MachinePlan, NodeChange, NodeFaults, PowerCommand, Service::Hsm};

use crate::stage::{Stage, each, listener, stage};

/// Four nodes in a partition, and a BMC.
async fn machine() -> Stage {
    let mut plan = MachinePlan::quick(4);
    plan.hardware[3].role = "Application".into();
    plan.hardware[3].enabled = false;
    plan.hardware.push(Hardware {
        id: "x1000c0s0b0".into(),
        r#type: "NodeBMC".into(),
        enabled: true,
        ..Hardware::default()
    });
    plan.partitions = vec![Group { label: "p1".into(), ids: vec!["x1000c0s0b0n0".into()] }];
    stage(plan).await
}

#[tokio::test]
async fn components_are_listed_and_filtered() {
    let stage = machine().await;
    let (status, all) = stage.get(Hsm, "/State/Components").await;
    assert_eq!(status, StatusCode::OK);
    expect![[r#"
        {"Arch":"X86","Class":"Mountain","Enabled":true,"Flag":"OK","ID":"x1000c0s0b0n0","NID":1,"NetType":"Sling","Role":"Compute","State":"Off","Type":"Node"}
        {"Arch":"X86","Class":"Mountain","Enabled":true,"Flag":"OK","ID":"x1000c0s0b0n1","NID":2,"NetType":"Sling","Role":"Compute","State":"Off","Type":"Node"}
        {"Arch":"X86","Class":"Mountain","Enabled":true,"Flag":"OK","ID":"x1000c0s0b1n0","NID":3,"NetType":"Sling","Role":"Compute","State":"Off","Type":"Node"}
        {"Arch":"X86","Class":"Mountain","Enabled":false,"Flag":"OK","ID":"x1000c0s0b1n1","NID":4,"NetType":"Sling","Role":"Application","State":"Off","Type":"Node"}
        {"Class":"Mountain","Enabled":true,"Flag":"OK","ID":"x1000c0s0b0","NetType":"Sling","State":"Ready","Type":"NodeBMC"}
    "#]].assert_eq(&lines(&all["Components"]));
    let queries =
        ["type=Node&enabled=false", "type=NodeBMC", "role=Application", "id=x1000c0s0b0n1", "state=Ready"];
    let mut seen = String::new();
    for query in queries {
        let (_, found) = stage.get(Hsm, &format!("/State/Components?{query}")).await;
        seen += &format!("{query}: {:?}\n", each(&found["Components"], "ID"));
    }
    expect![[r#"
        type=Node&enabled=false: ["x1000c0s0b1n1"]
        type=NodeBMC: ["x1000c0s0b0"]
        role=Application: ["x1000c0s0b1n1"]
        id=x1000c0s0b0n1: ["x1000c0s0b0n1"]
        state=Ready: ["x1000c0s0b0"]
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn query_skips_unknown_ids() {
    let stage = machine().await;
    let missing = NodeFaults { hsm_missing: true, ..NodeFaults::default() };
    let change = NodeChange { faults: Some(missing), ..NodeChange::default() };
    stage.upstreams.change(&["x1000c0s0b0n1".into()], &change).expect("known");
    let all = ["x1000c0s0b0n0", "x1000c0s0b0n1", "x1000c0s0b1n1", "x9c0s0b0n0"];
    let mut seen = String::new();
    for body in [
        json!({"ComponentIDs": all}),
        json!({"ComponentIDs": all, "enabled": ["True"]}),
        json!({"ComponentIDs": ["all"], "type": ["node"]}),
        json!({"ComponentIDs": []}),
        json!({}),
    ] {
        let (status, found) = stage.post(Hsm, "/State/Components/Query", body).await;
        let ids = found["Components"].is_array().then(|| each(&found["Components"], "ID"));
        seen += &format!("{} {ids:?} {}\n", status.as_u16(), found["detail"]);
    }
    expect![[r#"
        200 Some(["x1000c0s0b0n0", "x1000c0s0b1n1"]) null
        200 Some(["x1000c0s0b0n0"]) null
        200 Some(["x1000c0s0b0n0", "x1000c0s0b1n0", "x1000c0s0b1n1"]) null
        400 None "ComponentIDs must be a list of at least one id"
        400 None "ComponentIDs must be a list of at least one id"
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn groups_and_partitions_have_members() {
    let stage = machine().await;
    let mut seen = String::new();
    for path in ["/groups", "/partitions", "/groups/green", "/groups/red", "/memberships", "/service/ready"] {
        seen += &format!("{path}: {}\n", stage.get(Hsm, path).await.1);
    }
    expect![[r#"
        /groups: [{"description":"","label":"blue","members":{"ids":["x1000c0s0b0n0","x1000c0s0b0n1","x1000c0s0b1n0","x1000c0s0b1n1"]}},{"description":"","label":"green","members":{"ids":[]}}]
        /partitions: [{"description":"","members":{"ids":["x1000c0s0b0n0"]},"name":"p1"}]
        /groups/green: {"description":"","label":"green","members":{"ids":[]}}
        /groups/red: {"detail":"there is no red","status":404,"title":"Not Found","type":"about:blank"}
        /memberships: [{"groupLabels":["blue"],"id":"x1000c0s0b0n0","partitionName":"p1"},{"groupLabels":["blue"],"id":"x1000c0s0b0n1","partitionName":""},{"groupLabels":["blue"],"id":"x1000c0s0b1n0","partitionName":""},{"groupLabels":["blue"],"id":"x1000c0s0b1n1","partitionName":""}]
        /service/ready: {"code":0,"message":"HSM is healthy"}
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn locks_are_set_and_seen() {
    let stage = machine().await;
    let ids = json!({"ComponentIDs": ["x1000c0s0b0n0", "x1000c0s0b0n1", "x9c0s0b0n0"]});
    let (_, first) = stage.post(Hsm, "/locks/lock", ids.clone()).await;
    assert_eq!(first["Counts"], json!({"Total": 3, "Success": 2, "Failure": 1}));
    let (_, again) = stage.post(Hsm, "/locks/lock", ids).await;
    assert_eq!(again["Failure"][0], json!({"ID": "x1000c0s0b0n0", "Reason": "Locked"}));
    stage.post(Hsm, "/locks/unlock", json!({"ComponentIDs": ["x1000c0s0b0n1"]})).await;

    let reserved = NodeChange { reserved: Some(true), ..NodeChange::default() };
    stage.upstreams.change(&["x1000c0s0b1n0".into()], &reserved).expect("known");
    let mut seen = String::new();
    for query in ["type=Node&locked=True", "reserved=true", "type=NodeBMC", ""] {
        let (_, found) = stage.get(Hsm, &format!("/locks/status?{query}")).await;
        seen += &format!("{query:?}: {:?}\n", each(&found["Components"], "ID"));
    }
    expect![[r#"
        "type=Node&locked=True": ["x1000c0s0b0n0"]
        "reserved=true": ["x1000c0s0b1n0"]
        "type=NodeBMC": []
        "": ["x1000c0s0b0n0", "x1000c0s0b0n1", "x1000c0s0b1n0", "x1000c0s0b1n1"]
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn subscribers_are_told_of_changes() {
    let stage = machine().await;
    let (told, mut heard) = mpsc::unbounded_channel::<Value>();
    let take = |State(told): State<mpsc::UnboundedSender<Value>>, body: String| async move {
        told.send(serde_json::from_str(&body).expect("JSON")).expect("the test listens");
    };
    let subscriber = listener().await;
    let url = format!("http://{}/scn", subscriber.local_addr().expect("bound"));
    let serving = axum::serve(subscriber, Router::new().route("/scn", post(take)).with_state(told));
    let _serving =
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async { serving.await.expect("serves") }));

    let subscription = json!({"Subscriber": "reveille@host", "Url": url, "Enabled": true, "Roles": ["Compute", "Service"],
        "States": ["On", "Off", "Ready"]});
    let (status, created) = stage.post(Hsm, "/Subscriptions/SCN", subscription.clone()).await;
    assert_eq!((status, &created["ID"]), (StatusCode::OK, &json!(1)));
    assert_eq!(stage.post(Hsm, "/Subscriptions/SCN", subscription).await.0, StatusCode::CONFLICT);

    let ids = ["x1000c0s0b0n0".to_owned()];
    let change = |change: NodeChange| stage.upstreams.change(&ids, &change).expect("known");
    let mut seen = String::new();
    let mut next = async || format!("{}\n", heard.recv().await.expect("a notification"));
    change(NodeChange { enabled: Some(false), ..NodeChange::default() });
    seen += &next().await;
    change(NodeChange { locked: Some(true), ..NodeChange::default() });
    seen += &next().await;
    change(NodeChange { role: Some("Service".into()), ..NodeChange::default() });
    seen += &next().await;
    stage.upstreams.press(PowerCommand::On, &ids).expect("known");
    seen += &next().await;
    expect![[r#"
        {"Components":["x1000c0s0b0n0"],"Enabled":false}
        {"Components":["x1000c0s0b0n0"],"Flag":"Locked"}
        {"Components":["x1000c0s0b0n0"],"Role":"Service","SubRole":""}
        {"Components":["x1000c0s0b0n0"],"State":"On"}
    "#]]
    .assert_eq(&seen);

    assert_eq!(stage.ask(Hsm, Method::DELETE, "/Subscriptions/SCN/1", None).await.0, StatusCode::OK);
    let (_, left) = stage.get(Hsm, "/Subscriptions/SCN").await;
    assert_eq!(left, json!({"SubscriptionList": []}));
}

fn lines(list: &Value) -> String {
    list.as_array().expect("a list").iter().map(|item| format!("{item}\n")).collect()
}
