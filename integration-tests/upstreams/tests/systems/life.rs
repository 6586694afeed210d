//! The life of a node from one end to the other.

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::patch,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use upstreams::{
    EventKind, MachinePlan,
    Service::{Bss, Cfs, Hsm, Pcs},
};

use crate::stage::{listener, stage, until};

const NODE: &str = "x1000c0s0b0n0";

/// Plays the gateway and forwards the nodes' reports.
async fn gateway() -> (String, mpsc::UnboundedReceiver<Value>) {
    let (told, heard) = mpsc::unbounded_channel();
    let take = |State(told): State<mpsc::UnboundedSender<Value>>, Path(_): Path<String>, body: String| async move {
        let sent = told.send(serde_json::from_str(&body).expect("JSON"));
        if sent.is_ok() { StatusCode::OK } else { StatusCode::GONE }
    };
    let listener = listener().await;
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let routes = Router::new().route("/apis/bos/v2/components/{id}", patch(take)).with_state(told);
    tokio::spawn(async { axum::serve(listener, routes).await.expect("serves") });
    (url, heard)
}

#[tokio::test]
async fn node_boots_its_data_reports_and_is_configured() {
    let (gateway_url, mut reports) = gateway().await;
    let stage = stage(MachinePlan { gateway_url, ..MachinePlan::quick(2) }).await;
    let boot = json!({"hosts": [NODE], "params": "quiet", "kernel": "k", "initrd": "i"});
    let answer = stage.send(Bss, Method::PUT, "/bootparameters", Some(&boot)).await.expect("an answer");
    let token = answer.headers()["bss-referral-token"].to_str().expect("text").to_owned();
    let change = json!({"enabled": false, "desired_config": "c1", "state": []});
    let body = json!({"patch": change, "filters": {"ids": NODE}});
    stage.ask(Cfs, Method::PATCH, "/components", Some(&body)).await;
    let on = json!({"operation": "On", "taskDeadlineMinutes": 1, "location": [{"xname": NODE}]});
    stage.post(Pcs, "/transitions", on).await;

    let report = reports.recv().await.expect("a report");
    assert_eq!(report, json!({"id": NODE, "actual_state": {"bss_token": token}}));
    until("configured", || stage.upstreams.summary().configuration.get("configured") == Some(&1)).await;
    let (_, component) = stage.get(Hsm, &format!("/State/Components/{NODE}")).await;
    assert_eq!(component["State"], "Ready");
    let (_, configured) = stage.get(Cfs, &format!("/components/{NODE}")).await;
    assert_eq!(
        (&configured["enabled"], &configured["configuration_status"]),
        (&json!(true), &json!("configured"))
    );

    let history = stage.upstreams.history(NODE).expect("known");
    let words = history.iter().map(|event| match &event.what {
        EventKind::BootData { .. } => "boot data",
        EventKind::Configuration { .. } => "configuration",
        EventKind::Asked { operation, .. } => operation,
        EventKind::Result { status, .. } => status,
        EventKind::On => "on",
        EventKind::Off => "off",
        EventKind::Booted { token: booted } if **booted == *token => "booted",
        EventKind::Booted { .. } => "booted something else",
        EventKind::Configured { status } => status,
        EventKind::Locked { .. } => "locked",
    });
    let words: Vec<_> = words.collect();
    assert_eq!(
        words,
        ["boot data", "configuration", "pending", "On", "on", "succeeded", "booted", "configured"]
    );
    stage.upstreams.stop().await;
}
