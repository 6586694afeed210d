//! A watcher that reads nothing for a long time.

use std::collections::BTreeMap;

use integration_tests::{eventually, processes::Processes};
use proto::component::{WatchComponentsRequest, component_service_client::ComponentServiceClient};
use reqwest::Method;
use serde_json::{Value, json};

/// Components, and how long the text is that each of them gets again and again.
const COMPONENTS: usize = 200;
const TEXT: usize = 60_000;

/// Rounds while every watcher reads, and all rounds.
const READ: usize = 20;
const ROUNDS: usize = 50;

/// Largest growth of the registry in megabytes because of one unread watch: a few copies of the newest state, not every
/// change since.
const MOST: u64 = 150;

#[tokio::test(flavor = "multi_thread")]
async fn unread_watch_costs_no_queue_and_delays_no_client() {
    let mesh = Processes::start(1, 0.0).await;
    let mut client =
        ComponentServiceClient::new(chassis::plain_channel(&mesh.url("component_registry")).unwrap())
            .max_decoding_message_size(chassis::mesh::channel::LARGEST_MESSAGE);
    write(&mesh, 0).await;
    let mut other =
        client.clone().watch_components(WatchComponentsRequest::default()).await.unwrap().into_inner();
    let reading = tokio::spawn(async move {
        let mut seen = BTreeMap::new();
        while seen.len() < COMPONENTS || seen.values().any(|round| *round != ROUNDS) {
            let batch = other.message().await.unwrap().unwrap();
            seen.extend(batch.components.iter().filter_map(round_of));
        }
    });
    for round in 1..=READ {
        write(&mesh, round).await;
    }
    let before = mesh.peak_memory("component_registry") >> 20;
    let mut silent = client.watch_components(WatchComponentsRequest::default()).await.unwrap().into_inner();
    for round in READ + 1..=ROUNDS {
        write(&mesh, round).await;
    }
    tokio::time::timeout(integration_tests::PATIENCE, reading).await.expect("the other watcher").unwrap();
    let after = mesh.peak_memory("component_registry") >> 20;
    let written = (COMPONENTS * TEXT * (ROUNDS - READ)) >> 20;
    eprintln!("{written} MB were written; the registry took {before} MB before and {after} MB after");
    assert!(after - before < MOST, "{before} MB, then {after} MB");

    // When the client reads again, the watch continues in order to the newest state, without all of the steps.
    let (mut seen, mut revision, mut received) = (BTreeMap::new(), 0, 0);
    while seen.len() < COMPONENTS || seen.values().any(|round| *round != ROUNDS) {
        let batch = silent.message().await.unwrap().unwrap();
        assert!(batch.revision >= revision, "{} after {revision}", batch.revision);
        revision = batch.revision;
        received += batch.components.len();
        seen.extend(batch.components.iter().filter_map(round_of));
    }
    assert!(received < COMPONENTS * (ROUNDS - READ), "{received} changes were kept for the watcher");
    eventually("a gateway as before", async || {
        mesh.bos.try_send(Method::GET, "/v2/components?status=stable", None).await.ok().map(drop)
    })
    .await;
}

fn round_of(component: &proto::component::Component) -> Option<(String, usize)> {
    let round = component.error.as_ref()?.split_once(' ')?.0.parse().ok()?;
    Some((component.id.clone(), round))
}

async fn write(mesh: &Processes, round: usize) {
    let text = format!("{round} {}", "e".repeat(TEXT));
    let record = |index: usize| json!({"id": format!("c{index}"), "enabled": false, "error": text});
    let records: Vec<_> = (0..COMPONENTS).map(record).collect();
    mesh.bos.expect(Method::PUT, "/v2/components", Some(&Value::Array(records))).await;
}
