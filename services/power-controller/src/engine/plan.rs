//! Selection and batching of actions. Values in, values out: no clock, no ledger, no network.

use std::{collections::BTreeMap, time::Duration};

use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component, Phase},
        power::{
            self, PowerDecision, PowerObservation,
            transition::{PowerTransition, TransitionMember},
        },
    },
    core::{clock_offset::ClockOffset, id::ComponentId, time::Timestamp},
};

use super::PowerAttempt;
use crate::{
    convert,
    driver::{UpstreamTransition, progress::UpstreamRecord},
};

/// Groups attempts into the members of as few transitions as possible: one action each, sorted ids, no more than the
/// upstream takes at once and the option `max_component_batch_size` allows (BOS reference 4).
pub(crate) fn batches(
    attempts: Vec<(ComponentId, PowerAttempt)>,
    options: &Options,
    upstream_takes: usize,
) -> Vec<(Action, Vec<TransitionMember>)> {
    let mut by_action: BTreeMap<Action, Vec<TransitionMember>> = BTreeMap::new();
    for (id, attempt) in attempts {
        let PowerAttempt { generation, action, number } = attempt;
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

/// Next step of a recorded attempt that was not sent to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptStep {
    /// The component needs the attempt.
    Due,
    /// The attempt is counted already, and the component has to change before it can be made.
    Later,
    /// The component does not need the attempt any more, or can have it decided again at no cost.
    Gone,
}

/// Judges a recorded attempt that was not sent to the upstream.
///
/// A counted attempt stays due until it was made, however long the upstream was away: its time has not begun, and the
/// next attempt at the same or a harsher action would spend attempts in vain.
pub(crate) fn attempt_step(
    component: &Component,
    power: &PowerObservation,
    action: Action,
    member: &TransitionMember,
    options: &Options,
    now: Timestamp,
) -> AttemptStep {
    if component.generation != member.generation || !component.is_enabled() {
        return AttemptStep::Gone;
    }
    let counted = component.attempts(action) == member.attempt
        && component.last_action() == Some(action)
        && component.phase() == phase_of(action);
    if !counted {
        let decision = power::decide(component, power, options, now);
        let again = PowerDecision::Act { action, attempt: member.attempt };
        return if decision == again { AttemptStep::Due } else { AttemptStep::Gone };
    }
    let stands_in_the_way =
        !component.may_be_switched() || component.is_paused() || !component.status_override().is_empty();
    match power {
        PowerObservation::On | PowerObservation::OnAgain | PowerObservation::Off
            if !power::would_change(action, power) =>
        {
            AttemptStep::Gone
        }
        // The node was off after it was counted. It is asked to shut down again first.
        PowerObservation::OnAgain if action == Action::PoweringOffForcefully => AttemptStep::Gone,
        PowerObservation::On | PowerObservation::OnAgain | PowerObservation::Off if !stands_in_the_way => {
            AttemptStep::Due
        }
        PowerObservation::On
        | PowerObservation::OnAgain
        | PowerObservation::Off
        | PowerObservation::OffInDoubt
        | PowerObservation::Unknown
        | PowerObservation::Missing
        | PowerObservation::Undefined { .. } => AttemptStep::Later,
    }
}

/// Returns whether the time of a member to shut down is over and it is to be forced off, which the upstream refuses
/// while it still works on the shutdown.
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

/// Returns the phase in which the action is requested.
fn phase_of(action: Action) -> Phase {
    match action {
        Action::PoweringOn => Phase::PoweringOn,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => Phase::PoweringOff,
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            Phase::None
        }
    }
}

/// Evidence of a transition in the records of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransitionEvidence<'a> {
    /// The upstream took it under this id.
    Found(&'a str),
    /// The upstream may have taken it, and is still expanding the request.
    Perhaps,
    /// The upstream has a transition with the same request under this id, of which time or number leave open whether it is
    /// another client's.
    Undated { id: &'a str, open: bool },
    /// The upstream does not have it.
    Missing,
}

/// Time in which the upstream can have taken a transition, by our clock, and the offset of the upstream's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SearchWindow {
    pub(crate) from: Timestamp,
    /// Latest time at which a transition with the same request is taken for ours. A later one may be another client's.
    /// `None`: the time of our call is not on record, so nothing is taken for ours.
    pub(crate) ours_until: Option<Timestamp>,
    pub(crate) until: Timestamp,
    /// Offset of the upstream's clock; `None`: unknown.
    pub(crate) clock: Option<ClockOffset>,
}

