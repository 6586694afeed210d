//! States of power, and the transitions that change them.

use std::borrow::Cow;

use domain::{
    boot::power::transition::{PowerTransition, TaskOutcome, TransitionDelivery, TransitionMember},
    core::invalid::Invalid,
};
use proto::power::{self as wire, PowerState};

use super::{
    NodeMessage, NodeState, OwnMembers,
    component::{action_from_wire, action_to_wire},
    trouble,
};
use crate::{
    mesh::time,
    store::resource::{Resource, WireForm},
};

/// State of power of one node.
pub type PowerStateRecord = NodeState<PowerState>;

impl NodeMessage for PowerState {
    const KIND: &'static str = "power_state";

    fn own_members(&mut self) -> OwnMembers<'_> {
        let Self { id, observed_at, revision, .. } = self;
        OwnMembers { id, observed_at, revision }
    }
}

impl Resource for PowerTransition {
    const KIND: &'static str = "transition";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    #[cfg(feature = "simulation")]
    fn is_forgotten(&self) -> bool {
        self.abandoned_at.is_some() && crate::simulation::PlantedDefect::ForgottenAbandonments.is_planted()
    }
}

impl WireForm for PowerTransition {
    type Message = wire::Transition;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::Transition> {
        Cow::Owned(transition_to_wire(self))
    }

    fn from_wire(mut message: wire::Transition, (): &mut ()) -> Result<Self, Invalid> {
        // Decoding adds members one by one, which leaves room for as many more.
        message.members.shrink_to_fit();
        Ok(transition_from_wire(message))
    }
}

/// A transition from the wire.
pub fn transition_from_wire(transition: wire::Transition) -> PowerTransition {
    PowerTransition {
        action: action_from_wire(transition.action),
        delivery: delivery_from_wire(transition.delivery()),
        trouble: trouble::from_wire(transition.error_kind, transition.error),
        id: transition.id,
        members: transition.members.into_iter().map(member_from_wire).collect(),
        upstream_id: transition.upstream_id,
        created_at: transition.created_at.map(time::from_wire),
        sent_at: transition.sent_at.map(time::from_wire),
        accepted_at: transition.accepted_at.map(time::from_wire),
        withdrawn_at: transition.withdrawn_at.map(time::from_wire),
        abandoned_at: transition.abandoned_at.map(time::from_wire),
        abandoned_by: transition.abandoned_by,
        revision: transition.revision,
    }
}

/// A transition as it goes out.
pub fn transition_to_wire(transition: &PowerTransition) -> wire::Transition {
    wire::Transition {
        id: transition.id.clone(),
        action: transition.action.map_or(0, |action| action_to_wire(action).into()),
        members: transition.members.iter().map(member_to_wire).collect(),
        delivery: delivery_to_wire(transition.delivery).into(),
        upstream_id: transition.upstream_id.clone(),
        error: trouble::text_to_wire(transition.trouble.as_ref()),
        error_kind: trouble::kind_to_wire(transition.trouble.as_ref()).into(),
        created_at: transition.created_at.map(time::to_wire),
        sent_at: transition.sent_at.map(time::to_wire),
        accepted_at: transition.accepted_at.map(time::to_wire),
        withdrawn_at: transition.withdrawn_at.map(time::to_wire),
        abandoned_at: transition.abandoned_at.map(time::to_wire),
        abandoned_by: transition.abandoned_by.clone(),
        revision: transition.revision,
    }
}

fn member_from_wire(member: wire::TransitionMember) -> TransitionMember {
    TransitionMember {
        outcome: outcome_from_wire(member.outcome()),
        id: member.id,
        generation: member.generation,
        attempt: member.attempt,
        error: member.error,
        held_by: member.held_by,
        reservations: member.reservations,
    }
}

