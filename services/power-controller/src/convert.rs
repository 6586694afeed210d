//! Between the rules' words and the wire's: power states, transitions and reports.

use chassis::convert::{component, time};
use domain::{component::Action, id::ComponentId, time::Timestamp};
use proto::{
    component::ActionReport,
    power::{Delivery, PowerState, Transition, TransitionMember},
};
use uuid::Uuid;

use crate::driver::Reading;

/// A reading as it is kept and shown.
pub(crate) fn power_state(
    id: &ComponentId,
    reading: Reading,
    generation: u64,
    observed_at: Timestamp,
) -> PowerState {
    PowerState {
        id: id.as_str().to_owned(),
        reading: reading.reading.into(),
        error: reading.error,
        observed_at: Some(time::to_wire(observed_at)),
        generation,
        revision: 0,
    }
}

/// A transition that nobody was told of yet.
pub(crate) fn prepared(action: Action, members: Vec<TransitionMember>, now: Timestamp) -> Transition {
    Transition {
        id: Uuid::new_v4().to_string(),
        action: component::action_to_wire(action).into(),
        members,
        delivery: Delivery::Prepared.into(),
        created_at: Some(time::to_wire(now)),
        ..Transition::default()
    }
}

/// The action of a transition; none only in a record that this service did not write.
pub(crate) fn action(transition: &Transition) -> Option<Action> {
    component::action_from_wire(transition.action)
}

/// When the upstream was asked; a transition that was not sent counts as never.
pub(crate) fn sent_at(transition: &Transition) -> Timestamp {
    transition.sent_at.map(time::from_wire).unwrap_or_default()
}

/// The components of a transition. Their ids were component ids when the transition was made.
pub(crate) fn component_ids(members: &[TransitionMember]) -> impl Iterator<Item = ComponentId> {
    members.iter().filter_map(|member| ComponentId::parse(&member.id).ok())
}

/// What to tell the registry about every member; an empty `error` says that the attempt begins or goes on.
pub(crate) fn reports<'a>(
    transition: &'a Transition,
    error: &'a str,
) -> impl Iterator<Item = ActionReport> + 'a {
    transition.members.iter().map(move |member| ActionReport {
        id: member.id.clone(),
        generation: member.generation,
        action: transition.action,
        attempt: member.attempt,
        error: error.to_owned(),
    })
}
