//! The mesh as processes of their own.

use integration_tests::{
    eventually,
    processes::{PARTS, Processes},
};
use serde_json::json;

const NODES: u32 = 200;

/// Hardware slow enough that parts are stopped while nodes are under way: a boot takes a few seconds.
const SPEED: f64 = 0.02;

#[tokio::test(flavor = "multi_thread")]
async fn every_part_logs_as_the_option_says() {
    let mesh = Processes::start(2, 0.0).await;
    let parts = || PARTS.into_iter().map(|(part, _)| part).filter(|part| *part != "simulator");
    let follows = async |level: &str| {
        mesh.bos.options(&json!({"logging_level": level})).await;
        for part in parts() {
            let word = format!("\"logging_level\":\"{}\"", level.to_lowercase());
            eventually(&format!("{part} to log at {level}"), async || {
                mesh.log(part).contains(&word).then_some(())
            })
            .await;
        }
    };
    follows("DEBUG").await;
    follows("info").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_a_restart_of_every_part() {
    let mut mesh = Processes::start(NODES, SPEED).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    for (part, _) in PARTS.into_iter().filter(|(part, _)| *part != "simulator") {
        mesh.stop_part(part).await;
        mesh.start_part(part);
    }
    mesh.bos.ready().await;
    mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
}
