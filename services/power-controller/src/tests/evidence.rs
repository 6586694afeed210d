//! Readings count from their time until the task that reads power stops, or the upstream is silent for too long.

use chassis::{kinds::component::action_to_wire, observe::outage::LONGEST_SILENCE};
use proto::component as wire;

use super::*;
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_of_before_a_start_is_history() {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    mesh.assign(&["x1"], Phase::Configuring).await;
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.stop().await;

    mesh.pcs.trouble("status", Some(PcsTrouble::Hangs));
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    mesh.start().await;
    let request = WatchPowerStatesRequest { resume_revision: 0 };
    let mut watch = mesh.client().watch_power_states(request).await.unwrap().into_inner();
    let told = watch.next().await.unwrap().unwrap().power_states;
    let told: Vec<_> = told.iter().map(|state| (state.id.as_str(), state.reading())).collect();
    assert_eq!(told, [("x1", PowerReading::Unspecified)]);
    mesh.until_called("POST /power-status", 1).await;
    assert_eq!(mesh.pcs.taken(), [""; 0], "nothing is done by what was read before");

    mesh.pcs.trouble("status", None);
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn power_is_read_again_when_a_power_on_is_over() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    // Without a preparation nothing switches the node on but the test.
    mesh.registry.assign(["x1"], &SessionWish::default()).await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    assert_eq!(mesh.until_read("x1", PowerReading::Off).await.spent_power_ons, 0);
    let begun = ActionReport {
        id: "x1".to_owned(),
        generation: mesh.registry.get("x1").await.generation,
        action: action_to_wire(Action::PoweringOn).into(),
        attempt: 1,
        ..ActionReport::default()
    };
    let report = async |report: &ActionReport| {
        let request = ReportActionsRequest { reports: vec![report.clone()] };
        let answer = mesh.registry.reports().report_actions(request).await.unwrap().into_inner();
        assert!(answer.stale_ids.is_empty());
    };
    report(&begun).await;
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.state("x1").await.unwrap().spent_power_ons, 0, "it may still have its effect");
    report(&ActionReport { failed: true, ..begun }).await;
    let read = || async { mesh.state("x1").await.filter(|state| state.spent_power_ons == 1) };
    assert_eq!(until("another reading", read).await.reading(), PowerReading::Off);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_withdraws_no_reading_of_a_later_request() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    let hangs = LONGEST_SILENCE + Duration::from_secs(1);
    mesh.settings.power.pcs.answer_seconds = hangs.as_secs_f64();
    mesh.settings.power.pcs.total_seconds = hangs.as_secs_f64();
    mesh.start().await;
    mesh.until_listed().await;
    mesh.pcs.set_power(&["x1", "x2"], "off", LONG_AGO);
    mesh.pcs.trouble("status", Some(PcsTrouble::HangsAbout("x2".to_owned())));
    mesh.registry.assign(["x1", "x2"], &SessionWish::default()).await;
    let is_asked = || async { (mesh.pcs.count("POST /power-status") > 0).then_some(()) };
    until("a request about both nodes", is_asked).await;

    // The next generation of one node is asked about alone.
    mesh.registry.assign(["x1"], &SessionWish::default()).await;
    mesh.until_read("x1", PowerReading::Off).await;
    let request = WatchPowerStatesRequest { resume_revision: 0 };
    let mut watch = mesh.client().watch_power_states(request).await.unwrap().into_inner();
    let failure_is_shown = async {
        loop {
            for state in watch.next().await.unwrap().unwrap().power_states {
                match state.id.as_str() {
                    "x1" => assert_eq!(state.reading(), PowerReading::Off, "{state:?}"),
                    _ if !state.error.is_empty() => return state,
                    _ => {}
                }
            }
        }
    };
    let silent = tokio::time::timeout(Duration::from_secs(60), failure_is_shown).await.unwrap();
    assert_eq!((silent.id.as_str(), silent.reading()), ("x2", PowerReading::Unspecified));
}

#[tokio::test(flavor = "multi_thread")]
async fn off_from_before_a_report_counts_for_no_later_session() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    let token = Some("t".to_owned());
    let artifacts = Some(wire::BootArtifacts { kernel: Some("k".to_owned()), ..Default::default() });
    let runs = wire::Component {
        id: "x1".to_owned(),
        desired_state: Some(wire::DesiredState {
            bss_token: token.clone(),
            boot_artifacts: artifacts.clone(),
            ..Default::default()
        }),
        actual_state: Some(wire::ActualState {
            bss_token: token,
            boot_artifacts: artifacts,
            ..Default::default()
        }),
        ..wire::Component::default()
    };
    mesh.registry.put(vec![runs]).await;
    mesh.assign(&["x1"], Phase::PoweringOn).await;
    assert_eq!(mesh.until_read("x1", PowerReading::Off).await.newer_than_report, None);
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.pcs.taken(), [""; 0], "the node runs for all that is known");

    let later = chrono::Utc::now() + chrono::Duration::seconds(10);
    mesh.pcs.set_power(&["x1"], "off", &later.to_rfc3339());
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
}
