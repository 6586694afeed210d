//! Transitions as the answer shows them.

use proto::{
    component::Action,
    power::{Delivery, TaskOutcome, Transition, TransitionMember},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reveille::{
    instant,
    word::{EnumWord, ShownEnum},
};

/// Power action on a batch of nodes: the intent and its result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PowerTransition")]
pub(super) struct ShownTransition {
    /// Id on record. Absent: another client requested it, and it is not on record.
    #[serde(skip_serializing_if = "String::is_empty")]
    id: String,
    /// Id at the power service.
    #[serde(skip_serializing_if = "String::is_empty")]
    upstream_id: String,
    /// Action on its nodes.
    action: EnumWord<Action>,
    /// Delivery to the power service.
    delivery: EnumWord<Delivery>,
    /// Error of a refused transition or of one in doubt, in the words of the power service.
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    /// Time at which it was recorded, before anything was sent; of another client: at which the power service took it.
    /// Absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// Time of the request to the power service.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<String>,
    /// Latest time at which the power service can have accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<String>,
    /// Time of the request to end it early.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn_at: Option<String>,
    /// Time at which an operator gave it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned_at: Option<String>,
    /// Id of the request that gave it up.
    #[serde(skip_serializing_if = "String::is_empty")]
    abandoned_by: String,
    /// Nodes of the batch.
    members: Vec<ShownMember>,
}

/// Node of a transition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PowerTransitionMember")]
struct ShownMember {
    /// Id of the component.
    id: String,
    /// Attempt at the action, counted from 1; 0: another client requested the transition.
    attempt: u32,
    /// Result on the node. Absent: unknown yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<EnumWord<TaskOutcome>>,
    /// Error of a failure, in the words of the power service.
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    /// Id of the transition of the power service that held the node when this one was refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    held_by: String,
}

impl From<Transition> for ShownTransition {
    fn from(transition: Transition) -> Self {
        Self {
            id: transition.id,
            upstream_id: transition.upstream_id,
            action: EnumWord::of(transition.action),
            delivery: EnumWord::of(transition.delivery),
            error: transition.error,
            created_at: transition.created_at.map(instant::text),
            sent_at: transition.sent_at.map(instant::text),
            accepted_at: transition.accepted_at.map(instant::text),
            withdrawn_at: transition.withdrawn_at.map(instant::text),
            abandoned_at: transition.abandoned_at.map(instant::text),
            abandoned_by: transition.abandoned_by,
            members: transition.members.into_iter().map(ShownMember::from).collect(),
        }
    }
}

impl From<TransitionMember> for ShownMember {
    fn from(member: TransitionMember) -> Self {
        Self {
            id: member.id,
            attempt: member.attempt,
            outcome: EnumWord::set(member.outcome),
            error: member.error,
            held_by: member.held_by,
        }
    }
}

impl ShownEnum for Action {
    const PREFIX: &str = "ACTION_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for Delivery {
    const PREFIX: &str = "DELIVERY_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for TaskOutcome {
    const PREFIX: &str = "TASK_OUTCOME_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}
