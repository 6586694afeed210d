//! Plans as the answer shows them.

use std::collections::BTreeMap;

use proto::session::{
    FindingReason, FindingSeverity, LeftOutMember, LeftOutReason, MemberChange, PlanFinding, PlanSummary,
    PlannedAction, PlannedNode, PlannedPower, StateChange, StateMember,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reveille::{
    instant,
    word::{EnumWord, ShownEnum},
};

/// Plan: what a session would do. The lists come after the other members.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub(super) struct ShownPlan {
    #[serde(flatten)]
    summary: ShownSummary,
    /// Differences between the present and the planned boot of nodes, each once for all nodes that share it.
    changes: Vec<ShownChange>,
    /// Nodes that the session would take, sorted by id.
    nodes: Vec<ShownNode>,
    /// Nodes, groups and roles that the session would leave out.
    left_out: Vec<ShownLeftOut>,
}

/// Plan without its lists.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownSummary {
    /// Hash by which a session can be bound to the plan. Absent: the session would be refused or take no node.
    #[serde(skip_serializing_if = "String::is_empty")]
    hash: String,
    /// Time of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_at: Option<String>,
    /// Number of nodes that the session would take.
    taken: u32,
    /// Numbers of these nodes by action.
    actions: BTreeMap<String, u32>,
    /// Numbers of left-out nodes, groups and roles by reason.
    left_out_counts: BTreeMap<String, u32>,
    /// Facts about the session as a whole, the gravest first.
    findings: Vec<ShownFinding>,
    /// Expected duration. Absent: no node would be acted on, or too few nodes were brought up by the template before.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<ShownDuration>,
}

/// Expected duration of a session, if its nodes begin together.
#[derive(Serialize, JsonSchema)]
struct ShownDuration {
    /// Seconds within which all nodes are as wanted as likely as not.
    likely: f64,
    /// Seconds within which they are in nine of ten cases.
    late: f64,
    /// Number of nodes of earlier sessions that both rest on.
    learned_from: u64,
}

impl ShownDuration {
    fn of(summary: &PlanSummary) -> Option<Self> {
        let seconds =
            |time: prost_types::Duration| time.seconds as f64 + (f64::from(time.nanos) / 1e8).round() / 10.0;
        Some(Self {
            likely: seconds(summary.likely_duration?),
            late: seconds(summary.late_duration?),
            learned_from: summary.learned_from,
        })
    }
}

/// Fact about a planned session.
#[derive(Serialize, JsonSchema)]
struct ShownFinding {
    /// Weight: with an `error` the session would be refused, or fail before it touches a node.
    severity: EnumWord<FindingSeverity>,
    /// Reason, by which programs decide.
    reason: EnumWord<FindingReason>,
    /// Boot set that the fact is about; absent: the whole session.
    #[serde(skip_serializing_if = "String::is_empty")]
    boot_set: String,
    /// Fact in words.
    text: String,
    /// The first nodes, groups or sessions that the fact is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// Number of them.
    count: u32,
}

/// Difference between states.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownChange {
    /// Boot set whose nodes have the difference.
    boot_set: String,
    /// Members that differ.
    members: Vec<ShownMember>,
    /// Number of nodes with the difference.
    nodes: u32,
}

/// Difference in one member of a state.
#[derive(Serialize, JsonSchema)]
struct ShownMember {
    /// Member that differs.
    member: EnumWord<StateMember>,
    /// Text that the node reported, or the configuration on its record; empty: none.
    before: String,
    /// Text that the session wants; empty: none.
    after: String,
    /// Words of the kernel parameters that go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    /// Words of the kernel parameters that come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added: Vec<String>,
}

/// Node that the session would take.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownNode {
    /// Id of the node.
    id: String,
    /// Boot set that takes the node.
    boot_set: String,
    /// Power of the node as the upstream answered for this plan. Absent: it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<EnumWord<PlannedPower>>,
    /// Action that is expected.
    action: EnumWord<PlannedAction>,
    /// Place of the difference in `changes`, from 0. Absent: there is none, or the target state is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<u32>,
    /// Session under way that loses the node, or its stage in the node, to this one.
    #[serde(skip_serializing_if = "String::is_empty")]
    held_by: String,
}

/// Node, group or role that the session would leave out.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownLeftOut {
    /// Id of the node, or name of the group or role.
    id: String,
    /// Boot set that names it.
    boot_set: String,
    /// Reason.
    reason: EnumWord<LeftOutReason>,
}

impl From<PlanSummary> for ShownSummary {
    fn from(summary: PlanSummary) -> Self {
        let expected = ShownDuration::of(&summary);
        let actions = summary.actions.into_iter();
        let left_out = summary.left_out.into_iter();
        Self {
            hash: summary.hash,
            planned_at: summary.planned_at.map(instant::text),
            taken: summary.taken,
            actions: actions
                .map(|one| (EnumWord::<PlannedAction>::of(one.action).into_text(), one.count))
                .collect(),
            left_out_counts: left_out
                .map(|one| (EnumWord::<LeftOutReason>::of(one.reason).into_text(), one.count))
                .collect(),
            findings: summary.findings.into_iter().map(ShownFinding::from).collect(),
            expected,
        }
    }
}

impl From<PlanFinding> for ShownFinding {
    fn from(finding: PlanFinding) -> Self {
        Self {
            severity: EnumWord::of(finding.severity),
            reason: EnumWord::of(finding.reason),
            boot_set: finding.boot_set,
            text: finding.text,
            names: finding.names,
            count: finding.count,
        }
    }
}

impl From<StateChange> for ShownChange {
    fn from(change: StateChange) -> Self {
        let members = change.members.into_iter().map(ShownMember::from).collect();
        Self { boot_set: change.boot_set, members, nodes: change.nodes }
    }
}

impl From<MemberChange> for ShownMember {
    fn from(change: MemberChange) -> Self {
        Self {
            member: EnumWord::of(change.member),
            before: change.before,
            after: change.after,
            removed: change.removed,
            added: change.added,
        }
    }
}

impl From<PlannedNode> for ShownNode {
    fn from(node: PlannedNode) -> Self {
        Self {
            id: node.id,
            boot_set: node.boot_set,
            power: EnumWord::set(node.power),
            action: EnumWord::of(node.action),
            change: node.change,
            held_by: node.held_by,
        }
    }
}

impl From<LeftOutMember> for ShownLeftOut {
    fn from(member: LeftOutMember) -> Self {
        Self { id: member.id, boot_set: member.boot_set, reason: EnumWord::of(member.reason) }
    }
}

impl ShownEnum for PlannedPower {
    const PREFIX: &str = "PLANNED_POWER_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for PlannedAction {
    const PREFIX: &str = "PLANNED_ACTION_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for StateMember {
    const PREFIX: &str = "STATE_MEMBER_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for FindingSeverity {
    const PREFIX: &str = "FINDING_SEVERITY_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for FindingReason {
    const PREFIX: &str = "FINDING_REASON_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for LeftOutReason {
    const PREFIX: &str = "LEFT_OUT_REASON_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}
