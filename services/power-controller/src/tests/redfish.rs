//! BMCs as the upstream.

use std::fmt::Write as _;

use axum::{Router, routing::get};
use tokio::time::Instant;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_bmc_of_another() {
    let mut mesh = Mesh::new(Options::default()).await;
    let system = Router::new().route("/redfish/v1/Systems/1", get(async || r#"{"PowerState": "On"}"#));
    let fine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut machine = bmc("fine", &fine);
    tokio::spawn(async move { axum::serve(fine, system).await });
    // Each takes calls and does not answer them.
    let mut hung = Vec::new();
    for number in 0..12 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        machine += &bmc(&format!("hung{number}"), &listener);
        hung.push(listener);
    }
    mesh.settings.machine_file = mesh.settings.data_dir.join("machine.toml");
    std::fs::write(&mesh.settings.machine_file, machine).unwrap();
    mesh.settings.power.driver = PowerDriver::Redfish;
    mesh.settings.power.redfish.plain_http = true;
    mesh.start().await;
    let began = Instant::now();
    for number in 0..12 {
        mesh.registry.put([node(&format!("hung{number}"), Phase::Configuring)]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    mesh.registry.put([node("hung0", Phase::Configuring), node("fine", Phase::Configuring)]);
    mesh.until_read("fine", PowerReading::On).await;
    // Far less than the time for an answer.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// A node and its BMC as they stand in a machine file.
fn bmc(id: &str, listener: &TcpListener) -> String {
    let mut text = String::new();
    writeln!(text, "[[bmc]]\nname = '{id}'\nurl = 'http://{}'", listener.local_addr().unwrap()).unwrap();
    writeln!(text, "[[node]]\nid = '{id}'\nbmc = '{id}'\nsystem = '/redfish/v1/Systems/1'").unwrap();
    text
}
