//! Who is acted on, and together with whom. Values in, values out: no clock, no ledger, no network.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component, Phase},
        power::{self, PowerDecision, PowerObservation},
    },
    core::{clock_offset::ClockOffset, id::ComponentId, time::Timestamp},
};
use proto::power::{Transition, TransitionMember};

use crate::{convert, driver::Accepted};

/// One try at a power action on one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// What became of the wish to make an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It is open now.
    Opened,
    /// It is open already, or was made before.
    Repeated,
    /// Another attempt is open.
    Blocked,
}

impl Intents {
    /// Opens an attempt, unless it was made before or another one is open.
    pub(crate) fn open(&mut self, id: &ComponentId, attempt: Attempt) -> Opening {
        match self.latest.get(id) {
            Some(latest) if latest.attempt == attempt => return Opening::Repeated,
            Some(latest) if latest.open => return Opening::Blocked,
            Some(_) | None => {}
        }
        self.latest.insert(id.clone(), Intent { attempt, open: true });
        Opening::Opened
    }

    /// What became of the attempt is known.
    pub(crate) fn close(&mut self, id: &ComponentId, attempt: Attempt) {
        if let Some(latest) = self.latest.get_mut(id).filter(|latest| latest.attempt == attempt) {
            latest.open = false;
        }
    }

    /// The open attempt is not made after all; it may be made later.
    pub(crate) fn withdraw(&mut self, id: &ComponentId) {
        self.latest.remove(id);
    }

    /// The same for that attempt and no other. Tells whether it was the open one.
    pub(crate) fn withdraw_attempt(&mut self, id: &ComponentId, attempt: Attempt) -> bool {
        let is_open = self.latest.get(id).is_some_and(|latest| latest.open && latest.attempt == attempt);
        if is_open {
            self.latest.remove(id);
        }
        is_open
    }

    /// The open attempts that `wanted` picks are not made after all. Gives their components.
    pub(crate) fn withdraw_all(
        &mut self,
        wanted: impl Fn(&ComponentId, Attempt) -> bool,
    ) -> Vec<ComponentId> {
        let withdrawn = self.latest.extract_if(|id, latest| latest.open && wanted(id, latest.attempt));
        withdrawn.map(|(id, _)| id).collect()
    }

    /// Whether it is known of every attempt of `transition` what became of it: it is not open, or there was another
    /// one after it, which there is only then.
    pub(crate) fn are_over(&self, transition: &Transition) -> bool {
        let is_over = |(id, attempt): (ComponentId, Attempt)| {
            self.latest.get(&id).is_some_and(|latest| !latest.open || latest.attempt != attempt)
        };
        !transition.members.is_empty() && convert::attempts(transition).all(is_over)
    }

    /// The component is gone. An open attempt stays: it may still have its effect.
    pub(crate) fn forget(&mut self, id: &ComponentId) {
        if self.latest.get(id).is_some_and(|latest| !latest.open) {
            self.latest.remove(id);
        }
    }

    /// Recalls an attempt from the ledger. The open one of a component counts, or else the last given.
    pub(crate) fn recall(&mut self, id: ComponentId, attempt: Attempt, open: bool) {
        if open || !self.latest.get(&id).is_some_and(|latest| latest.open) {
            self.latest.insert(id, Intent { attempt, open });
        }
    }
}

/// Puts attempts together into the members of as few transitions as possible: one action each, sorted ids,
/// no more than the upstream takes at once and the option `max_component_batch_size` allows (BOS reference 4).
pub(crate) fn batches(
    attempts: Vec<(ComponentId, Attempt)>,
    options: &Options,
    upstream_takes: usize,
) -> Vec<(Action, Vec<TransitionMember>)> {
    let mut by_action: BTreeMap<Action, Vec<TransitionMember>> = BTreeMap::new();
    for (id, attempt) in attempts {
        let Attempt { generation, action, number } = attempt;
        let id = id.as_str().to_owned();
        let member = TransitionMember { id, generation, attempt: number, ..TransitionMember::default() };
        by_action.entry(action).or_default().push(member);
    }
    let most = options.batch_size(upstream_takes);
    let mut batches = Vec::new();
    for (action, mut members) in by_action {
        members.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        batches.extend(members.chunks(most).map(|chunk| (action, chunk.to_vec())));
    }
    batches
}

/// How an attempt stands that was written down and of which the upstream has not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is what the component needs.
    Due,
    /// It counts already, and something has to change before it can be made.
    Later,
    /// The component does not need it any more, or can have it decided anew at no cost.
    Gone,
}

