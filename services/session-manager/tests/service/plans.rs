//! Plans of sessions, and sessions that are bound to one.

use std::fmt::Write as _;

use chassis::Fault;
use expect_test::expect;
use futures_util::TryStreamExt;
use proto::{
    component::{ListComponentsRequest, component_service_client::ComponentServiceClient},
    power::PowerReading,
    session::{plan_service_client::PlanServiceClient, *},
    template::{BootSet, ListSessionTemplatesRequest, StringList},
};

use crate::world::{World, template, wish};

/// Plan as a client collects it.
#[derive(Debug, Default)]
struct WholePlan {
    summary: PlanSummary,
    changes: Vec<StateChange>,
    nodes: Vec<PlannedNode>,
    left_out: Vec<LeftOutMember>,
}

async fn plan(world: &World, request: CreatePlanRequest) -> Result<WholePlan, Fault> {
    let mut client = PlanServiceClient::new(world.channel.clone());
    let messages: Vec<_> = client.create_plan(request).await?.into_inner().try_collect().await?;
    let mut whole = WholePlan::default();
    for message in messages {
        whole.summary = message.summary.unwrap_or(whole.summary);
        whole.changes.extend(message.changes);
        whole.nodes.extend(message.nodes);
        whole.left_out.extend(message.left_out);
    }
    Ok(whole)
}

fn asked_for(operation: Operation, template_name: &str) -> CreatePlanRequest {
    CreatePlanRequest {
        operation: operation.into(),
        template_name: template_name.to_owned(),
        ..CreatePlanRequest::default()
    }
}

fn shown(plan: &WholePlan) -> String {
    let mut text = String::new();
    for node in &plan.nodes {
        let action = node.action().as_str_name();
        writeln!(text, "{} {action} {} {:?}", node.id, node.power().as_str_name(), node.change).unwrap();
    }
    for change in &plan.changes {
        let members = change.members.iter().map(|one| format!("{}>{}", one.before, one.after));
        writeln!(text, "{} of {}: {}", change.nodes, change.boot_set, members.collect::<Vec<_>>().join(" "))
            .unwrap();
    }
    for left in &plan.left_out {
        writeln!(text, "without {} {}", left.id, left.reason().as_str_name()).unwrap();
    }
    for finding in &plan.summary.findings {
        let (severity, reason) = (finding.severity().as_str_name(), finding.reason().as_str_name());
        writeln!(text, "{severity} {reason} {:?} {}", finding.names, finding.text).unwrap();
    }
    text
}

/// Returns a session that is bound to the plan of the same template.
async fn bound(world: &World, name: &str, template_name: &str) -> CreateSessionRequest {
    let plan = plan(world, asked_for(Operation::Boot, template_name)).await.unwrap();
    assert!(!plan.summary.hash.is_empty(), "{plan:?}");
    CreateSessionRequest { plan_hash: plan.summary.hash, ..wish(Operation::Boot, name, template_name) }
}

/// Returns every record of the registry and of the session manager, with revisions.
async fn everything(world: &World) -> String {
    let mut components = ComponentServiceClient::new(chassis::plain_channel(&world.registry.url()).unwrap());
    let components = components.list_components(ListComponentsRequest::default()).await.unwrap();
    let components: Vec<_> = components.into_inner().try_collect().await.unwrap();
    let sessions = world.sessions.clone().list_sessions(ListSessionsRequest::default()).await.unwrap();
    let sessions: Vec<_> = sessions.into_inner().try_collect().await.unwrap();
    let request = ListSessionTemplatesRequest::default();
    let templates = world.templates.clone().list_session_templates(request).await.unwrap();
    let templates: Vec<_> = templates.into_inner().try_collect().await.unwrap();
    format!("{components:?}\n{sessions:?}\n{templates:?}")
}

