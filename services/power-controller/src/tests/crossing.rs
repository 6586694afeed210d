//! Actions while the upstream works on another one on the same node.

use domain::boot::component::Action;
use proto::power::AbandonTransitionRequest;
use serde_json::json;

use super::*;
use crate::testing::pcs::PcsTrouble;

/// Returns a time that no clock of the test reaches.
pub(super) fn later() -> String {
    (chrono::Utc::now() + chrono::Duration::seconds(3600)).to_rfc3339()
}

/// Returns a mesh with an overdue shutdown, which the upstream never ends by itself, after a restart.
pub(super) async fn overdue_shutdown() -> ControllerMesh {
    let mut mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    let accepted = mesh.until_delivery(Delivery::Accepted).await;
    mesh.stop().await;
    mesh.age(&accepted, Duration::from_secs(91)).await;
    mesh.pcs.age_transition(91);
    mesh.start().await;
    mesh.until_called("DELETE /transitions/t-1", 1).await;
    mesh
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overdue_transition_is_withdrawn_and_waited_for() {
    let mesh = overdue_shutdown().await;
    let shows = |one: &Component| {
        one.power_error().contains("transition t-1 of the power upstream: its withdrawal was requested")
    };
    mesh.until_component("x1", "shows what is waited for", shows).await;
    // The reading is off, and a newer generation wants on: nothing is sent while the shutdown is open.
    mesh.pcs.set_power(&["x1"], "off", &now());
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    mesh.until_called("GET /transitions/t-1", 3).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"]);
    let held = || async { mesh.state("x1").await.filter(|state| !state.action_waits_for.is_empty()) };
    let held = until("what the power-on waits for", held).await;
    let begin = "waiting for transition t-1 of the power upstream";
    assert!(held.action_waits_for.starts_with(begin), "{}", held.action_waits_for);
    assert_eq!((held.reading(), held.error.as_str()), (PowerReading::Off, ""), "the power is known");
    let open = mesh.transitions().await.pop().unwrap();
    assert_eq!(open.delivery(), Delivery::Accepted);
    assert!(open.withdrawn_at.is_some());
    mesh.pcs.set_tasks(
        &["x1"],
        "failed",
        "Aborted. Last status - Confirming successful transition",
        "Transition aborted",
    );
    mesh.pcs.set_status("aborted");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
    let free = || async { mesh.state("x1").await.filter(|state| state.action_waits_for.is_empty()) };
    until("nothing to wait for", free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_waits_for_a_withdrawn_transition() {
    let mut mesh = overdue_shutdown().await;
    mesh.stop().await;
    mesh.pcs.set_power(&["x1"], "off", &now());
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    mesh.start().await;
    mesh.until_called("GET /transitions/t-1", 3).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"]);
    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, off", "");
    mesh.pcs.set_status("completed");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_generation_waits_for_the_transition_of_an_older_one() {
    let mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.pcs.set_power(&["x1"], "off", &now());
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.until_called("GET /transitions/t-1", 5).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"]);
    // The effect of the shutdown is seen, so the power is known; only the next action waits for the end.
    let state = mesh.state("x1").await.unwrap();
    assert_eq!((state.reading(), state.error.as_str()), (PowerReading::Off, ""));
    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, off", "");
    mesh.pcs.set_status("completed");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_transition_needs_a_reading_of_after_its_end() {
    let mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    mesh.pcs.forget_transitions();
    mesh.until_delivery(Delivery::Finished).await;
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.until_called("POST /power-status", 3).await;
    assert!(mesh.pcs.taken().is_empty(), "the upstream may have read that before the shutdown");
    mesh.pcs.set_power(&["x1"], "off", &later());
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_hides_no_open_transition() {
    let mut mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.stop().await;
    mesh.pcs.set_ahead(600);
    mesh.pcs.set_power(&["x1"], "off", &later());
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    mesh.start().await;
    mesh.until_delivery(Delivery::Unknown).await;
    let polls = mesh.pcs.count("GET /transitions/t-1");
    mesh.until_called("GET /transitions/t-1", polls + 2).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"], "it is still open");
    mesh.pcs.set_status("completed");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_gives_up_a_transition_that_never_ends() {
    let mesh = overdue_shutdown().await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    let open = mesh.transitions().await.pop().unwrap();
    let abandon = async |id: &str| {
        let request =
            AbandonTransitionRequest { id: id.to_owned(), request_id: "r1".into(), ..Default::default() };
        mesh.client().abandon_transition(request).await
    };
    let first = abandon(&open.upstream_id).await.unwrap().into_inner().transition.unwrap();
    assert_eq!(first.abandoned_by, "r1");
    let finished = mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(finished.error, "an operator gave it up");
    for id in [&open.id, &open.upstream_id] {
        assert_eq!(abandon(id).await.unwrap().into_inner().transition.unwrap(), finished);
    }
    assert_eq!(abandon("none").await.unwrap_err().code(), tonic::Code::NotFound);
    assert_eq!(abandon("").await.unwrap_err().code(), tonic::Code::InvalidArgument);
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"], "its power was not read yet");
    mesh.pcs.set_power(&["x1"], "off", &later());
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_answers_are_put_right() {
    let mut mesh =
        ControllerMesh::new(Options { max_component_batch_size: Some(1), ..Options::default() }).await;
    mesh.start().await;
    mesh.pcs.mistake_ids(&["t-2", "t-1"]);
    mesh.power_on(&["x1", "x2"]).await;
    mesh.until_taken(2).await;
    let put_right = || async {
        let taken = mesh.pcs.taken();
        let transitions = mesh.transitions().await;
        let is_right = |one: &Transition| {
            let number: usize = one.upstream_id.strip_prefix("t-").and_then(|n| n.parse().ok()).unwrap_or(99);
            one.delivery() == Delivery::Accepted
                && taken.get(number - 1) == Some(&format!("On {}", one.members[0].id))
        };
        (transitions.len() == 2 && transitions.iter().all(is_right)).then_some(())
    };
    until("each to have its own id", put_right).await;
    mesh.until_called("GET /transitions/t-", 6).await;
    assert_eq!(mesh.pcs.taken().len(), 2);
    assert_eq!(mesh.pcs.count("DELETE"), 0);
    mesh.pcs.complete_all();
    mesh.until_read("x1", PowerReading::On).await;
    mesh.until_read("x2", PowerReading::On).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn id_that_the_upstream_does_not_know_is_no_end() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.start().await;
    mesh.pcs.mistake_ids(&["t-2"]);
    mesh.power_on(&["x1"]).await;
    mesh.until_called("GET /transitions/t-2", 1).await;
    let found = || async {
        let transition = mesh.transitions().await.pop()?;
        (transition.delivery() == Delivery::Accepted && transition.upstream_id == "t-1").then_some(())
    };
    until("its own id", found).await;
    assert_eq!((mesh.pcs.taken(), mesh.pcs.count("DELETE")), (vec!["On x1".to_owned()], 0));
}

/// Returns a transition that an administrator requested some seconds ago.
pub(super) fn foreign(id: &str, operation: &str, node: &str) -> serde_json::Value {
    let began = (chrono::Utc::now() - chrono::Duration::seconds(10)).to_rfc3339();
    json!({"transitionID": id, "operation": operation, "createTime": began, "transitionStatus": "in-progress",
        "tasks": [{"xname": node, "taskStatus": "in-progress", "taskStatusDescription": "Applying transition"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_transition_that_began_before_ours_is_not_adopted() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.add_rival(foreign("admin", "On", "x1"));
    mesh.pcs.trouble("create", Some(PcsTrouble::Hangs));
    mesh.power_on(&["x1"]).await;
    mesh.until_delivery(Delivery::Unknown).await;
    mesh.pcs.trouble("create", None);
    mesh.until_waiting_for("x1", "admin").await;
    assert_eq!(mesh.transitions().await.pop().unwrap().delivery(), Delivery::Prepared);
    assert_eq!((mesh.pcs.taken(), mesh.pcs.count("DELETE")), (vec!["On x1".to_owned()], 0));
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_transition_that_began_while_ours_was_in_doubt_is_not_adopted() {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Hangs));
    mesh.power_on(&["x1"]).await;
    let sent = mesh.until_delivery(Delivery::Unknown).await;
    mesh.stop().await;
    mesh.age(&sent, Duration::from_secs(60)).await;
    mesh.pcs.add_transition(foreign("admin", "On", "x1"));
    mesh.pcs.trouble("create", None);
    mesh.start().await;
    mesh.until_called("GET /transitions/admin", 3).await;
    let ours = mesh.transitions().await.pop().unwrap();
    assert_eq!((ours.delivery(), ours.upstream_id.as_str()), (Delivery::Unknown, ""));
    mesh.pcs.set_power(&["x1"], "on", &later());
    mesh.pcs.complete_all();
    mesh.until_read("x1", PowerReading::On).await;
    let is_over = || async { mesh.transitions().await.is_empty().then_some(()) };
    until("nothing to be done any more", is_over).await;
    assert_eq!((mesh.pcs.taken(), mesh.pcs.count("DELETE")), (vec!["On x1".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_with_which_the_upstream_begins_again_is_waited_for_until_it_is_given_up() {
    let mut mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.set_tasks(&["x1"], "succeeded", "", "");
    mesh.pcs.set_status("completed");
    let over = mesh.until_delivery(Delivery::Finished).await;
    mesh.stop().await;
    mesh.pcs.set_tasks(&["x1"], "in-progress", "Applying transition", "");
    mesh.pcs.set_status("in-progress");
    mesh.pcs.set_power(&["x1"], "off", &later());
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    mesh.start().await;
    mesh.until_waiting_for("x1", "t-1").await;
    let id = over.id;
    let request = AbandonTransitionRequest { id, request_id: "r1".to_owned(), ..Default::default() };
    mesh.client().abandon_transition(request).await.unwrap();
    mesh.pcs.set_power(&["x1"], "off", &later());
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_that_ended_before_the_start_may_have_its_effect() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    mesh.pcs.add_transition(foreign("admin", "Soft-Off", "x1"));
    mesh.pcs.set_tasks(&["x1"], "failed", "", "Timeout waiting for transition");
    mesh.pcs.set_status("completed");
    mesh.power_off(&["x1"]).await;
    mesh.start().await;
    mesh.until_called("POST /power-status", 3).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1"], "no shutdown of ours beside it");
    assert_eq!(mesh.state("x1").await.unwrap().generation, 0, "'on' is no evidence for the generation");
    mesh.pcs.set_power(&["x1"], "off", &later());
    let off = || async { mesh.state("x1").await.filter(|state| state.generation == 2) };
    assert_eq!(until("a reading of the generation", off).await.reading(), PowerReading::Off);
}

#[tokio::test(flavor = "multi_thread")]
async fn released_nodes_do_not_wait_for_nodes_that_are_held() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.add_rival(foreign("admin1", "Soft-Off", "x1"));
    mesh.pcs.add_rival(foreign("admin2", "Soft-Off", "x2"));
    mesh.power_on(&["x1", "x2"]).await;
    mesh.until_taken(3).await;
    mesh.pcs.set_tasks(
        &["x1", "x2"],
        "failed",
        "Failed to achieve transition",
        "Unable to reserve component",
    );
    mesh.pcs.set_status("completed");
    mesh.until_called("GET /transitions/admin2", 2).await;
    mesh.pcs.set_status_of("admin1", "completed");
    mesh.pcs.set_power(&["x1", "x2"], "off", &later());
    assert_eq!(mesh.until_taken(4).await[3], "On x1");
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
    mesh.pcs.set_status_of("admin2", "completed");
    assert_eq!(mesh.until_taken(5).await[4], "On x2");
    assert_eq!(attempts(&mesh.registry.get("x2").await, Action::PoweringOn), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_by_a_known_transition_spends_no_attempt() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.add_rival(foreign("admin", "Soft-Off", "x1"));
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(2).await;
    mesh.pcs.set_tasks(&["x1"], "failed", "Failed to achieve transition", "Unable to reserve component");
    mesh.pcs.set_status("completed");
    let waits =
        |one: &Component| one.power_error().starts_with("waiting for transition admin of the power upstream");
    mesh.until_component("x1", "waits for the other one", waits).await;
    mesh.until_called("GET /transitions/admin", 2).await;
    assert_eq!(mesh.pcs.taken().len(), 2, "it is still held");
    mesh.pcs.set_status_of("admin", "completed");
    mesh.pcs.set_power(&["x1"], "off", &later());
    assert_eq!(mesh.until_taken(3).await[2], "On x1");
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&node, Action::PoweringOn), 1);
    assert_eq!(mesh.pcs.count("DELETE"), 0);
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_an_operator_gave_up_is_over() {
    let mut mesh =
        ControllerMesh::new(Options { max_power_on_wait_time: Some(1), ..Options::default() }).await;
    mesh.start().await;
    mesh.pcs.add_rival(foreign("admin", "Soft-Off", "x1"));
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(2).await;
    mesh.pcs.set_tasks(&["x1"], "failed", "Failed to achieve transition", "Unable to reserve component");
    mesh.pcs.set_status("completed");
    let waits = |one: &Component| one.power_error().starts_with("waiting for transition admin");
    mesh.until_component("x1", "waits for the other one", waits).await;
    mesh.until_delivery(Delivery::Prepared).await;
    mesh.abandon_open_transition().await;
    mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(mesh.until_delivery(Delivery::Finished).await.error, "an operator gave it up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_by_somebody_unknown_spends_no_attempt() {
    let mut mesh = ControllerMesh::new(Options {
        max_power_off_wait_time: Some(1),
        default_retry_policy: Some(1),
        ..Options::default()
    })
    .await;
    mesh.start().await;
    mesh.power_off(&["x1", "x2"]).await;
    let words = "waiting for the end of a reservation of the node at the power upstream; its holder is unknown or was given up";
    // The refusals exceed the limit for a node, and once the upstream does not name the holder.
    for times in 1..=2 {
        let taken = mesh.until_taken(times).await;
        assert_eq!(taken[times - 1], if times == 1 { "Soft-Off x1 x2" } else { "Soft-Off x1" });
        mesh.until_delivery(Delivery::Accepted).await;
        let trouble = (times == 2).then(|| PcsTrouble::Answers(503, String::new()));
        mesh.pcs.trouble("list", trouble);
        mesh.pcs.set_tasks(&["x1"], "failed", "Failed to achieve transition", "Unable to reserve component");
        mesh.pcs.set_tasks(&["x2"], "succeeded", "", "");
        mesh.pcs.set_status("completed");
        mesh.until_component("x1", "shows what it waits for", |one| one.power_error() == words).await;
    }
    mesh.pcs.trouble("list", None);
    mesh.until_taken(3).await;
    mesh.pcs.complete_all();
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    let spent =
        [Action::PoweringOffGracefully, Action::PoweringOffForcefully].map(|one| attempts(&node, one));
    assert_eq!((spent, node.last_action_failed()), ([1, 0], false));
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}
