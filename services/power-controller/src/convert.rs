//! Between the rules' words and the wire's: readings, actions and transitions.

use chassis::convert::{component, time};
use domain::{component::Action, id::ComponentId, time::Timestamp};
use proto::{
    component::ActionReport,
    power::{Delivery, PowerReading, PowerState, Transition, TransitionMember},
    simulation::{NodePower, TransitionOperation},
};
use uuid::Uuid;

use crate::driver::Reading;

/// What an upstream says of one node. A peer that names no reading does not know it.
pub(crate) fn reading(node: NodePower) -> (String, Reading) {
    let reading = match node.reading() {
        PowerReading::Unspecified => PowerReading::Undefined,
        known @ (PowerReading::On | PowerReading::Off | PowerReading::Undefined | PowerReading::Missing) => {
            known
        }
    };
    (node.id, Reading { reading, error: node.error })
}

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

/// What the upstream has to do for an action; none if the action has nothing to do with power.
pub(crate) fn operation(action: Action) -> Option<TransitionOperation> {
    match action {
        Action::PoweringOn => Some(TransitionOperation::On),
        Action::PoweringOffGracefully => Some(TransitionOperation::SoftOff),
        Action::PoweringOffForcefully => Some(TransitionOperation::ForceOff),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            None
        }
    }
}

/// The action of an upstream's operation; none if it has no name.
pub(crate) fn action_of(operation: TransitionOperation) -> Option<Action> {
    match operation {
        TransitionOperation::Unspecified => None,
        TransitionOperation::On => Some(Action::PoweringOn),
        TransitionOperation::SoftOff => Some(Action::PoweringOffGracefully),
        TransitionOperation::ForceOff => Some(Action::PoweringOffForcefully),
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