#[tokio::test]
async fn fresh_fleet_is_planned_and_nothing_is_written() {
    let world = World::start().await;
    world.power.set(&["n0", "n1"], PowerReading::Off);
    world.power.set(&["n2"], PowerReading::On);
    let mut mixed = template("", "t", &["n0", "n1", "n2", "n3", "gone", "stranger"]);
    let boot_set = mixed.boot_sets.get_mut("compute").unwrap();
    boot_set.node_groups = Some(StringList { values: vec!["unheard".to_owned()] });
    world.put_template(mixed).await.unwrap();
    let before = everything(&world).await;
    let boot = plan(&world, asked_for(Operation::Boot, "t")).await.unwrap();
    let shutdown = plan(&world, asked_for(Operation::Shutdown, "t")).await.unwrap();
    let staged = CreatePlanRequest { stage: true, limit: "n0".into(), ..asked_for(Operation::Boot, "t") };
    let staged = plan(&world, staged).await.unwrap();
    assert_eq!(everything(&world).await, before);
    assert_eq!(world.power.reads(), 2, "one read for each plan that depends on the power");
    assert_eq!(boot.summary.taken, 4);
    expect![[r#"
        n0 PLANNED_ACTION_POWER_ON PLANNED_POWER_OFF Some(0)
        n1 PLANNED_ACTION_POWER_ON PLANNED_POWER_OFF Some(0)
        n2 PLANNED_ACTION_RESTART PLANNED_POWER_ON Some(0)
        n3 PLANNED_ACTION_UNKNOWN PLANNED_POWER_UNSPECIFIED Some(0)
        4 of compute: >s3://images/compute/kernel >bos_update_frequency=4h >s3://images/compute/initrd
        without gone LEFT_OUT_REASON_UNKNOWN_TO_INVENTORY
        without unheard LEFT_OUT_REASON_UNKNOWN_GROUP
        without stranger LEFT_OUT_REASON_NOT_A_COMPONENT
        FINDING_SEVERITY_WARNING FINDING_REASON_NO_CONSOLE [] the kernel parameters have no console=, so nodes show nothing while they boot
        FINDING_SEVERITY_WARNING FINDING_REASON_NODES_UNKNOWN ["gone"] the inventory does not list nodes of the template
        FINDING_SEVERITY_WARNING FINDING_REASON_GROUPS_UNKNOWN ["unheard"] groups or roles of the template do not exist or are empty
        FINDING_SEVERITY_WARNING FINDING_REASON_NOT_COMPONENTS ["stranger"] nodes of the inventory are no components yet, and are left out
        FINDING_SEVERITY_WARNING FINDING_REASON_POWER_UNKNOWN ["n3"] the power of nodes is unknown, and so is what would be done to them
        shutdown:
        n0 PLANNED_ACTION_NONE PLANNED_POWER_OFF None
        n1 PLANNED_ACTION_NONE PLANNED_POWER_OFF None
        n2 PLANNED_ACTION_POWER_OFF PLANNED_POWER_ON None
        n3 PLANNED_ACTION_UNKNOWN PLANNED_POWER_UNSPECIFIED None
        without gone LEFT_OUT_REASON_UNKNOWN_TO_INVENTORY
        without unheard LEFT_OUT_REASON_UNKNOWN_GROUP
        without stranger LEFT_OUT_REASON_NOT_A_COMPONENT
        FINDING_SEVERITY_WARNING FINDING_REASON_NODES_UNKNOWN ["gone"] the inventory does not list nodes of the template
        FINDING_SEVERITY_WARNING FINDING_REASON_GROUPS_UNKNOWN ["unheard"] groups or roles of the template do not exist or are empty
        FINDING_SEVERITY_WARNING FINDING_REASON_NOT_COMPONENTS ["stranger"] nodes of the inventory are no components yet, and are left out
        FINDING_SEVERITY_WARNING FINDING_REASON_POWER_UNKNOWN ["n3"] the power of nodes is unknown, and so is what would be done to them
        staged:
        n0 PLANNED_ACTION_STAGE PLANNED_POWER_UNSPECIFIED Some(0)
        1 of compute: >s3://images/compute/kernel >bos_update_frequency=4h >s3://images/compute/initrd
        without gone LEFT_OUT_REASON_NOT_IN_LIMIT
        without n1 LEFT_OUT_REASON_NOT_IN_LIMIT
        without n2 LEFT_OUT_REASON_NOT_IN_LIMIT
        without n3 LEFT_OUT_REASON_NOT_IN_LIMIT
        without stranger LEFT_OUT_REASON_NOT_IN_LIMIT
        without unheard LEFT_OUT_REASON_UNKNOWN_GROUP
        FINDING_SEVERITY_WARNING FINDING_REASON_NO_CONSOLE [] the kernel parameters have no console=, so nodes show nothing while they boot
        FINDING_SEVERITY_WARNING FINDING_REASON_GROUPS_UNKNOWN ["unheard"] groups or roles of the template do not exist or are empty
    "#]].assert_eq(&format!(
        "{}shutdown:\n{}staged:\n{}",
        shown(&boot),
        shown(&shutdown),
        shown(&staged)
    ));
}

