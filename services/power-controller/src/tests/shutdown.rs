//! Nodes that were off since they were asked to shut down, while nobody judged them.

use super::*;

/// Returns a mesh that has asked a running node to shut down, and that would force it off after a second.
async fn asked() -> ControllerMesh {
    let options = Options { max_power_off_wait_time: Some(1), ..Options::default() };
    let mut mesh = ControllerMesh::new(options).await;
    mesh.start().await;
    mesh.power_off(&["x1"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    mesh.until_delivery(Delivery::Accepted).await;
    mesh
}

impl ControllerMesh {
    /// Ends the shutdown with its effect.
    fn shut_down(&self) {
        self.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, off", "");
        self.pcs.set_status("completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_somebody_switches_on_after_its_shutdown_is_asked_again() {
    let mesh = asked().await;
    mesh.shut_down();
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.pcs.set_power(&["x1"], "on", &super::crossing::later());
    assert_eq!(mesh.until_taken(2).await[1], "Soft-Off x1");
    // Nothing else came between, and a node that stays on is forced off after its time.
    mesh.pcs.set_tasks(&["x1"], "failed", "", "Timeout waiting for transition");
    mesh.pcs.set_status("completed");
    assert_eq!(mesh.until_taken(3).await[2], "Force-Off x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_was_off_while_the_service_was_away_is_asked_again() {
    let mut mesh = asked().await;
    mesh.stop().await;
    mesh.shut_down();
    mesh.pcs.set_power(&["x1"], "on", &super::crossing::later());
    tokio::time::sleep(Duration::from_secs(1)).await;
    mesh.start().await;
    assert_eq!(mesh.until_taken(2).await[1], "Soft-Off x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_was_seen_off_before_a_restart_is_asked_again() {
    let mut mesh = asked().await;
    mesh.shut_down();
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.until_delivery(Delivery::Finished).await;
    mesh.stop().await;
    mesh.pcs.set_power(&["x1"], "on", &super::crossing::later());
    tokio::time::sleep(Duration::from_secs(1)).await;
    mesh.start().await;
    assert_eq!(mesh.until_taken(2).await[1], "Soft-Off x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_without_a_result_is_asked_for_again() {
    let mesh = asked().await;
    mesh.until_called("GET /transitions/t-1", 2).await;
    mesh.pcs.forget_transitions();
    let failed = |one: &Component| one.last_action_failed();
    let node = mesh.until_component("x1", "the shutdown has failed", failed).await;
    assert_eq!(node.power_error(), "the power upstream ended it without a result");
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
}
