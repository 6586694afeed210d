//! An upstream that does not answer, or answers wrongly.

use std::{fs, path::Path};

use domain::{boot::component::Action, core::trouble::WAITING_FOR};
use test_registry::CallFault;

use super::*;
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_and_nothing_is_sent_twice() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::LosesAnswers));
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(500, String::new())));
    let waits = |one: &Component| one.waits_for_power_upstream();
    mesh.until_component("x1", "shows why it waits", waits).await;
    mesh.pcs.trouble("list", None);
    let accepted = mesh.until_delivery(Delivery::Accepted).await;
    assert_eq!(accepted.upstream_id, "t-1");
    mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(mesh.pcs.taken().len(), 1);
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_that_waits_for_the_registry_delays_no_search() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::LosesAnswers));
    mesh.registry.proxy.fault("ReportActions", CallFault::HeldAbout("x1".to_owned()));
    mesh.power_on(&["x1"]).await;
    mesh.until_delivery(Delivery::Prepared).await;
    // The announcement of x1 is on its way, and is not answered.
    tokio::time::sleep(Duration::from_millis(500)).await;
    mesh.power_on(&["x2"]).await;
    mesh.until_taken(1).await;
    let is_found = |one: &Transition| one.delivery() == Delivery::Accepted && one.members[0].id == "x2";
    until("the search", || async { mesh.transitions().await.into_iter().find(is_found) }).await;
    assert_eq!(mesh.pcs.taken(), ["On x2"]);
    mesh.registry.proxy.mend("ReportActions");
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_whatever_the_clock_of_the_upstream_says() {
    for ahead in [-3600, 3600] {
        let mesh = ControllerMesh::started().await;
        mesh.pcs.set_ahead(ahead);
        mesh.pcs.trouble("create", Some(PcsTrouble::LosesAnswers));
        mesh.power_on(&["x1"]).await;
        assert_eq!(mesh.until_delivery(Delivery::Accepted).await.upstream_id, "t-1");
        assert_eq!(mesh.pcs.taken().len(), 1, "{ahead} s ahead");
        assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_did_not_arrive_is_made_again_as_the_same_attempt() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Hangs));
    mesh.power_on(&["x1"]).await;
    mesh.until_delivery(Delivery::Unknown).await;
    mesh.pcs.trouble("create", None);
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&node, Action::PoweringOn), 1);
    assert!(mesh.reports().iter().all(|report| report.starts_with("x1 powering_on 1 ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_that_is_too_large_is_split_and_spends_nothing() {
    let mesh = ControllerMesh::started().await;
    let text = r#"{"detail": "etcdserver: request is too large"}"#;
    mesh.pcs.trouble("create", Some(PcsTrouble::Over(2, 500, text.into())));
    let ids = ["x1", "x2", "x3", "x4", "x5"];
    mesh.power_on(&ids).await;
    let mut taken = mesh.until_taken(3).await;
    taken.sort();
    assert_eq!(taken, ["On x1 x2", "On x3", "On x4 x5"]);
    for id in ids {
        assert_eq!(attempts(&mesh.registry.get(id).await, Action::PoweringOn), 1, "{id}");
    }
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_refused_while_others_are_taken_spends_its_attempt() {
    let mesh = ControllerMesh::started().await;
    let refusal = PcsTrouble::Refuses("x1".into(), 400, r#"{"detail": "no such node"}"#.into());
    mesh.pcs.trouble("create", Some(refusal));
    mesh.power_on(&["x1", "x2", "x3"]).await;
    let refused = mesh.until_component("x1", "refused", |one| one.last_action_failed()).await;
    assert!(refused.power_error().contains("no such node"), "{}", refused.power_error());
    assert_eq!(attempts(&refused, Action::PoweringOn), 1);
    for id in ["x2", "x3"] {
        assert!(!mesh.registry.get(id).await.last_action_failed(), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_everybody_spends_nothing_and_costs_few_calls() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Answers(400, r#"{"detail": "not now"}"#.into())));
    let ids: Vec<_> = (0..2_000).map(|number| format!("x{number:04}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    mesh.power_on(&ids).await;
    let waits = |one: &Component| one.waits_for_power_upstream();
    mesh.until_component(ids[0], "waits", waits).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let calls = mesh.pcs.count("POST /transitions");
    assert!(calls <= 40, "{calls} calls");
    mesh.pcs.trouble("create", None);
    let all_taken = || async {
        let taken: usize = mesh.pcs.taken().iter().map(|one| one.split(' ').count() - 1).sum();
        (taken == ids.len()).then_some(())
    };
    until("all to be taken", all_taken).await;
    let all = mesh.registry.all().await;
    assert_eq!(all.len(), ids.len());
    assert!(all.iter().all(|one| attempts(one, Action::PoweringOn) == 1));
    assert!(mesh.reports().iter().all(|report| !report.contains("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_node_among_thousands_is_found_in_few_calls() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Refuses("x0777".into(), 400, r#"{"detail": "bad"}"#.into())));
    let ids: Vec<_> = (0..2_000).map(|number| format!("x{number:04}")).collect();
    mesh.power_on(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    mesh.until_component("x0777", "refused", |one| one.last_action_failed()).await;
    let calls = mesh.pcs.count("POST /transitions");
    assert!(calls <= 30, "{calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_spends_nothing_and_shows_one_text_until_it_is_over() {
    let mut mesh = ControllerMesh::started().await;
    let ids = ["x1", "x2"];
    mesh.pcs.set_power(&ids, "on", LONG_AGO);
    mesh.assign(&ids, Phase::Configuring).await;
    mesh.until_read("x1", PowerReading::On).await;
    mesh.until_read("x2", PowerReading::On).await;

    let address = mesh.pcs.url.trim_start_matches("http://").to_owned();
    mesh.pcs = FakePcs::start().await;
    mesh.registry.report_phase(ids, Phase::PoweringOff).await;
    let waits = |one: &Component| one.waits_for_power_upstream();
    let waiting = mesh.until_component("x1", "shows that it waits", waits).await;
    let begin = format!("{WAITING_FOR}PCS at {address} (failing since ");
    assert!(waiting.power_error().starts_with(&begin), "{}", waiting.power_error());
    let silent = mesh.until_read("x1", PowerReading::Unspecified).await;
    assert!(silent.error.starts_with(&begin), "{}", silent.error);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(mesh.state("x1").await.unwrap(), silent, "the text stays");
    assert_eq!(mesh.registry.get("x1").await, waiting, "that of the component too");

    mesh.pcs = FakePcs::start_at(&address).await;
    mesh.pcs.set_power(&ids, "on", LONG_AGO);
    assert_eq!(mesh.until_taken(1).await, ["Soft-Off x1 x2"]);
    mesh.until_read("x1", PowerReading::On).await;
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&node, Action::PoweringOffGracefully), 1);
}

/// Returns a mesh whose power controller was stopped while x1 waited to be switched on.
async fn stopped_while_it_waits() -> ControllerMesh {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Answers(429, String::new())));
    mesh.power_on(&["x1"]).await;
    mesh.until_component("x1", "waits", |one| one.waits_for_power_upstream()).await;
    mesh.until_delivery(Delivery::Prepared).await;
    mesh.stop().await;
    mesh
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_goes_on_after_a_restart_once_the_options_are_known() {
    let mut mesh = stopped_while_it_waits().await;
    let asked = mesh.registry.proxy.count("WatchOptions");
    mesh.registry.proxy.fault("WatchOptions", CallFault::Held);
    mesh.pcs.trouble("create", None);
    mesh.start().await;
    mesh.registry.proxy.called("WatchOptions", asked + 1).await;
    // The absence of calls shows only over time: several periods of the polls.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(mesh.pcs.taken().is_empty(), "how long to wait and how often to try is not known");
    mesh.registry.proxy.mend("WatchOptions");
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_after_the_backup_of_a_database_is_found_when_it_is_restored() {
    let mut mesh = stopped_while_it_waits().await;
    let backup = tempfile::tempdir().unwrap();
    until_closed(&mesh.settings.data_dir).await;
    copy_files(&mesh.settings.data_dir, backup.path());
    mesh.pcs.trouble("create", None);
    mesh.start().await;
    assert_eq!(mesh.until_delivery(Delivery::Accepted).await.upstream_id, "t-1");
    mesh.stop().await;
    until_closed(&mesh.settings.data_dir).await;
    copy_files(backup.path(), &mesh.settings.data_dir);
    mesh.start().await;
    // Another client may have requested the same since the backup, so it is waited for and not followed.
    mesh.until_called("GET /transitions/t-1", 3).await;
    assert_eq!(mesh.until_delivery(Delivery::Unknown).await.upstream_id, "");
    mesh.pcs.set_power(&["x1"], "on", &super::crossing::later());
    mesh.pcs.complete_all();
    mesh.until_delivery(Delivery::Finished).await;
    assert_eq!((mesh.pcs.taken(), mesh.pcs.count("DELETE")), (vec!["On x1".to_owned()], 0));
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
}

/// Waits until the last connection to the databases in `directory` is closed, which removes their logs.
async fn until_closed(directory: &Path) {
    let names = || fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let is_open = || names().any(|name| name.to_string_lossy().ends_with("-wal"));
    until("the databases are closed", || async { (!is_open()).then_some(()) }).await;
}

/// Replaces the files of one directory by those of another.
fn copy_files(from: &Path, to: &Path) {
    let files = |directory: &Path| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files(to).for_each(|file| fs::remove_file(file).unwrap());
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_locked_while_its_action_waits_is_not_acted_on_until_it_is_unlocked() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Answers(429, String::new())));
    mesh.power_on(&["x1", "x2"]).await;
    let waits = |one: &Component| one.waits_for_power_upstream();
    let counted = mesh.until_component("x1", "waits", waits).await;
    mesh.registry.lock("x1", true);
    let without_it = || async { asks_for(&mesh.pcs.last_body(), "x2").then_some(()) };
    until("the other node to be asked for alone", without_it).await;
    mesh.pcs.trouble("create", None);
    assert_eq!(mesh.until_taken(1).await, ["On x2"]);
    mesh.registry.lock("x1", false);
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
    let begun = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&begun, Action::PoweringOn), 1);
    assert!(
        timestamp(begun.last_action_at()) > timestamp(counted.last_action_at()),
        "its time runs from when it was taken"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn node_gone_from_the_inventory_is_left_out_of_what_waits() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Answers(429, String::new())));
    mesh.power_on(&["x1", "x2"]).await;
    mesh.until_component("x1", "waits", |one| one.waits_for_power_upstream()).await;
    mesh.registry.unlist("x1");
    let without_it = || async { asks_for(&mesh.pcs.last_body(), "x2").then_some(()) };
    until("the other node to be asked for alone", without_it).await;
    mesh.pcs.trouble("create", None);
    assert_eq!(mesh.until_taken(1).await, ["On x2"]);
    mesh.registry.list(["x1"]).await;
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_id_and_a_node_that_is_left_out_hide_nobody() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1", "x2"], "off", LONG_AGO);
    mesh.assign(&["x1", "bogus", "x2", "x3"], Phase::PoweringOn).await;
    let bogus = mesh.until_read("bogus", PowerReading::Undefined).await;
    assert!(bogus.error.contains("invalid xnames detected: bogus"), "{}", bogus.error);
    mesh.until_read("x3", PowerReading::Missing).await;
    mesh.until_read("x2", PowerReading::Off).await;
    assert_eq!(mesh.until_taken(1).await, ["On x1 x2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_transition_cannot_be_looked_at_the_power_of_its_nodes_tells() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("get", Some(PcsTrouble::Answers(500, String::new())));
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.set_power(&["x1"], "on", &now());
    mesh.until_read("x1", PowerReading::On).await;
    mesh.until_delivery(Delivery::Accepted).await;
    mesh.pcs.trouble("get", None);
    mesh.pcs.set_status("completed");
    mesh.until_delivery(Delivery::Finished).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_settings_are_named_at_the_start() {
    let mesh = ControllerMesh::new(Options::default()).await;
    for (key, change) in [
        ("power.pcs.url", (|settings| settings.power.pcs.url = String::new()) as fn(&mut Settings)),
        ("power.pcs.url", |settings| settings.power.pcs.plain_http = false),
        ("power.follow_seconds", |settings| settings.power.follow_seconds = 0.0),
        ("power.poll_seconds", |settings| settings.power.poll_seconds = f64::NAN),
        ("machine_file", |settings| settings.power.driver = PowerDriver::Redfish),
    ] {
        let mut settings = mesh.settings.clone();
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let error = crate::start(Context::new(settings), listener.into()).await.unwrap_err();
        assert!(format!("{error:#}").starts_with(&format!("{key}: ")), "{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_let_in_waits_until_people_have_mended_that() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Answers(401, String::new())));
    mesh.power_on(&["x1"]).await;
    let waits = |one: &Component| one.waits_for_power_upstream();
    let waiting = mesh.until_component("x1", "waits", waits).await;
    assert!(waiting.power_error().contains("401"), "{}", waiting.power_error());
    mesh.until_called("POST /transitions", 2).await;
    mesh.pcs.trouble("create", None);
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
    let begun = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&begun, Action::PoweringOn), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_transition_goes_on_after_an_outage_is_read_again() {
    let mesh = ControllerMesh::started().await;
    mesh.power_on(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.until_delivery(Delivery::Accepted).await;
    for kind in ["get", "status"] {
        mesh.pcs.trouble(kind, Some(PcsTrouble::Answers(503, String::new())));
    }
    mesh.until_read("x1", PowerReading::Unspecified).await;
    // The poll of the transition succeeds first.
    mesh.pcs.trouble("get", None);
    mesh.until_called("GET /transitions/t-1", 2).await;
    mesh.pcs.trouble("status", None);
    let read = mesh.until_read("x1", PowerReading::Off).await;
    assert_eq!((read.generation, read.error.as_str()), (2, ""));
    assert_eq!(mesh.until_delivery(Delivery::Accepted).await.upstream_id, "t-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_needs_no_action_after_a_restart_does_not_go_on_waiting() {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.trouble("create", Some(PcsTrouble::Hangs));
    mesh.power_on(&["x1"]).await;
    until("the call", || async { (mesh.pcs.count("POST /transitions") > 0).then_some(()) }).await;
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(500, String::new())));
    let waits = |one: &Component| one.waits_for_power_upstream();
    mesh.until_component("x1", "waits", waits).await;
    mesh.stop().await;
    mesh.pcs.set_power(&["x1"], "on", &now());
    mesh.pcs.trouble("list", None);
    mesh.start().await;
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&node, Action::PoweringOn), 1);
    assert!(mesh.pcs.taken().is_empty());
}

/// Returns whether the body requests an action on that node and no other.
fn asks_for(body: &serde_json::Value, id: &str) -> bool {
    body["location"].as_array().is_some_and(|nodes| nodes.len() == 1 && nodes[0]["xname"] == id)
}
