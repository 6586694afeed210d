//! BMCs as the upstream.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Router,
    routing::{get, post},
};
use domain::boot::component::Action;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{replicas::lose, *};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_bmc_of_another() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    let system = Router::new().route("/redfish/v1/Systems/1", get(async || r#"{"PowerState": "On"}"#));
    let fine = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut machine = bmc("fine", &fine);
    tokio::spawn(async move { axum::serve(fine, system).await });
    // Each of these BMCs takes calls and does not answer them.
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
        mesh.assign(&[&format!("hung{number}")], Phase::Configuring).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    mesh.assign(&["hung0", "fine"], Phase::Configuring).await;
    mesh.until_read("fine", PowerReading::On).await;
    // The limit is far less than the deadline for an answer.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// BMC that takes every reset and carries none out.
struct StubbornBmc {
    /// Entry in a machine file.
    machine: String,
    /// Resets that it took.
    resets: Arc<Mutex<Vec<String>>>,
    power: Arc<Mutex<&'static str>>,
}

/// Starts the BMC of the node, which is on.
async fn stubborn_bmc(id: &str) -> StubbornBmc {
    let resets = Arc::new(Mutex::new(Vec::new()));
    let power = Arc::new(Mutex::new("On"));
    let target = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
    let types = ["On", "GracefulShutdown", "ForceOff"];
    let actions = json!({"target": target, "ResetType@Redfish.AllowableValues": types});
    let shown = Arc::clone(&power);
    let system = async move || {
        json!({"PowerState": *shown.lock(), "Actions": {"#ComputerSystem.Reset": actions}}).to_string()
    };
    let taken = Arc::clone(&resets);
    let reset = async move |body: String| {
        let body: Value = serde_json::from_str(&body).unwrap();
        taken.lock().push(body["ResetType"].as_str().unwrap().to_owned());
    };
    let routes = Router::new().route("/redfish/v1/Systems/1", get(system)).route(target, post(reset));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let machine = bmc(id, &listener);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    StubbornBmc { machine, resets, power }
}

impl ControllerMesh {
    /// Has the nodes of a machine file switched by their BMCs, whose resets may take long.
    fn drive_bmcs(&mut self, machine: &str) {
        self.settings.machine_file = self.settings.data_dir.join("machine.toml");
        std::fs::write(&self.settings.machine_file, machine).unwrap();
        self.settings.power.driver = PowerDriver::Redfish;
        self.settings.power.redfish.plain_http = true;
        self.settings.power.effect_seconds = 600.0;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_reset_is_shown_and_can_be_given_up() {
    let mut mesh =
        ControllerMesh::new(Options { max_power_off_wait_time: Some(1), ..Options::default() }).await;
    let StubbornBmc { machine, resets, .. } = stubborn_bmc("x1").await;
    mesh.drive_bmcs(&machine);
    mesh.start().await;
    mesh.assign(&["x1"], Phase::PoweringOff).await;
    let open = mesh.until_delivery(Delivery::Accepted).await;
    mesh.until_shown_as_endless("x1", &open.upstream_id).await;
    assert_eq!(*resets.lock(), ["GracefulShutdown"]);

    mesh.abandon_open_transition().await;
    let forced = || async { resets.lock().get(1).cloned() };
    assert_eq!(until("another reset", forced).await, "ForceOff");
    let ended = mesh.transitions().await.swap_remove(0);
    assert_eq!((ended.delivery(), ended.error.as_str()), (Delivery::Finished, "an operator gave it up"));
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOffForcefully), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_reset_is_neither_repeated_nor_in_the_way() {
    let Some(url) = test_databases::on_postgres().await else { return };
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.settings.power_controller.database_url.clone_from(&url);
    let StubbornBmc { machine, resets, power } = stubborn_bmc("x1").await;
    mesh.drive_bmcs(&machine);
    mesh.start().await;
    mesh.assign(&["x1"], Phase::PoweringOff).await;
    mesh.until_delivery(Delivery::Accepted).await;
    let read = mesh.until_read("x1", PowerReading::On).await;
    lose("transition", "transitions", &url).await;
    lose("power_state", "power_states", &url).await;
    let again = || async { mesh.state("x1").await.filter(|state| state.reading() == PowerReading::On) };
    assert_eq!(until("a reading of after the loss", again).await.generation, read.generation);
    assert!(mesh.transitions().await.is_empty(), "nothing is recorded from memory");

    // The shutdown has its effect after all, and a newer generation wants the node on.
    *power.lock() = "Off";
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    let on = || async { resets.lock().get(1).cloned() };
    assert_eq!(until("another reset", on).await, "On");
    mesh.until_delivery(Delivery::Accepted).await;
    *power.lock() = "On";
    mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(mesh.until_read("x1", PowerReading::On).await.generation, 3);
    let node = mesh.registry.get("x1").await;
    assert_eq!((attempts(&node, Action::PoweringOn), node.power_error()), (1, ""));
    assert_eq!(*resets.lock(), ["GracefulShutdown", "On"]);
}

/// Returns a node and its BMC as a machine file lists them.
fn bmc(id: &str, listener: &TcpListener) -> String {
    let mut text = String::new();
    writeln!(text, "[[bmc]]\nname = '{id}'\nurl = 'http://{}'", listener.local_addr().unwrap()).unwrap();
    writeln!(text, "[[node]]\nid = '{id}'\nbmc = '{id}'\nsystem = '/redfish/v1/Systems/1'").unwrap();
    text
}
