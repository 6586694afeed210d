//! Plans of sessions.

use std::collections::BTreeMap;

use chassis::mesh::time;
use domain::{
    boot::{
        power::PowerObservation,
        session::{
            NewSession,
            membership::LeftOut,
            plan::{
                FindingReason, MemberChange, PlanFinding, PlannedAction, PlannedNode, SessionPlan, Severity,
                StateChange, StateMember,
            },
        },
    },
    core::{id::Tenant, invalid::Invalid, time::Timestamp},
};
use proto::session as wire;

use super::session::{left_out_to_wire, operation_from_wire, reason_to_wire};
use crate::durations::ExpectedDuration;

/// Nodes in one message.
const NODES: usize = 2_000;

/// Differences in one message. Each may have two kernel command lines.
const CHANGES: usize = 100;

/// Reads the request for a plan.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn wish_from_wire(request: wire::CreatePlanRequest) -> Result<NewSession, Invalid> {
    Ok(NewSession {
        operation: operation_from_wire(request.operation())?,
        tenant: Tenant::parse(&request.tenant)?,
        name: String::new(),
        template_name: request.template_name,
        limit: request.limit,
        stage: request.stage,
        include_disabled: request.include_disabled,
        retry_of: None,
        plan: None,
        confirmed_nodes: None,
        rollout: None,
    })
}

/// Converts a plan to the messages of an answer.
pub(crate) fn to_wire(
    plan: SessionPlan,
    expected: Option<ExpectedDuration>,
    planned_at: Timestamp,
) -> impl Iterator<Item = wire::CreatePlanResponse> + Send {
    let summary = wire::CreatePlanResponse {
        summary: Some(summary(&plan, expected, planned_at)),
        ..wire::CreatePlanResponse::default()
    };
    let SessionPlan { nodes, changes, left_out, .. } = plan;
    let changes = pages(changes.into_iter().map(change), CHANGES, |changes| wire::CreatePlanResponse {
        changes,
        ..wire::CreatePlanResponse::default()
    });
    let nodes = pages(nodes.into_iter().map(node), NODES, |nodes| wire::CreatePlanResponse {
        nodes,
        ..wire::CreatePlanResponse::default()
    });
    let left_out = left_out.into_iter().flat_map(left_out_to_wire);
    let left_out = left_out.map(|page| wire::CreatePlanResponse {
        left_out: page.members,
        ..wire::CreatePlanResponse::default()
    });
    std::iter::once(summary).chain(changes).chain(nodes).chain(left_out)
}

/// Groups items into messages.
fn pages<T>(
    mut items: impl Iterator<Item = T>,
    most: usize,
    page: impl Fn(Vec<T>) -> wire::CreatePlanResponse,
) -> impl Iterator<Item = wire::CreatePlanResponse> {
    std::iter::from_fn(move || {
        let items: Vec<_> = items.by_ref().take(most).collect();
        (!items.is_empty()).then(|| page(items))
    })
}

fn summary(
    plan: &SessionPlan,
    expected: Option<ExpectedDuration>,
    planned_at: Timestamp,
) -> wire::PlanSummary {
    let actions = plan.actions.iter();
    let duration = |time| prost_types::Duration::try_from(time).ok();
    wire::PlanSummary {
        hash: plan.hash.map(|hash| hash.to_string()).unwrap_or_default(),
        planned_at: Some(time::to_wire(planned_at)),
        taken: count(plan.nodes.len()),
        actions: actions
            .map(|(one, many)| wire::ActionCount { action: action(*one).into(), count: count(*many) })
            .collect(),
        left_out: left_out_counts(&plan.left_out),
        findings: plan.findings.iter().map(finding).collect(),
        likely_duration: expected.as_ref().and_then(|expected| duration(expected.likely)),
        late_duration: expected.as_ref().and_then(|expected| duration(expected.late)),
        learned_from: expected.map_or(0, |expected| expected.learned_from),
    }
}

fn left_out_counts(left_out: &[LeftOut]) -> Vec<wire::LeftOutCount> {
    let mut counts = BTreeMap::new();
    for one in left_out {
        *counts.entry(one.reason).or_default() += one.names.len();
    }
    let counts = counts.into_iter();
    counts
        .map(|(reason, many)| wire::LeftOutCount {
            reason: reason_to_wire(reason).into(),
            count: count(many),
        })
        .collect()
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}

