//! Keeps the known actions on each node: the latest attempt, the effect that may still come, and the
//! transition of the upstream that holds the node.
//!
//! An action does not end with the generation that it was for. Until its effect has come, or its time has passed, a
//! reading of the node is no evidence for a newer generation.

mod effects;

use std::{collections::HashMap, sync::Arc, time::Instant};

use chassis::process::memory::leave_room;
use domain::{
    boot::{
        component::Action,
        power::{
            AttemptFate, Course,
            transition::{NO_GENERATION, PowerTransition, TransitionDelivery},
        },
    },
    core::{id::ComponentId, time::Timestamp},
};

use crate::{convert, journal::is_open};

/// Single try at a power action on one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PowerAttempt {
    pub(crate) generation: u64,
    pub(crate) action: Action,
    /// Counted from 1.
    pub(crate) number: u32,
}

/// Records of all nodes with an action, by the id of the component.
#[derive(Debug, Default)]
pub(crate) struct NodeRecords {
    records: HashMap<ComponentId, NodeRecord>,
}

/// State of the actions on one node.
#[derive(Debug, Default)]
struct NodeRecord {
    /// Latest attempt, so that no attempt is made twice, and none while another is open.
    latest: Option<LatestAttempt>,
    /// Effect of the last action, until it was seen.
    effect: Option<AwaitedEffect>,
    /// Transition of the upstream that holds the node, until it has ended; `None`: not known yet, or in doubt.
    holder: Option<NodeHolder>,
    /// End of an action that left the power of the node open, until the node is read again.
    left_open: Option<LeftOpen>,
}

#[derive(Debug, Clone, Copy)]
struct LatestAttempt {
    attempt: PowerAttempt,
    /// Whether its outcome is unknown.
    is_open: bool,
    /// Whether the upstream is known to have taken it.
    was_taken: bool,
}

#[derive(Debug, Clone)]
struct AwaitedEffect {
    /// Action; `None`: another operation of another client, such as a restart.
    action: Option<Action>,
    generation: u64,
    course: Course,
    /// Whether the upstream reports the outcome of the transition. Otherwise the power of the node has to be read.
    is_followed: bool,
    /// Whether the node has reported the boot of this action.
    is_reported: bool,
}

/// Transition that the upstream took and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeHolder {
    /// Id of the transition here.
    pub(crate) transition: Arc<str>,
    pub(crate) upstream_id: Arc<str>,
    generation: u64,
}

/// End of an action after which the upstream did not report the power.
#[derive(Debug, Clone, Copy)]
struct LeftOpen {
    since: Instant,
    /// Last time at which the power can have changed, where readings may predate it; `None`: every later request
    /// counts.
    at: Option<Timestamp>,
}

/// Answer to a request to open an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOpening {
    /// The attempt is open now.
    Opened,
    /// The attempt is open already, or was made before.
    Repeated,
    /// Another attempt is open.
    Blocked,
}

/// Action that the upstream may still carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenAction {
    /// In doubt: the upstream may take it or not.
    InDoubt,
    /// The upstream took it as this transition.
    Taken(NodeHolder),
}

/// Returns the attempts that a transition consists of.
pub(crate) fn attempts(transition: &PowerTransition) -> impl Iterator<Item = (ComponentId, PowerAttempt)> {
    let action = transition.action;
    transition.members.iter().filter_map(move |member| {
        let attempt = PowerAttempt { generation: member.generation, action: action?, number: member.attempt };
        Some((ComponentId::parse(&member.id).ok()?, attempt))
    })
}

impl NodeRecords {
    /// Recalls the actions of recorded transitions, which do not include abandoned ones of other clients. Effects that
    /// were seen, or whose time has passed, are settled later like any other.
    pub(crate) fn recall(mut transitions: Vec<Arc<PowerTransition>>) -> Self {
        transitions.retain(|one| !one.is_of_another());
        transitions.sort_by_key(|one| one.created_at);
        let mut nodes = Self::default();
        for transition in transitions {
            nodes.recall_one(&transition);
        }
        nodes
    }

    /// Recalls the actions of one recorded transition.
    fn recall_one(&mut self, transition: &PowerTransition) {
        for (id, attempt) in attempts(transition) {
            let (is_open, was_taken) = (is_open(transition), transition.accepted_at.is_some());
            self.recall_attempt(id, LatestAttempt { attempt, is_open, was_taken });
        }
        self.recall_effects(transition);
    }

    /// Recalls an attempt. The open attempt of a component counts, or else the one recalled last.
    fn recall_attempt(&mut self, id: ComponentId, attempt: LatestAttempt) {
        let record = self.records.entry(id).or_default();
        if attempt.is_open || !record.latest.is_some_and(|latest| latest.is_open) {
            record.latest = Some(attempt);
        }
    }

