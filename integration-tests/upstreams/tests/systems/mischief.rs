//! Trouble that resembles success: swapped answers, late effects, readings that lag.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use upstreams::{
    IdCollection, MachinePlan, NodeChange, PowerCommand, PowerEvent,
    Service::{Bss, Cfs, Pcs, Tapms},
    ServiceTrouble, TroubleEffect,
};

use crate::stage::{Stage, stage, until};

const A: &str = "x1000c0s0b0n0";
const B: &str = "x1000c0s0b0n1";
const POST: &str = "POST /transitions";

async fn quick() -> Stage {
    stage(MachinePlan::quick(8)).await
}

/// Requests a power-on of one node and returns the id in the answer.
async fn on(stage: &Stage, id: &str) -> String {
    let body = json!({"operation": "On", "location": [{"xname": id}]});
    let (status, answer) = stage.post(Pcs, "/transitions", body).await;
    assert_eq!(status, StatusCode::OK);
    answer["transitionID"].as_str().expect("an id").to_owned()
}

/// The nodes of a transition.
async fn nodes(stage: &Stage, id: &str) -> Vec<String> {
    let (_, transition) = stage.get(Pcs, &format!("/transitions/{id}")).await;
    let tasks = transition["tasks"].as_array().expect("tasks").iter();
    tasks.map(|task| task["xname"].as_str().expect("a name").to_owned()).collect()
}

fn status_of(stage: &Stage, number: usize) -> Value {
    stage.upstreams.transitions()[number]["transitionStatus"].clone()
}

#[tokio::test]
async fn answers_of_two_requests_can_be_swapped() {
    let stage = quick().await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Swap).only(POST).times(2));
    let (first, second) = tokio::join!(on(&stage, A), on(&stage, B));
    let told = (nodes(&stage, &first).await, nodes(&stage, &second).await);
    assert_eq!(told, (vec![B.to_owned()], vec![A.to_owned()]));
    assert_eq!(nodes(&stage, &on(&stage, A).await).await, [A]);
}

#[tokio::test]
async fn answers_can_be_repeated_for_others() {
    let stage = quick().await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Repeat).only(POST));
    assert_eq!(on(&stage, A).await, on(&stage, B).await);
    stage.upstreams.clear_troubles(None);
    assert_eq!(nodes(&stage, &on(&stage, B).await).await, [B]);
    assert_eq!(stage.upstreams.summary().power.on, 3);
}

#[tokio::test]
async fn requests_can_be_performed_twice() {
    let stage = quick().await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Twice).only(POST).times(1));
    on(&stage, A).await;
    assert_eq!((stage.upstreams.summary().power.on, stage.upstreams.requests(Pcs, POST)), (2, 1));
}

#[tokio::test]
async fn transition_of_dead_worker_is_performed_late() {
    let stage = quick().await;
    stage.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::WorkerDies).only(POST).times(1));
    on(&stage, A).await;
    assert_eq!((status_of(&stage, 0), stage.upstreams.summary().on), (json!("new"), 0));
    until("performed", || stage.upstreams.summary().on == 1).await;
    until("ended", || status_of(&stage, 0) == "completed").await;
}

#[tokio::test]
async fn restarted_power_service_resumes_its_transitions() {
    let mut plan = MachinePlan::quick(8);
    plan.power.confirm_period = Duration::from_secs(3600);
    plan.power.prompt_results = false;
    let stage = stage(plan).await;
    let id = on(&stage, A).await;
    until("on", || stage.upstreams.summary().on == 1).await;
    let event = json!({"event": "restart", "seconds": 0.3});
    assert_eq!(stage.control(Method::POST, "/power-service", Some(event)).await.0, StatusCode::NO_CONTENT);
    assert!(stage.send(Pcs, Method::GET, "/transitions", None).await.is_err(), "it is down");
    until("resumed", || status_of(&stage, 0) == "completed").await;
    assert_eq!(nodes(&stage, &id).await, [A]);
    assert_eq!(stage.upstreams.summary().reserved, 0);
}

#[tokio::test]
async fn power_states_can_lag() {
    let stage = quick().await;
    stage.upstreams.power_service(PowerEvent::NoSampling { seconds: 0.3 });
    stage.upstreams.press(PowerCommand::On, &[A.to_owned()]).expect("known");
    until("on", || stage.upstreams.summary().on == 1).await;
    let state = async || {
        let (_, answer) = stage.post(Pcs, "/power-status", json!({"xname": [A]})).await;
        answer["status"][0]["powerState"].clone()
    };
    assert_eq!(state().await, "off");
    while state().await != "on" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn refusals_of_everybody_end_by_themselves() {
    for (service, path) in [(Pcs, "/transitions"), (Bss, "/bootparameters"), (Cfs, "/components")] {
        let stage = quick().await;
        stage.upstreams.trouble(ServiceTrouble::status(service, 400).lasting(Duration::from_millis(300)));
        assert_eq!(stage.get(service, path).await.0, StatusCode::BAD_REQUEST);
        while stage.get(service, path).await.0 == StatusCode::BAD_REQUEST {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn tenants_can_lose_nodes_for_a_moment() {
    for (fraction, most) in [(1.0, 0), (0.5, 6)] {
        let stage = quick().await;
        stage.upstreams.set_collection(IdCollection::Tenant, "blue", Some(stage.upstreams.ids()));
        let members = async || {
            let (status, tenant) = stage.get(Tapms, "/tenants/blue").await;
            assert_eq!(status, StatusCode::OK);
            tenant["status"]["tenantresources"][0]["xnames"].as_array().expect("a list").len()
        };
        let moment =
            ServiceTrouble::new(Tapms, TroubleEffect::Omit { fraction }).lasting(Duration::from_millis(300));
        stage.upstreams.trouble(moment);
        assert!(members().await <= most);
        while members().await < 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn reservations_of_others_end_by_themselves() {
    let stage = quick().await;
    let change = NodeChange { reserved_seconds: Some(0.3), ..NodeChange::default() };
    stage.upstreams.change(&[A.to_owned()], &change).expect("known");
    assert_eq!(stage.upstreams.node(A).expect("known").reserved_by.as_deref(), Some("somebody"));
    on(&stage, A).await;
    until("free", || stage.upstreams.summary().reserved == 0).await;
    assert_eq!(stage.upstreams.summary().power.refused_reservations, 1);
}

#[tokio::test]
async fn administrators_have_transitions_of_their_own() {
    let stage = quick().await;
    let id = stage.upstreams.foreign_transition("On", &[A.to_owned()]).expect("an operation");
    assert_eq!(nodes(&stage, &id).await, [A]);
    assert!(stage.upstreams.foreign_transition("Sideways", &[]).is_err());
    until("on", || stage.upstreams.summary().on == 1).await;
}
