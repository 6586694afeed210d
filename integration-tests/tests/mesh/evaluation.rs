//! Decisions about a node with their reasons, and decisions for other evidence.

use expect_test::expect;
use integration_tests::{PATIENCE, eventually, mesh::Mesh};
use proto::{
    component::{ActualState, Phase},
    configuration::{ConfigurationReading, ConfigurationState},
    evaluation::{
        EvaluateRequest, ExplainRequest, ExplainResponse, WatchDecisionsRequest,
        evaluation_service_client::EvaluationServiceClient,
    },
    option::Options,
    power::{PowerReading, PowerState},
    simulation::{ListFaultsRequest, fleet_service_client::FleetServiceClient},
};
use tokio::time::timeout;

type Client = EvaluationServiceClient<chassis::Channel>;

#[tokio::test(flavor = "multi_thread")]
async fn booting_node_is_explained_and_hypotheses_are_evaluated() {
    let mesh = Mesh::start(async |settings| settings.simulator.faults = "never-reports=1".into()).await;
    let silent = silent_node(&mesh.settings.simulator.url).await;
    let mut client = Client::new(chassis::plain_channel(&mesh.settings.status_evaluator.url).unwrap());
    let idle = async || client.clone().explain(ExplainRequest { component_id: silent.clone() }).await.ok();
    let idle = eventually("an explanation", idle).await.into_inner();
    assert_eq!(idle.decision, None, "nothing is decided about a node that is not enabled");
    let about = WatchDecisionsRequest { component_id: silent.clone() };
    let mut decisions = client.watch_decisions(about).await.unwrap().into_inner();

    mesh.bos.template("image-1").await;
    mesh.bos.session("image-1", "boot").await;
    let batch = timeout(PATIENCE, decisions.message()).await.expect("a decision in time");
    assert_eq!(batch.unwrap().unwrap().decisions[0].id, silent);
    let awaited = async || {
        let explained = explain(&mut client.clone(), &silent).await;
        let reason = &explained.decision.as_ref()?.reason;
        (reason == "boot_awaited"
            && explained.component.as_ref()?.status.as_ref()?.phase() == Phase::PoweringOn)
            .then_some(explained)
    };
    let explained = eventually("a node whose boot is awaited", awaited).await;
    let told = what_if(&mut client, &explained).await;
    let after = explain(&mut client, &silent).await;
    assert_eq!(after.component, explained.component, "questions change nothing");
    mesh.stop().await;
    expect![[r#"
        as it is: boot_awaited PHASE_POWERING_ON
        a second later: reboot_needed PHASE_POWERING_OFF
        with less patience: reboot_needed PHASE_POWERING_OFF
        off, as read before the action: power_on_awaited PHASE_POWERING_ON
        off again: power_on_without_effect PHASE_POWERING_ON
        left out by the power upstream: power_missing PHASE_POWERING_ON
        seen in another generation: awaiting_power PHASE_POWERING_ON
        never seen: awaiting_power PHASE_POWERING_ON
        booted: configuration_pending PHASE_CONFIGURING
        booted and configured: configured PHASE_NONE, settled
    "#]]
    .assert_eq(&told);
}

/// The node that never reports its boot.
async fn silent_node(simulator: &str) -> String {
    let mut fleet = FleetServiceClient::new(chassis::plain_channel(simulator).unwrap());
    let faults = fleet.list_faults(ListFaultsRequest {}).await.unwrap().into_inner().faults;
    faults[0].id.clone()
}

async fn explain(client: &mut Client, id: &str) -> ExplainResponse {
    client.explain(ExplainRequest { component_id: id.to_owned() }).await.unwrap().into_inner()
}

/// Decisions for variations of a node's observations, a second before its boot is late.
async fn what_if(client: &mut Client, explained: &ExplainResponse) -> String {
    let ExplainResponse { component, power_state, configuration_state, decision } = explained.clone();
    let mut now = decision.unwrap().until.expect("the end of a wait");
    now.seconds -= 1;
    let known =
        EvaluateRequest { component, power_state, configuration_state, options: None, now: Some(now) };
    let mut told = String::new();
    for (name, change) in VARIATIONS {
        let mut request = known.clone();
        change(&mut request);
        let decision = client.evaluate(request).await.unwrap().into_inner().decision.unwrap();
        let (phase, settled) =
            (decision.phase().as_str_name(), if decision.settled { ", settled" } else { "" });
        told += &format!("{name}: {} {phase}{settled}\n", decision.reason);
    }
    told
}

type Variation = (&'static str, fn(&mut EvaluateRequest));

const VARIATIONS: [Variation; 10] = [
    ("as it is", |_| {}),
    ("a second later", |request| request.now.as_mut().unwrap().seconds += 1),
    ("with less patience", |request| {
        request.options = Some(Options { max_boot_wait_time: Some(600), ..Options::default() });
    }),
    ("off, as read before the action", |request| {
        power(request).set_reading(PowerReading::Off);
        power(request).begun_actions = 0;
    }),
    ("off again", |request| {
        power(request).set_reading(PowerReading::Off);
        power(request).begun_actions = 1;
    }),
    ("left out by the power upstream", |request| power(request).set_reading(PowerReading::Missing)),
    ("seen in another generation", |request| power(request).generation -= 1),
    ("never seen", |request| request.power_state = None),
    ("booted", |request| booted(request, "pending")),
    ("booted and configured", |request| booted(request, "configured")),
];

fn power(request: &mut EvaluateRequest) -> &mut PowerState {
    request.power_state.as_mut().unwrap()
}

fn booted(request: &mut EvaluateRequest, configuration_status: &str) {
    let component = request.component.as_mut().unwrap();
    let desired = component.desired_state.clone().unwrap();
    let boot_artifacts = desired.boot_artifacts;
    component.actual_state = Some(ActualState { boot_artifacts, ..ActualState::default() });
    component.boot.as_mut().expect("a boot that has begun").reported = true;
    request.configuration_state = Some(ConfigurationState {
        reading: ConfigurationReading::Known.into(),
        desired_configuration: desired.configuration,
        status: configuration_status.to_owned(),
        generation: component.generation,
        ..ConfigurationState::default()
    });
}