    fn recall_effects(&mut self, transition: &PowerTransition) {
        match transition.delivery {
            TransitionDelivery::Prepared | TransitionDelivery::Sent | TransitionDelivery::Unknown => {
                self.begin(transition)
            }
            TransitionDelivery::Accepted => {
                self.begin(transition);
                self.follow(transition, false);
            }
            TransitionDelivery::Finished => {
                self.begin(transition);
                // The time of the answer is not on record.
                self.accepted(transition, convert::sent_at(transition));
            }
            TransitionDelivery::Unspecified | TransitionDelivery::Refused => {}
        }
    }

    /// Opens an attempt, unless it was made before or another one is open.
    pub(crate) fn open(&mut self, id: &ComponentId, attempt: PowerAttempt) -> AttemptOpening {
        let record = self.records.entry(id.clone()).or_default();
        match record.latest {
            Some(latest) if latest.attempt == attempt => return AttemptOpening::Repeated,
            Some(latest) if latest.is_open => return AttemptOpening::Blocked,
            Some(_) | None => {}
        }
        record.latest = Some(LatestAttempt { attempt, is_open: true, was_taken: false });
        AttemptOpening::Opened
    }

    /// Closes the attempt: its outcome is known, and the upstream does not hold the node for it any more. `was_taken`:
    /// whether the upstream is known to have taken it.
    pub(crate) fn close(&mut self, id: &ComponentId, attempt: PowerAttempt, was_taken: bool) {
        let Some(record) = self.records.get_mut(id) else { return };
        if let Some(latest) = record.latest.as_mut().filter(|latest| latest.attempt == attempt) {
            (latest.is_open, latest.was_taken) = (false, was_taken);
            record.holder.take_if(|holder| !holder.is_of_another());
        }
    }

    /// Returns the result of that attempt.
    pub(crate) fn fate(&self, id: &str, attempt: PowerAttempt) -> AttemptFate {
        let latest = self.records.get(id).and_then(|record| record.latest);
        match latest.filter(|latest| latest.attempt == attempt) {
            Some(LatestAttempt { is_open: true, .. }) => AttemptFate::Open,
            Some(LatestAttempt { was_taken: true, .. }) => AttemptFate::Taken,
            Some(_) | None => AttemptFate::Dropped,
        }
    }

    /// Withdraws the attempt, which may be made later, and the effect that it may have had.
    pub(crate) fn withdraw(&mut self, id: &ComponentId) {
        if let Some(record) = self.records.get_mut(id) {
            record.latest = None;
        }
        self.cancel(id);
    }

    /// Withdraws that attempt and no other, if it is open.
    pub(crate) fn withdraw_attempt(&mut self, id: &ComponentId, attempt: PowerAttempt) {
        let Some(record) = self.records.get_mut(id) else { return };
        record.latest.take_if(|latest| latest.is_open && latest.attempt == attempt);
        self.drop_if_empty(id);
    }

    /// Forgets the attempts on a component that is gone. An open attempt stays: it may still have its effect.
    pub(crate) fn forget(&mut self, id: &ComponentId) {
        if let Some(record) = self.records.get_mut(id) {
            record.latest.take_if(|latest| !latest.is_open);
            self.drop_if_empty(id);
        }
    }

    fn effect(&self, id: &str) -> Option<&AwaitedEffect> {
        self.records.get(id)?.effect.as_ref()
    }

    fn effect_mut(&mut self, id: &str) -> Option<&mut AwaitedEffect> {
        self.records.get_mut(id)?.effect.as_mut()
    }

    fn drop_if_empty(&mut self, id: &ComponentId) {
        if self.records.get(id).is_some_and(NodeRecord::is_empty) {
            self.records.remove(id);
            leave_room(&mut self.records);
        }
    }
}

impl NodeHolder {
    /// Returns whether the transition is not on record.
    fn is_of_another(&self) -> bool {
        self.generation == NO_GENERATION
    }
}

impl AwaitedEffect {
    /// Returns whether the action is that of a transition that is not on record.
    fn is_of_another(&self) -> bool {
        self.generation == NO_GENERATION
    }
}

impl NodeRecord {
    /// Returns the transition of the upstream that carries out the action whose effect is awaited.
    fn taken_as(&self) -> Option<&NodeHolder> {
        let generation = self.effect.as_ref()?.generation;
        self.holder.as_ref().filter(|holder| holder.generation == generation)
    }

    fn is_empty(&self) -> bool {
        let Self { latest, effect, holder, left_open } = self;
        latest.is_none() && effect.is_none() && holder.is_none() && left_open.is_none()
    }
}

#[cfg(test)]
mod tests;
