//! Transitions that the upstream takes and works on.

use chassis::kinds::power::transition_from_wire;
use domain::boot::component::Action;
use proto::power::TaskOutcome;

use super::*;
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_power_evidence_long_before_the_transition_ends_and_older_readings_are_not() {
    let mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1", "x2"]).await;
    assert_eq!(mesh.until_taken(1).await, ["On x1 x2"]);
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.until_called("GET /transitions/t-1", 1).await;
    let read = mesh.pcs.count("POST /power-status");
    mesh.until_called("GET /transitions/t-1", 10).await;
    assert_eq!(mesh.pcs.count("POST /power-status"), read, "who is followed is not asked about");

    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, on", "");
    let state = mesh.until_read("x1", PowerReading::On).await;
    assert_eq!((state.generation, state.error.as_str()), (2, ""));
    // The result is reported before it is on record.
    let shown = "PoweringOn Accepted x1 Succeeded, x2 Unspecified";
    until(shown, || async { mesh.transitions().await.pop().filter(|one| summary(one) == shown) }).await;

    // The reading from before the result is "off".
    mesh.until_called("POST /power-status", 3).await;
    assert_eq!(mesh.state("x1").await.unwrap().reading(), PowerReading::On);

    mesh.pcs.set_power(&["x2"], "on", &now());
    mesh.pcs.set_status("completed");
    let finished = mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(summary(&finished), "PoweringOn Finished x1 Succeeded, x2 Unspecified");
    mesh.until_read("x2", PowerReading::On).await;
    assert_eq!(mesh.state("x1").await.unwrap().reading(), PowerReading::On);
    let reports = mesh.reports();
    assert_eq!(reports, ["x1 powering_on 1 ''", "x2 powering_on 1 ''"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_opposite_is_asked_for_while_the_upstream_holds_the_nodes() {
    let mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1", "x2"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1 x2"]);
    mesh.pcs.set_tasks(&["x1", "x2"], "succeeded", "Transition confirmed, gracefulshutdown", "");
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    mesh.until_called("GET /transitions/t-1", 5).await;
    assert_eq!(mesh.pcs.taken().len(), 1, "the transition still holds x1");
    mesh.pcs.set_status("completed");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_told_once_and_of_its_node_alone() {
    let mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1", "x2", "x3"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.set_tasks(&["x2"], "failed", "Failed to achieve transition", "Missing xname");
    let words = "PCS: Missing xname (Failed to achieve transition)";
    let failed = mesh.until_component("x2", "failed", |one| !one.power_error().is_empty()).await;
    assert_eq!((failed.power_error(), failed.last_action_failed()), (words, true));
    assert_eq!(attempts(&failed, Action::PoweringOn), 1);
    mesh.until_called("GET /transitions/t-1", 3).await;
    mesh.pcs.set_tasks(&["x1", "x3"], "succeeded", "", "");
    mesh.pcs.set_status("completed");
    let finished = mesh.until_delivery(Delivery::Finished).await;
    let shown = format!("PoweringOn Finished x1 Succeeded, x2 Refused ({words}), x3 Succeeded");
    assert_eq!(summary(&finished), shown);
    for id in ["x1", "x3"] {
        let other = mesh.registry.get(id).await;
        assert!(other.power_error().is_empty() && !other.last_action_failed(), "{other:?}");
    }
    let told = mesh.reports();
    assert_eq!(told.iter().filter(|report| report.contains("failed")).count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_were_sent_together_are_looked_at_in_turn_and_tell_together_what_one_of_them_tells() {
    const NODES: usize = 8;
    let mut mesh =
        ControllerMesh::new(Options { max_component_batch_size: Some(1), ..Options::default() }).await;
    // There are so many polls in turn that the last would come long after the first.
    mesh.settings.power.follow_seconds = 1.0;
    mesh.settings.power.poll_seconds = 60.0;
    mesh.start().await;
    let ids: Vec<_> = (0..NODES).map(|n| format!("x{n}")).collect();
    mesh.power_on(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    mesh.until_taken(NODES).await;
    mesh.pcs.complete_all();
    let request = WatchPowerStatesRequest { resume_revision: 0 };
    let mut changes = mesh.client().watch_power_states(request).await.unwrap().into_inner();
    let (mut batches, mut on) = (0, 0);
    while on < NODES {
        let batch = changes.message().await.unwrap().unwrap();
        let more = batch.power_states.iter().filter(|state| state.reading() == PowerReading::On).count();
        batches += usize::from(more > 0);
        on += more;
    }
    assert!(batches <= 3, "{batches} messages about {NODES} nodes");
    let all_finished = || async {
        let transitions = mesh.transitions().await;
        transitions.iter().all(|one| one.delivery() == Delivery::Finished).then_some(())
    };
    until("all to be finished", all_finished).await;
    let looks = mesh.pcs.count("GET /transitions/");
    assert!((NODES..=NODES + 3).contains(&looks), "{looks} looks at {NODES} transitions");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_whose_time_is_over_is_ended_before_the_node_is_forced_off() {
    let options = Options { max_power_off_wait_time: Some(1), ..Options::default() };
    let mut mesh = ControllerMesh::new(options).await;
    mesh.start().await;
    mesh.power_off(&["x1"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    mesh.until_called("DELETE /transitions/t-1", 1).await;
    mesh.until_called("GET /transitions/t-1", 3).await;
    assert_eq!(mesh.pcs.taken().len(), 1, "it has not ended yet");
    assert_eq!(mesh.pcs.count("DELETE"), 1);
    mesh.pcs.set_tasks(
        &["x1"],
        "failed",
        "Aborted. Last status - Confirming successful transition",
        "Transition aborted",
    );
    mesh.pcs.set_status("aborted");
    assert_eq!(mesh.until_taken(2).await[1], "Force-Off x1");
    let node = mesh.registry.get("x1").await;
    assert_eq!((node.power_error(), attempts(&node, Action::PoweringOffForcefully)), ("", 1));
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_is_forced_only_if_it_reached_the_node() {
    let busy = "BMC answered 503: busy";
    for (error, failed, next) in [
        ("Timeout waiting for transition, gracefulshutdown.", false, "Force-Off x1"),
        (busy, true, "Soft-Off x1"),
    ] {
        // The pause before the second attempt is at most this long.
        let options =
            Options { max_power_off_wait_time: Some(1), default_retry_policy: Some(2), ..Options::default() };
        let mut mesh = ControllerMesh::new(options).await;
        mesh.start().await;
        mesh.power_off(&["x1"]).await;
        assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
        let fail = || {
            mesh.pcs.set_tasks(&["x1"], "failed", "Failed to achieve transition", error);
            mesh.pcs.set_status("completed");
        };
        fail();
        let told = mesh.until_component("x1", "shows why", |one| one.power_error().contains(error)).await;
        assert_eq!(told.last_action_failed(), failed, "{error}");
        assert_eq!(mesh.until_taken(2).await[1], next, "{error}");
        if failed {
            fail();
            let spent = |one: &Component| {
                attempts(one, Action::PoweringOffGracefully) == 2 && one.last_action_failed()
            };
            mesh.until_component("x1", "the second attempt to fail", spent).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(mesh.pcs.taken().len(), 2, "it is not forced off");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_that_was_ended_before_it_reached_the_node_is_asked_again() {
    let options =
        Options { max_power_off_wait_time: Some(1), default_retry_policy: Some(2), ..Options::default() };
    let mut mesh = ControllerMesh::new(options).await;
    mesh.start().await;
    mesh.power_off(&["x1"]).await;
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1"]);
    mesh.until_called("DELETE /transitions/t-1", 1).await;
    mesh.pcs.set_tasks(&["x1"], "failed", "Aborted. Last status - Gathering data", "Transition aborted");
    mesh.pcs.set_status("aborted");
    assert_eq!(mesh.until_taken(2).await[1], "Soft-Off x1");
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOffGracefully), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_that_could_not_be_ended_is_ended_later() {
    let options = Options { max_power_off_wait_time: Some(1), ..Options::default() };
    let mut mesh = ControllerMesh::new(options).await;
    mesh.start().await;
    mesh.pcs.trouble("abort", Some(PcsTrouble::Answers(503, String::new())));
    mesh.power_off(&["x1"]).await;
    mesh.until_called("DELETE /transitions/t-1", 1).await;
    mesh.pcs.trouble("abort", None);
    mesh.until_called("DELETE /transitions/t-1", 1).await;
    mesh.pcs.set_tasks(
        &["x1"],
        "failed",
        "Aborted. Last status - Confirming successful transition",
        "Transition aborted",
    );
    mesh.pcs.set_status("aborted");
    assert_eq!(mesh.until_taken(2).await[1], "Force-Off x1");
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_following_and_sends_nothing_again() {
    let mut mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1", "x2"]).await;
    // The nodes share a transition unless one was decided on a moment earlier.
    mesh.until_members_taken(2).await;
    let is_accepted = |one: &Transition| one.delivery() == Delivery::Accepted;
    let all_accepted = || async { mesh.transitions().await.iter().all(is_accepted).then_some(()) };
    until("all to be accepted", all_accepted).await;
    mesh.stop().await;
    let taken = mesh.pcs.taken();
    mesh.pcs.set_tasks(&["x1"], "succeeded", "", "");
    mesh.pcs.set_tasks(&["x2"], "failed", "", "Missing xname");
    mesh.start().await;
    // The result may be of any time since the call, so it is no reading.
    mesh.until_component("x2", "failed", |one| one.last_action_failed()).await;
    let state = mesh.state("x1").await.unwrap();
    assert_ne!(state.reading(), PowerReading::On);
    mesh.pcs.set_power(&["x1"], "on", &now());
    mesh.until_read("x1", PowerReading::On).await;
    mesh.until_component("x2", "failed", |one| one.last_action_failed()).await;
    mesh.pcs.end_all();
    mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(mesh.pcs.taken(), taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_transition_that_is_forgotten_power_tells_what_became() {
    let mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.pcs.forget_transitions();
    let finished = mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(finished.members[0].outcome(), TaskOutcome::Unspecified);
    mesh.pcs.set_power(&["x1"], "on", &now());
    mesh.until_read("x1", PowerReading::On).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_answer_that_knows_no_transition_ends_none() {
    let mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.pcs.trouble("get", Some(PcsTrouble::Answers(404, "<html>no such page</html>".into())));
    let polls = mesh.pcs.count("GET /transitions/t-1");
    mesh.until_called("GET /transitions/t-1", polls + 3).await;
    assert_eq!(mesh.transitions().await[0].delivery(), Delivery::Accepted);
    mesh.pcs.trouble("get", None);
    mesh.pcs.set_tasks(&["x1"], "succeeded", "Transition confirmed, on", "");
    mesh.pcs.set_status("completed");
    let finished = mesh.until_delivery(Delivery::Finished).await;
    assert_eq!(finished.members[0].outcome(), TaskOutcome::Succeeded);
}

impl ControllerMesh {
    /// Rewrites the record of a transition as if it had been sent `age` earlier.
    pub(super) async fn age(&self, transition: &Transition, age: Duration) {
        let context = Context::new(self.settings.clone());
        let url = context.database_url("power-controller", "").unwrap();
        let database = chassis::store::database::connect::<crate::Migrator>(&url).await.unwrap();
        let ledger =
            chassis::store::ledger::Ledger::<crate::TransitionTable>::open(&context, database.clone());
        let ledger = ledger.await.unwrap();
        let mut aged = transition_from_wire(transition.clone());
        for at in [&mut aged.sent_at, &mut aged.accepted_at].into_iter().flatten() {
            at.0 -= i64::try_from(age.as_millis()).unwrap();
        }
        let write = ledger.write(move |draft| {
            draft.put(aged);
            Ok(())
        });
        write.await.unwrap();
        context.tasks.shutdown().cancel();
        context.tasks.finished(Duration::from_secs(10)).await.unwrap();
        database.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_nodes_that_are_acted_on_are_asked_about_and_all_in_one_question() {
    let mesh = ControllerMesh::started().await;
    let ids: Vec<_> = (0..20).map(|n| format!("x{n:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    mesh.pcs.set_power(&ids, "on", LONG_AGO);
    mesh.registry.list(&ids).await;
    mesh.assign(&ids[..10], Phase::Configuring).await;
    mesh.until_called("POST /power-status", 5).await;
    // Nodes that were added one by one are polled on the same beat.
    let together = || async { (mesh.pcs.last_body()["xname"].as_array()?.len() == 10).then_some(()) };
    until("one question about all", together).await;
    mesh.registry.settle(&ids[..10]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let calls = mesh.pcs.calls().len();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(mesh.pcs.calls().len(), calls, "nothing is enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_transition_that_nothing_is_heard_of_say_so_until_it_is_heard_of() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("get", Some(PcsTrouble::Answers(503, String::new())));
    mesh.power_on(&["x1", "x2"]).await;
    mesh.until_taken(1).await;
    let unheard = |one: &Component| one.power_error().starts_with("no results from PCS at ");
    let node = mesh.until_component("x1", "shows that nothing is heard", unheard).await;
    assert!(node.power_error().contains(" (failing since ") && !node.last_action_failed(), "{node:?}");
    mesh.pcs.set_tasks(&["x2"], "failed", "", "no power");
    mesh.pcs.trouble("get", None);
    let heard = mesh.until_component("x1", "shows nothing", |one| one.power_error().is_empty()).await;
    assert_eq!(heard.last_action_at(), node.last_action_at(), "its time ran all the while");
    mesh.until_component("x2", "failed", |one| one.power_error().contains("no power")).await;
    assert_eq!(mesh.pcs.taken().len(), 1);
}