/// Longest time by which our clock may have been ahead when a transition was sent. Clocks of one site differ by two
/// seconds at most, and a process that has ended may have had another clock than this one.
const AHEAD: Duration = Duration::from_millis(2_500);

/// Granularity from which times of creation do not tell two transitions apart that are requested one after the other.
const COARSE: Duration = Duration::from_secs(1);

impl SearchWindow {
    /// Returns the earliest moment at which the upstream can have taken the transition, whatever our clock was.
    pub(crate) fn earliest(&self) -> Timestamp {
        self.from.minus(AHEAD)
    }

    /// Returns whether the upstream took the transition after our call was over, whatever our clock was.
    fn is_after_call(&self, one: &UpstreamTransition) -> bool {
        let clock = self.clock.filter(|_| one.at < Timestamp(i64::MAX));
        let window = clock.zip(self.ours_until);
        window.is_some_and(|(clock, until)| {
            !clock.may_be_within(one.at, one.resolution, self.earliest(), until.plus(AHEAD))
        })
    }

    /// Returns whether the upstream's time of the transition is that of ours; `None`: undecidable. A time in whole seconds
    /// that may lie in the window is that of any transition of the same second.
    fn allows(&self, one: &UpstreamTransition) -> Option<bool> {
        let clock = self.clock.filter(|_| one.at < Timestamp(i64::MAX))?;
        let may_be_within = |from, until| clock.may_be_within(one.at, one.resolution, from, until);
        match self.ours_until.is_some_and(|until| may_be_within(self.from, until)) {
            true if one.resolution >= COARSE => None,
            true => Some(true),
            false => (!may_be_within(self.earliest(), self.until)).then_some(false),
        }
    }
}

/// Searches the upstream's records for `transition`: the one with the same action on the same nodes that the upstream
/// took while our call can have been under way. A record that began seconds earlier belongs to another client, and a record
/// that `is_claimed` belongs to another transition of ours. A record from after the call that the `window` still allows may be
/// either.
pub(crate) fn evidence<'a>(
    transition: &PowerTransition,
    accepted: &'a [UpstreamTransition],
    window: &SearchWindow,
    is_claimed: impl Fn(&UpstreamTransition) -> bool,
) -> TransitionEvidence<'a> {
    let Some(action) = transition.action else { return TransitionEvidence::Missing };
    let ids = convert::sorted_ids(transition);
    let candidates = || {
        accepted
            .iter()
            .filter(|one| one.action == Some(action) && window.allows(one) != Some(false) && !is_claimed(one))
    };
    let same = || candidates().filter(|one| one.complete && one.ids == ids);
    // Of two in the window at most one is ours, and nothing tells which.
    let mut dated = same().filter(|one| window.allows(one).is_some());
    if let (Some(only), None) = (dated.next(), dated.next()) {
        return TransitionEvidence::Found(&only.id);
    }
    let may_become =
        |one: &UpstreamTransition| !one.complete && one.ids.iter().all(|id| ids.contains(&id.as_str()));
    if candidates().any(may_become) {
        return TransitionEvidence::Perhaps;
    }
    // One that began after our call and is over was another client's, or was not needed any more.
    let undated = same().filter(|one| one.open || !window.is_after_call(one));
    match undated.max_by_key(|one| (one.open, one.at)) {
        Some(undated) => TransitionEvidence::Undated { id: &undated.id, open: undated.open },
        None => TransitionEvidence::Missing,
    }
}

/// Match between a transition and the upstream's record under its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBack {
    /// The record matches the request.
    Same,
    /// The upstream is still expanding the request.
    Unclear,
    /// The record has another action, other nodes or another time.
    Other,
    /// The upstream has no record under the id.
    Missing,
}

/// Compares `transition` with the `record` that the upstream has under its id. Records that are over may have lost
/// their nodes. An upstream without records has no other transition under the id either. An id that was never seen at
/// the upstream may be wrong, so that it is unknown there does not say that the transition is over.
pub(crate) fn read_back(
    transition: &PowerTransition,
    record: &UpstreamRecord,
    window: &SearchWindow,
) -> ReadBack {
    let record = match record {
        UpstreamRecord::NotKept => return ReadBack::Same,
        UpstreamRecord::Missing => return ReadBack::Missing,
        UpstreamRecord::Found(record) => record,
    };
    if record.action != transition.action || window.allows(record) == Some(false) {
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