#[tokio::test]
async fn outage_of_the_power_upstream_is_told() {
    let world = World::start().await;
    world.template("t", &["n0"]).await;
    world.power.fail("PCS at pcs.example (failing since noon: 503)");
    let plan = plan(&world, asked_for(Operation::Boot, "t")).await.unwrap();
    expect![[r#"
        n0 PLANNED_ACTION_UNKNOWN PLANNED_POWER_UNSPECIFIED Some(0)
        1 of compute: >s3://images/compute/kernel >bos_update_frequency=4h >s3://images/compute/initrd
        FINDING_SEVERITY_WARNING FINDING_REASON_NO_CONSOLE [] the kernel parameters have no console=, so nodes show nothing while they boot
        FINDING_SEVERITY_WARNING FINDING_REASON_UPSTREAM_DOWN [] waiting for PCS at pcs.example (failing since noon: 503)
        FINDING_SEVERITY_WARNING FINDING_REASON_POWER_UNKNOWN ["n0"] the power of nodes is unknown, and so is what would be done to them
    "#]].assert_eq(&shown(&plan));
}

#[tokio::test]
async fn plan_is_refused_like_its_session() {
    let world = World::start().await;
    world.template("t", &["n0"]).await;
    let missing = plan(&world, asked_for(Operation::Boot, "nobody")).await.unwrap_err();
    assert_eq!(missing, Fault::not_found("session_template", "nobody"));
    let wrong = CreatePlanRequest { limit: "n0,".into(), ..asked_for(Operation::Boot, "t") };
    assert!(matches!(plan(&world, wrong).await, Err(Fault::Invalid(_))));
    world.fleet.inventory_answers(false);
    assert!(matches!(plan(&world, asked_for(Operation::Boot, "t")).await, Err(Fault::Unavailable { .. })));
    world.fleet.inventory_answers(true);
    // A template that sessions cannot use is planned with its defect, and without a hash.
    let mut bad = template("", "bad", &["n0"]);
    bad.boot_sets.get_mut("compute").unwrap().path = "s3://images/compute/other.json".to_owned();
    world.put_template(bad).await.unwrap();
    let bad = plan(&world, asked_for(Operation::Boot, "bad")).await.unwrap();
    assert_eq!(bad.summary.hash, "");
    assert_eq!(bad.summary.findings[0].severity(), FindingSeverity::Error);
    let nobody = CreatePlanRequest { limit: "n9".into(), ..asked_for(Operation::Boot, "t") };
    let nobody = plan(&world, nobody).await.unwrap();
    assert_eq!(nobody.summary.findings[0].reason(), FindingReason::NothingTaken);
}

#[tokio::test]
async fn many_plans_at_a_time_are_refused() {
    let world = World::start().await;
    world.template("t", &["n0"]).await;
    world.fleet.hold_inventory(true);
    let asked = || plan(&world, asked_for(Operation::Boot, "t"));
    let many = futures_util::future::join_all((0..6).map(|_| asked()));
    let mut many = std::pin::pin!(many);
    // The inventory is released once a plan was refused.
    let refused = async {
        loop {
            if let Err(fault @ Fault::Busy { .. }) = asked().await {
                return fault;
            }
        }
    };
    let released = async {
        let fault = refused.await;
        world.fleet.hold_inventory(false);
        fault
    };
    let (answers, fault) = tokio::time::timeout(
        std::time::Duration::from_secs(60),
        futures_util::future::join(&mut many, released),
    )
    .await
    .expect("no plan is refused");
    assert!(matches!(fault, Fault::Busy { .. }), "{fault:?}");
    let made = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!((1..=4).contains(&made), "{answers:?}");
}

#[tokio::test]
async fn session_by_a_plan_takes_its_nodes() {
    let world = World::start().await;
    world.template("t", &["n0", "n1"]).await;
    let session = world.create(bound(&world, "s", "t").await).await.unwrap();
    assert!(!session.plan_hash.is_empty());
    assert_eq!(world.running("s").await.components, ["n0", "n1"]);
}

#[tokio::test]
async fn a_plan_says_that_its_size_needs_a_confirmation_and_is_one() {
    let world = World::start_with(|settings| settings.sessions.confirm_above_percent = 10).await;
    world.template("t", &["n0", "n1"]).await;
    let plan = plan(&world, asked_for(Operation::Boot, "t")).await.unwrap();
    let findings = plan.summary.findings.iter();
    let told = findings.filter(|one| one.reason() == FindingReason::Unconfirmed).map(|one| one.text.as_str());
    let expected = "it takes 2 nodes, and more than 10 percent of the machine need a confirmation: confirm 2, or bind the \
                    session to this plan";
    assert_eq!(told.collect::<Vec<_>>(), [expected]);
    assert!(matches!(world.boot("s", "t").await, Err(Fault::Locked { .. })));
    world.create(bound(&world, "s", "t").await).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n0", "n1"]);
}

#[tokio::test]
async fn session_is_refused_if_its_plan_does_not_hold() {
    let world = World::start().await;
    let grouped = |group: &str| {
        let mut one = template("", "t", &["n2"]);
        let boot_set: &mut BootSet = one.boot_sets.get_mut("compute").unwrap();
        boot_set.node_groups = Some(StringList { values: vec![group.to_owned()] });
        one
    };
    world.put_template(grouped("blue")).await.unwrap();
    let bound = bound(&world, "s", "t").await;
    let refusal = async || match world.create(bound.clone()).await {
        Err(Fault::Locked { kind, name, reason }) => {
            assert_eq!((kind.as_str(), &name), ("plan", &bound.plan_hash));
            reason
        }
        other => panic!("{other:?}"),
    };
    let mut rows = String::new();
    world.fleet.paint_blue(&["n0", "n1", "n3"]);
    rows += &format!("inventory: {}\n", refusal().await);
    world.fleet.paint_blue(&["n0", "n1"]);
    let mut other = grouped("blue");
    other.boot_sets.get_mut("compute").unwrap().kernel_parameters = Some("quiet".to_owned());
    world.put_template(other).await.unwrap();
    rows += &format!("template: {}\n", refusal().await);
    expect![[r#"
        inventory: it does not hold any more: it took 3 nodes, and 4 would be taken now
        template: it does not hold any more: the template has changed
    "#]]
    .assert_eq(&rows);
    world.put_template(grouped("blue")).await.unwrap();
    let reboot = CreateSessionRequest { operation: Operation::Reboot.into(), ..bound.clone() };
    assert!(matches!(world.create(reboot).await, Err(Fault::Locked { .. })));
    let malformed = CreateSessionRequest { plan_hash: "p9".into(), ..bound.clone() };
    assert!(matches!(world.create(malformed).await, Err(Fault::Invalid(one)) if one.field == "plan_hash"));
    world.create(bound).await.unwrap();
}

#[tokio::test]
async fn session_whose_plan_ends_before_its_setup_touches_no_node() {
    let world = World::start().await;
    // The setup waits until a later answer confirms that the inventory lacks a node; meanwhile the template changes.
    world.template("t", &["n0", "gone"]).await;
    let bound = bound(&world, "s", "t").await;
    let before = everything(&world).await;
    world.create(bound).await.unwrap();
    world.waiting("s").await;
    world.template("t", &["n0", "n1", "gone"]).await;
    let session = world.complete("s").await;
    expect!["the plan of the session does not hold any more: the template has changed; it took 1 node, and 2 would be taken now"].assert_eq(session.error());
    assert_eq!(session.result(), SessionResult::Failed);
    assert!(session.components.is_empty());
    let after = everything(&world).await;
    assert_eq!(before.lines().next(), after.lines().next(), "components are as they were");
}