fn member_to_wire(member: &TransitionMember) -> wire::TransitionMember {
    wire::TransitionMember {
        id: member.id.clone(),
        generation: member.generation,
        attempt: member.attempt,
        outcome: outcome_to_wire(member.outcome).into(),
        error: member.error.clone(),
        held_by: member.held_by.clone(),
        reservations: member.reservations,
    }
}

fn delivery_from_wire(delivery: wire::Delivery) -> TransitionDelivery {
    match delivery {
        wire::Delivery::Unspecified => TransitionDelivery::Unspecified,
        wire::Delivery::Prepared => TransitionDelivery::Prepared,
        wire::Delivery::Sent => TransitionDelivery::Sent,
        wire::Delivery::Accepted => TransitionDelivery::Accepted,
        wire::Delivery::Refused => TransitionDelivery::Refused,
        wire::Delivery::Unknown => TransitionDelivery::Unknown,
        wire::Delivery::Finished => TransitionDelivery::Finished,
    }
}

/// The delivery of a transition as it goes out.
pub fn delivery_to_wire(delivery: TransitionDelivery) -> wire::Delivery {
    match delivery {
        TransitionDelivery::Unspecified => wire::Delivery::Unspecified,
        TransitionDelivery::Prepared => wire::Delivery::Prepared,
        TransitionDelivery::Sent => wire::Delivery::Sent,
        TransitionDelivery::Accepted => wire::Delivery::Accepted,
        TransitionDelivery::Refused => wire::Delivery::Refused,
        TransitionDelivery::Unknown => wire::Delivery::Unknown,
        TransitionDelivery::Finished => wire::Delivery::Finished,
    }
}

fn outcome_from_wire(outcome: wire::TaskOutcome) -> TaskOutcome {
    match outcome {
        wire::TaskOutcome::Unspecified => TaskOutcome::Unspecified,
        wire::TaskOutcome::Succeeded => TaskOutcome::Succeeded,
        wire::TaskOutcome::Failed => TaskOutcome::Failed,
        wire::TaskOutcome::Refused => TaskOutcome::Refused,
    }
}

fn outcome_to_wire(outcome: TaskOutcome) -> wire::TaskOutcome {
    match outcome {
        TaskOutcome::Unspecified => wire::TaskOutcome::Unspecified,
        TaskOutcome::Succeeded => wire::TaskOutcome::Succeeded,
        TaskOutcome::Failed => wire::TaskOutcome::Failed,
        TaskOutcome::Refused => wire::TaskOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        boot::component::Action,
        core::{time::Timestamp, trouble::Trouble},
    };

    use super::*;

    #[test]
    fn a_transition_comes_back_as_it_went() {
        let member = TransitionMember {
            id: "x1".into(),
            generation: 7,
            attempt: 2,
            outcome: TaskOutcome::Refused,
            error: "Unable to reserve component".into(),
            held_by: "t-9".into(),
            reservations: 2,
        };
        let whole = PowerTransition {
            id: "t".into(),
            action: Some(Action::PoweringOn),
            members: vec![member],
            delivery: TransitionDelivery::Unknown,
            upstream_id: "u".into(),
            trouble: Some(Trouble::waiting_for("PCS")),
            created_at: Some(Timestamp(1)),
            sent_at: Some(Timestamp(2)),
            accepted_at: Some(Timestamp(3)),
            withdrawn_at: Some(Timestamp(4)),
            abandoned_at: Some(Timestamp(5)),
            abandoned_by: "r".into(),
            revision: 6,
        };
        for transition in [whole, PowerTransition::default()] {
            assert_eq!(transition_from_wire(transition_to_wire(&transition)), transition);
        }
    }

    #[test]
    fn a_stored_wait_without_a_kind_goes_on() {
        let waiting =
            PowerTransition { trouble: Some(Trouble::waiting_for("PCS")), ..PowerTransition::default() };
        let stored = wire::Transition { error_kind: 0, ..transition_to_wire(&waiting) };
        assert_eq!(transition_from_wire(stored), waiting);
    }
}
