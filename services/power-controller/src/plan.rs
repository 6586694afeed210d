//! Who is acted on, and together with whom. Values in, values out: no clock, no ledger, no network.

use std::collections::{BTreeMap, HashMap};

use domain::{
    component::{Action, Component},
    evaluation::PowerObservation,
    id::ComponentId,
    options::Options,
    power::{self, PowerDecision},
    status::{POWER_OFF_FORCEFULLY_CALLED, POWER_OFF_GRACEFULLY_CALLED, POWER_ON_CALLED, computed_status},
    time::Timestamp,
};
use proto::power::{Transition, TransitionMember};

use crate::{convert, driver::Accepted};

/// Most nodes in one transition. Power services take a little more; what they get from us stays
/// recognisable and small enough to be answered within a second.
const MOST_MEMBERS: usize = 2500;

/// One try at a power action on one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) generation: u64,
    pub(crate) action: Action,
    /// Counted from 1.
    pub(crate) number: u32,
}

/// The latest attempt on each component, so that none is made twice and none while another is open.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    latest: HashMap<ComponentId, Intent>,
}

#[derive(Debug, Clone, Copy)]
struct Intent {
    attempt: Attempt,
    /// What became of it is not known yet.
    open: bool,
}

impl Intents {
    /// Opens an attempt, unless it was made before or another one is open.
    pub(crate) fn open(&mut self, id: &ComponentId, attempt: Attempt) -> bool {
        if self.latest.get(id).is_some_and(|latest| latest.open || latest.attempt == attempt) {
            return false;
        }
        self.latest.insert(id.clone(), Intent { attempt, open: true });
        true
    }

    /// What became of the open attempt is known.
    pub(crate) fn close(&mut self, id: &ComponentId) {
        if let Some(latest) = self.latest.get_mut(id) {
            latest.open = false;
        }
    }

    /// The open attempt is not made after all; it may be made later.
    pub(crate) fn withdraw(&mut self, id: &ComponentId) {
        self.latest.remove(id);
    }

    /// The component is gone. An open attempt stays: it may still have its effect.
    pub(crate) fn forget(&mut self, id: &ComponentId) {
        if self.latest.get(id).is_some_and(|latest| !latest.open) {
            self.latest.remove(id);
        }
    }

    /// Takes over an attempt from the ledger. The open one of a component counts, or else the last given.
    pub(crate) fn recall(&mut self, id: ComponentId, attempt: Attempt, open: bool) {
        if open || !self.latest.get(&id).is_some_and(|latest| latest.open) {
            self.latest.insert(id, Intent { attempt, open });
        }
    }
}

/// Puts attempts together into the members of as few transitions as possible: one action each, sorted ids,
/// no more than the option `max_component_batch_size` allows (BOS reference 4).
pub(crate) fn batches(
    attempts: Vec<(ComponentId, Attempt)>,
    options: &Options,
) -> Vec<(Action, Vec<TransitionMember>)> {
    let mut by_action: BTreeMap<Action, Vec<TransitionMember>> = BTreeMap::new();
    for (id, attempt) in attempts {
        let Attempt { generation, action, number } = attempt;
        let member = TransitionMember { id: id.as_str().to_owned(), generation, attempt: number };
        by_action.entry(action).or_default().push(member);
    }
    let most = most_members(options);
    let mut batches = Vec::new();
    for (action, mut members) in by_action {
        members.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        batches.extend(members.chunks(most).map(|chunk| (action, chunk.to_vec())));
    }
    batches
}

fn most_members(options: &Options) -> usize {
    match usize::try_from(options.max_component_batch_size) {
        Ok(0) | Err(_) => MOST_MEMBERS,
        Ok(most) => most.min(MOST_MEMBERS),
    }
}

/// Cuts the members of a refused transition in two, so that a node that cannot be acted on ends up alone.
/// None if it is alone already.
pub(crate) fn halves(members: &[TransitionMember]) -> Option<[Vec<TransitionMember>; 2]> {
    let (first, second) = members.split_at(members.len() / 2);
    (!first.is_empty()).then(|| [first.to_vec(), second.to_vec()])
}

/// Whether an attempt that was written down and not sent is still what the component needs: either it
/// would be decided again, or it was already counted and nothing has taken its place. Either way its power
/// has to be known still.
pub(crate) fn still_due(
    component: &Component,
    power: &PowerObservation,
    action: Action,
    member: &TransitionMember,
    options: &Options,
    now: Timestamp,
) -> bool {
    let current = component.generation == member.generation && component.is_enabled();
    if !current || !power::would_change(action, power) {
        return false;
    }
    let counted = component.status_override().is_empty()
        && Some(computed_status(component)) == called(action)
        && component.attempts(action) == member.attempt;
    match power::decide(component, power, options, now) {
        // An attempt that was counted stays due until it was made, however long the upstream was away: the next
        // of its kind would spend another one on nothing.
        PowerDecision::Act { action: due, attempt } => {
            due == action && (attempt == member.attempt || counted)
        }
        PowerDecision::Wait { .. } | PowerDecision::Nothing { .. } => counted,
    }
}

/// The status of a component on which the action was begun.
fn called(action: Action) -> Option<&'static str> {
    match action {
        Action::PoweringOn => Some(POWER_ON_CALLED),
        Action::PoweringOffGracefully => Some(POWER_OFF_GRACEFULLY_CALLED),
        Action::PoweringOffForcefully => Some(POWER_OFF_FORCEFULLY_CALLED),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            None
        }
    }
}

/// The upstream's id of `transition`, if the upstream took it: the same action on the same nodes, under an
/// id that belongs to no other transition of ours.
pub(crate) fn adopt<'a>(
    transition: &Transition,
    accepted: &'a [Accepted],
    taken: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let action = convert::action(transition)?;
    let mut ids: Vec<&str> = transition.members.iter().map(|member| member.id.as_str()).collect();
    ids.sort_unstable();
    let same = |one: &&Accepted| one.action == Some(action) && one.ids == ids && !taken(&one.id);
    accepted.iter().find(same).map(|one| one.id.as_str())
}

#[cfg(test)]
mod tests;