fn node(node: PlannedNode) -> wire::PlannedNode {
    wire::PlannedNode {
        id: node.id.as_str().to_owned(),
        boot_set: node.boot_set.as_ref().to_owned(),
        power: power(&node.power).into(),
        action: action(node.action).into(),
        change: node.change.map(count),
        held_by: node.held_by.as_deref().unwrap_or_default().to_owned(),
    }
}

fn power(power: &PowerObservation) -> wire::PlannedPower {
    match power {
        PowerObservation::Unknown => wire::PlannedPower::Unspecified,
        PowerObservation::On | PowerObservation::OnAgain => wire::PlannedPower::On,
        PowerObservation::Off | PowerObservation::OffInDoubt => wire::PlannedPower::Off,
        PowerObservation::Undefined { .. } => wire::PlannedPower::Undefined,
        PowerObservation::Missing => wire::PlannedPower::Missing,
    }
}

fn change(change: StateChange) -> wire::StateChange {
    wire::StateChange {
        boot_set: change.boot_set.as_ref().to_owned(),
        members: change.members.into_iter().map(member).collect(),
        nodes: count(change.nodes),
    }
}

fn member(change: MemberChange) -> wire::MemberChange {
    let member = match change.member {
        StateMember::Kernel => wire::StateMember::Kernel,
        StateMember::KernelParameters => wire::StateMember::KernelParameters,
        StateMember::Initrd => wire::StateMember::Initrd,
        StateMember::Configuration => wire::StateMember::Configuration,
    };
    wire::MemberChange {
        member: member.into(),
        before: change.before.as_ref().to_owned(),
        after: change.after.as_ref().to_owned(),
        removed: change.removed,
        added: change.added,
    }
}

fn action(action: PlannedAction) -> wire::PlannedAction {
    match action {
        PlannedAction::Nothing => wire::PlannedAction::None,
        PlannedAction::Configure => wire::PlannedAction::Configure,
        PlannedAction::PowerOn => wire::PlannedAction::PowerOn,
        PlannedAction::PowerOff => wire::PlannedAction::PowerOff,
        PlannedAction::Restart => wire::PlannedAction::Restart,
        PlannedAction::Stage => wire::PlannedAction::Stage,
        PlannedAction::Unknown => wire::PlannedAction::Unknown,
    }
}

fn finding(finding: &PlanFinding) -> wire::PlanFinding {
    wire::PlanFinding {
        severity: severity(finding.severity).into(),
        reason: reason(finding.reason).into(),
        boot_set: finding.boot_set.as_deref().unwrap_or_default().to_owned(),
        text: finding.text.clone(),
        names: finding.names.clone(),
        count: count(finding.count),
    }
}

fn severity(severity: Severity) -> wire::FindingSeverity {
    match severity {
        Severity::Error => wire::FindingSeverity::Error,
        Severity::Warning => wire::FindingSeverity::Warning,
        Severity::Info => wire::FindingSeverity::Info,
    }
}

fn reason(reason: FindingReason) -> wire::FindingReason {
    match reason {
        FindingReason::Template => wire::FindingReason::Template,
        FindingReason::Unbootable => wire::FindingReason::Unbootable,
        FindingReason::NodesRefused => wire::FindingReason::NodesRefused,
        FindingReason::NothingTaken => wire::FindingReason::NothingTaken,
        FindingReason::UpstreamDown => wire::FindingReason::UpstreamDown,
        FindingReason::InventoryEmpty => wire::FindingReason::InventoryEmpty,
        FindingReason::NodesUnknown => wire::FindingReason::NodesUnknown,
        FindingReason::GroupsUnknown => wire::FindingReason::GroupsUnknown,
        FindingReason::LimitUnknown => wire::FindingReason::LimitUnknown,
        FindingReason::LimitNids => wire::FindingReason::LimitNids,
        FindingReason::WrongArchitecture => wire::FindingReason::WrongArchitecture,
        FindingReason::NotComponents => wire::FindingReason::NotComponents,
        FindingReason::NoConsole => wire::FindingReason::NoConsole,
        FindingReason::PowerUnknown => wire::FindingReason::PowerUnknown,
        FindingReason::Superseded => wire::FindingReason::Superseded,
        FindingReason::PendingSessions => wire::FindingReason::PendingSessions,
        FindingReason::Unconfirmed => wire::FindingReason::Unconfirmed,
    }
}