/// Judges an attempt of which the upstream has not heard.
///
/// One that was counted stays due until it was made, however long the upstream was away: its time has not begun,
/// and the next of its kind, or the next harsher one, would spend attempts on nothing.
pub(crate) fn standing(
    component: &Component,
    power: &PowerObservation,
    action: Action,
    member: &TransitionMember,
    options: &Options,
    now: Timestamp,
) -> Standing {
    if component.generation != member.generation || !component.is_enabled() {
        return Standing::Gone;
    }
    let counted = component.attempts(action) == member.attempt
        && component.last_action() == Some(action)
        && component.phase() == phase_of(action);
    if !counted {
        let decision = power::decide(component, power, options, now);
        let again = PowerDecision::Act { action, attempt: member.attempt };
        return if decision == again { Standing::Due } else { Standing::Gone };
    }
    let stands_in_the_way = !component.may_be_switched() || !component.status_override().is_empty();
    match power {
        PowerObservation::On | PowerObservation::Off if !power::would_change(action, power) => Standing::Gone,
        PowerObservation::On | PowerObservation::Off if !stands_in_the_way => Standing::Due,
        PowerObservation::On
        | PowerObservation::Off
        | PowerObservation::Unknown
        | PowerObservation::Missing
        | PowerObservation::Undefined { .. } => Standing::Later,
    }
}

/// Whether a member has had its time to shut down and is to be forced off, which the upstream does not take while it
/// still works on the shutdown.
pub(crate) fn is_overdue(
    component: &Component,
    power: &PowerObservation,
    member: &TransitionMember,
    options: &Options,
    now: Timestamp,
) -> bool {
    component.generation == member.generation
        && match power::decide(component, power, options, now) {
            PowerDecision::Act { action, .. } => action == Action::PoweringOffForcefully,
            PowerDecision::Wait { .. } | PowerDecision::Nothing { .. } => false,
        }
}

/// The phase in which the action is asked for.
fn phase_of(action: Action) -> Phase {
    match action {
        Action::PoweringOn => Phase::PoweringOn,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => Phase::PoweringOff,
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            Phase::None
        }
    }
}

/// What an upstream's records show of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace<'a> {
    /// The upstream took it under this id.
    Found(&'a str),
    /// The upstream may have taken it, and is still working out what it was asked for.
    Perhaps,
    /// The upstream has one under this id that asks for the same, and nobody can tell when it began.
    Undated { id: &'a str, open: bool },
    /// The upstream does not know it.
    Missing,
}

/// When the upstream can have taken a transition, by our clock, and how its own clock stands beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    /// None: it is not known.
    pub(crate) clock: Option<ClockOffset>,
}

/// Longest time by which our clock may have been ahead when a transition was sent. Clocks of one site differ by two seconds
/// at most, and a process that has ended may have had another clock than this one.
const AHEAD: Duration = Duration::from_millis(2_500);

impl Window {
    /// The earliest moment at which the upstream can have taken the transition, whatever our clock was.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.from.minus(AHEAD)
    }

    /// Whether it may have been taken when the upstream says, by its clock; none: nobody can tell.
    fn allows(&self, one: &Accepted) -> Option<bool> {
        let clock = self.clock.filter(|_| one.at < Timestamp(i64::MAX))?;
        let may_be_from = |from| clock.may_be_within(one.at, one.resolution, from, self.until);
        match may_be_from(self.from) {
            true => Some(true),
            false => (!may_be_from(self.earliest())).then_some(false),
        }
    }
}

/// Looks for `transition` among what the upstream has on record: the one of the same action on the same nodes that it
/// took within the `window`. One that began seconds before is somebody else's, and so is one that `is_claimed` by another
/// transition of ours.
pub(crate) fn trace<'a>(
    transition: &Transition,
    accepted: &'a [Accepted],
    window: &Window,
    is_claimed: impl Fn(&Accepted) -> bool,
) -> Trace<'a> {
    let Some(action) = convert::action(transition) else { return Trace::Missing };
    let ids = convert::sorted_ids(transition);
    let candidates = || {
        accepted
            .iter()
            .filter(|one| one.action == Some(action) && window.allows(one) != Some(false) && !is_claimed(one))
    };
    let same = || candidates().filter(|one| one.complete && one.ids == ids);
    if let Some(dated) = same().filter(|one| window.allows(one).is_some()).max_by_key(|one| one.at) {
        return Trace::Found(&dated.id);
    }
    let may_become = |one: &Accepted| !one.complete && one.ids.iter().all(|id| ids.contains(&id.as_str()));
    if candidates().any(may_become) {
        return Trace::Perhaps;
    }
    match same().max_by_key(|one| (one.open, one.at)) {
        Some(undated) => Trace::Undated { id: &undated.id, open: undated.open },
        None => Trace::Missing,
    }
}

/// Whether what the upstream has under the id of a transition is what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBack {
    /// The record is what was asked for.
    Same,
    /// The upstream is still working out what it was asked for.
    Unclear,
    /// The record is of another action, of other nodes or of another time.
    Other,
}

/// Compares `transition` with the `record` that the upstream has under its id. Records that are over may have lost their
/// nodes. An upstream that keeps no records has nothing else under the id either.
pub(crate) fn read_back(transition: &Transition, record: Option<&Accepted>, window: &Window) -> ReadBack {
    let Some(record) = record else { return ReadBack::Same };
    if record.action != convert::action(transition) || window.allows(record) == Some(false) {
        return ReadBack::Other;
    }
    let ids = convert::sorted_ids(transition);
    match record.complete {
        true if record.ids == ids || record.ids.is_empty() => ReadBack::Same,
        false if record.ids.iter().all(|id| ids.contains(&id.as_str())) => ReadBack::Unclear,
        true | false => ReadBack::Other,
    }
}

#[cfg(test)]
mod tests;
