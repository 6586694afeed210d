//! Concurrent writes of the same components.

use integration_tests::{bos::Bos, mesh::Mesh};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const COMPONENTS: usize = 20;

const ROUNDS: usize = 30;

fn id(index: usize) -> String {
    format!("c{index}")
}

/// Patches one component after the other, round after round.
async fn one_by_one(bos: Bos, patch: fn(usize) -> Value) {
    for round in 1..=ROUNDS {
        for index in 0..COMPONENTS {
            let path = format!("/v2/components/{}", id(index));
            bos.expect(Method::PATCH, &path, Some(&patch(round))).await;
        }
    }
}

/// Patches all of them at once, round after round.
async fn all_at_once(bos: Bos) {
    for round in 1..=ROUNDS {
        let wish = |index| json!({"id": id(index), "desired_state": {"configuration": format!("c-{round}")}});
        let wishes: Vec<_> = (0..COMPONENTS).map(wish).collect();
        bos.expect(Method::PATCH, "/v2/components", Some(&wishes.into())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_different_fields_lose_nothing_of_each_other() {
    let mesh = Mesh::start(async |settings| settings.simulator.nodes = 0).await;
    let records: Vec<_> = (0..COMPONENTS).map(|index| json!({"id": id(index), "enabled": false})).collect();
    mesh.bos.expect(Method::PUT, "/v2/components", Some(&records.into())).await;
    let mut writers = JoinSet::new();
    writers.spawn(one_by_one(mesh.bos.clone(), |round| json!({"retry_policy": round})));
    writers.spawn(one_by_one(mesh.bos.clone(), |round| json!({"error": format!("e-{round}")})));
    writers.spawn(one_by_one(mesh.bos.clone(), |round| {
        json!({"actual_state": {"boot_artifacts": {"kernel": format!("k-{round}"), "kernel_parameters": "", "initrd": ""}}})
    }));
    writers.spawn(all_at_once(mesh.bos.clone()));
    writers.join_all().await;
    for index in 0..COMPONENTS {
        let component = mesh.bos.component(&id(index)).await;
        let seen = json!([
            component["retry_policy"],
            component["error"],
            component["actual_state"]["boot_artifacts"]["kernel"],
            component["desired_state"]["configuration"],
        ]);
        let last = ROUNDS;
        assert_eq!(seen, json!([last, format!("e-{last}"), format!("k-{last}"), format!("c-{last}")]));
    }
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_creators_of_a_session_succeeds() {
    let mesh = Mesh::start(async |settings| settings.simulator.nodes = 4).await;
    mesh.bos.template("image-1").await;
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let bos = mesh.bos.clone();
        let wish = json!({"template_name": "image-1", "operation": "boot", "name": "the-same"});
        clients
            .spawn(async move { bos.send(Method::POST, "/v2/sessions", Some(&wish)).await.status.as_u16() });
    }
    let mut answers = clients.join_all().await;
    answers.sort_unstable();
    assert_eq!(answers, [vec![201], vec![409; 15]].concat());
    assert_eq!(mesh.bos.get("/v2/sessions").await.as_array().unwrap().len(), 1);
    mesh.bos.complete("the-same").await;
    mesh.stop().await;
}
