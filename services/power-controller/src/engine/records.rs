//! Keeps what is known about each open transition beside its record. A restart forgets it, at the cost of a repeated poll
//! or report.

use std::{
    collections::HashMap,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use chassis::process::memory::leave_room;
use domain::{
    boot::{
        component::Action,
        power::{
            Caller, WITHDRAW_AGAIN,
            transition::{PowerTransition, TransitionDelivery},
        },
    },
    core::{
        id::ComponentId,
        refusal::{RefusalMemory, RefusalStep, RefusedBatch},
        time::Timestamp,
        trouble::Trouble,
    },
};
use parking_lot::Mutex;

use super::TransitionId;
use crate::convert;

/// Least time for which waiting members show one error.
const STEADY: Duration = Duration::from_secs(30);

/// Records of all open transitions, by the id of the transition.
#[derive(Debug, Default)]
pub(crate) struct TransitionRecords {
    records: HashMap<TransitionId, TransitionRecord>,
    /// Nodes of refused transitions.
    refusals: RefusalMemory<String>,
}

/// State of one open transition.
#[derive(Debug, Clone, Default)]
struct TransitionRecord {
    /// The transition as it is on record, or is just being recorded.
    transition: PowerTransition,
    /// Whether the upstream took the transition before this term, and was not heard about it since.
    inherited: bool,
    /// Whether a poll of the transition is under way. Of two concurrent polls, the one that answers last might know less.
    is_polled: bool,
    /// Failures in a row to get the state of the transition from the upstream.
    failures: u32,
    /// Reason why the last poll of the transition failed.
    silence: Option<Arc<str>>,
    /// Trouble that the members show now.
    shown: Option<Trouble>,
    /// Time since which the members show it.
    shown_since: Option<Instant>,
    /// Beginning of the doubt whether the upstream took the transition, and the process that had called it.
    doubt: Option<(Instant, Caller)>,
    /// Whether the last search for the transition failed.
    unreached: bool,
    /// Number of times that the transition was in doubt since the upstream took it last.
    doubts: u32,
    /// Whether the registry is being told that the attempts begin.
    announced: bool,
    /// Whether the upstream's record under the id of the transition was found to match the request.
    read_back: bool,
    /// Time at which the upstream took the request to end the transition early.
    withdrawal_heard: Option<Instant>,
    /// Batch that contains the transition, once a part of the batch was refused.
    batch: Option<Arc<Mutex<RefusedBatch>>>,
    /// Action and time of the call, while the upstream works on the transition and is polled about it.
    polled: Option<PolledCall>,
}

/// Call that the upstream took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PolledCall {
    action: Option<Action>,
    sent_at: Timestamp,
}

impl PolledCall {
    fn of(transition: &PowerTransition) -> Self {
        Self { action: transition.action, sent_at: convert::sent_at(transition) }
    }

    /// Returns whether two calls have the same action and were sent within less than `least` of one another.
    fn is_together(self, other: Self, least: Duration) -> bool {
        let apart = self.sent_at.since(other.sent_at).max(other.sent_at.since(self.sent_at));
        self.action == other.action && apart < least
    }
}

/// Failures in a row of one kind of request. The trouble is logged when it begins and when it ends.
#[derive(Debug, Default)]
pub(crate) struct FailureStreak(u32);

impl FailureStreak {
    /// Counts a failure and returns whether it is the first in a row.
    pub(crate) fn begins(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 == 1
    }

    /// Returns how many failures there were in a row until now.
    pub(crate) fn count(&self) -> u32 {
        self.0
    }

    /// Returns how many failures end with this answer; `None`: there were none.
    pub(crate) fn ends(&mut self) -> Option<u32> {
        Some(mem::take(&mut self.0)).filter(|failures| *failures > 0)
    }
}

impl TransitionRecords {
    /// Returns the transition, if it is open.
    pub(crate) fn get(&self, id: &str) -> Option<&PowerTransition> {
        self.records.get(id).map(|record| &record.transition)
    }

    /// Returns the transition, if it is in that state of delivery.
    pub(crate) fn in_state(&self, id: &str, delivery: TransitionDelivery) -> Option<&PowerTransition> {
        self.get(id).filter(|transition| transition.delivery == delivery)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &PowerTransition> {
        self.records.values().map(|record| &record.transition)
    }

    /// Sets the state of an open transition. What else is known about it stays, and so do the marks of an operator.
    pub(crate) fn put(&mut self, transition: PowerTransition) {
        let id = transition.id.as_str().into();
        let held = &mut self.records.entry(id).or_default().transition;
        let marks = held.abandoned_at.map(|at| (at, mem::take(&mut held.abandoned_by)));
        *held = transition;
        if let Some((at, by)) = marks {
            (held.abandoned_at, held.abandoned_by) = (Some(at), by);
        }
    }

    /// Sets the state of an open transition that was recorded before this term.
    pub(crate) fn inherit(&mut self, transition: PowerTransition) {
        let id = transition.id.clone();
        self.put(transition);
        self.with(&id, |record| record.inherited = true);
    }

    /// Returns whether the upstream took the transition before this term and is heard about it for the first time now.
    pub(crate) fn take_inherited(&mut self, id: &str) -> bool {
        self.with(id, |record| mem::take(&mut record.inherited))
    }

    fn with<A: Default>(&mut self, id: &str, change: impl FnOnce(&mut TransitionRecord) -> A) -> A {
        self.records.get_mut(id).map(change).unwrap_or_default()
    }

    /// Drops a transition that is over or is replaced by others.
    pub(crate) fn forget(&mut self, id: &str) {
        self.records.remove(id);
        leave_room(&mut self.records);
    }

    /// Forgets everything about a transition but its state: the upstream took it.
    pub(crate) fn begin_anew(&mut self, transition: PowerTransition) {
        self.put(transition.clone());
        self.with(&transition.id, |record| {
            let transition = mem::take(&mut record.transition);
            *record = TransitionRecord { transition, ..TransitionRecord::default() };
        });
    }

    /// Adds transitions that continue this one. What is known about it holds for them too.
    pub(crate) fn hand_down(&mut self, id: &str, heirs: impl IntoIterator<Item = PowerTransition>) {
        let record = self.records.get(id).cloned().unwrap_or_default();
        for transition in heirs {
            let heir = transition.id.as_str().into();
            self.records.insert(heir, TransitionRecord { transition, ..record.clone() });
        }
    }

    /// Notes the marks of an operator on an open transition. Returns its state.
    pub(crate) fn mark_abandoned(&mut self, marked: &PowerTransition) -> Option<&PowerTransition> {
        let transition = &mut self.records.get_mut(marked.id.as_str())?.transition;
        transition.abandoned_at = marked.abandoned_at;
        transition.abandoned_by.clone_from(&marked.abandoned_by);
        Some(transition)
    }

    /// Returns whether an operator has abandoned the transition.
    pub(crate) fn is_abandoned(&self, id: &str) -> bool {
        self.get(id).is_some_and(|transition| transition.abandoned_at.is_some())
    }

    /// Begins the announcement of attempts to the registry, whose answer continues the transition.
    pub(crate) fn begin_announcement(&mut self, id: &str) {
        self.with(id, |record| record.announced = true);
    }

    /// Ends the announcement, which the registry has answered.
    pub(crate) fn end_announcement(&mut self, id: &str) {
        self.with(id, |record| record.announced = false);
    }

    /// Returns whether the attempts of the transition are being announced.
    pub(crate) fn is_announced(&self, id: &str) -> bool {
        self.records.get(id).is_some_and(|record| record.announced)
    }

    /// Begins a poll; `false`: one is under way.
    pub(crate) fn begin_poll(&mut self, id: &str) -> bool {
        self.with(id, |record| !mem::replace(&mut record.is_polled, true))
    }

    /// Notes that the result of a poll is on record.
    pub(crate) fn end_poll(&mut self, id: &str) {
        self.with(id, |record| record.is_polled = false);
    }

    /// Begins to poll a transition that the upstream works on.
    pub(crate) fn begin_polls(&mut self, id: &str) {
        self.with(id, |record| record.polled = Some(PolledCall::of(&record.transition)));
    }

    /// Stops polling a transition that is over or in doubt.
    pub(crate) fn end_polls(&mut self, id: &str) {
        self.with(id, |record| (record.polled, record.is_polled) = (None, false));
    }

    /// Returns the transitions sent together with `transition`, and itself: they have the same action, and were sent so
    /// shortly after one another that none was polled in between.
    pub(crate) fn sent_with(&self, transition: &PowerTransition, least: Duration) -> Vec<TransitionId> {
        let call = PolledCall::of(transition);
        let polled = self.records.iter().filter_map(|(id, record)| Some((id, record.polled?)));
        polled.filter(|(_, other)| call.is_together(*other, least)).map(|(id, _)| Arc::clone(id)).collect()
    }

    /// Notes a failed poll and returns how many there were in a row.
    pub(crate) fn unheard(&mut self, id: &str, why: &str) -> u32 {
        self.with(id, |record| drop(record.silence.get_or_insert_with(|| why.into()).clone()));
        self.failed(id)
    }

    /// Returns why the upstream does not answer about the transition; `None`: it does.
    pub(crate) fn silence(&self, id: &str) -> Option<&str> {
        self.records.get(id)?.silence.as_deref()
    }

    /// Counts a failure and returns how many there were in a row.
    pub(crate) fn failed(&mut self, id: &str) -> u32 {
        self.with(id, |record| {
            record.failures = record.failures.saturating_add(1);
            record.failures
        })
    }

    /// Ends the row of failures: the upstream has answered about the transition.
    pub(crate) fn heard(&mut self, id: &str) {
        self.with(id, |record| (record.failures, record.silence) = (0, None));
    }

    /// Remembers the trouble that members show from `now` on; `false`: they show it already, or another one that has
    /// not been shown for long. A peer with a different text in each answer would otherwise change thousands of records
    /// each time.
    pub(crate) fn show(&mut self, id: &str, trouble: &Trouble, now: Instant) -> bool {
        self.with(id, |record| {
            let for_long = record.shown_since.is_none_or(|since| now.duration_since(since) >= STEADY);
            let news = record.shown.as_ref() != Some(trouble) && for_long;
            if news {
                record.shown = Some(trouble.clone());
                record.shown_since = Some(now);
            }
            news
        })
    }

    /// Returns the trouble that members show.
    pub(crate) fn shown(&self, id: &str) -> Option<Trouble> {
        self.records.get(id)?.shown.clone()
    }

    /// Returns the trouble that members showed until now. From now on they show none.
    pub(crate) fn take_shown(&mut self, id: &str) -> Option<Trouble> {
        let record = self.records.get_mut(id)?;
        record.shown_since = None;
        record.shown.take()
    }

    /// Returns when the doubt began, and which process had called the upstream: `now` and this process if the
    /// transition was not in doubt until now.
    pub(crate) fn doubt(&mut self, id: &str, now: Instant) -> (Instant, Caller) {
        let Some(record) = self.records.get_mut(id) else { return (now, Caller::Gone) };
        let (since, caller) = record.doubt.unwrap_or((now, Caller::Gone));
        let is_anew = mem::take(&mut record.unreached) && caller == Caller::Gone;
        *record.doubt.insert((if is_anew { now } else { since }, caller))
    }

    /// Counts that the transition is in doubt again and returns whether that is the first time since the upstream took
    /// it.
    pub(crate) fn doubt_begins(&mut self, id: &str) -> bool {
        self.with(id, |record| {
            record.doubts = record.doubts.saturating_add(1);
            record.doubts == 1
        })
    }

    /// Returns whether the transition has been in doubt more than once.
    pub(crate) fn doubt_recurs(&self, id: &str) -> bool {
        self.records.get(id).is_some_and(|record| record.doubts > 1)
    }

    /// Begins the doubt of a transition that came from another replica, which may still be calling the upstream.
    pub(crate) fn inherit_doubt(&mut self, id: &str, now: Instant) {
        self.with(id, |record| record.doubt = Some((now, Caller::Elsewhere)));
    }

    /// Notes a failed search. A call of this process that was still on its way may arrive when the upstream is
    /// reachable again, so the doubt counts from the first search that succeeds.
    pub(crate) fn look_failed(&mut self, id: &str) {
        self.with(id, |record| record.unreached = true);
    }

    pub(crate) fn no_longer_in_doubt(&mut self, id: &str) {
        self.with(id, |record| record.doubt = None);
    }

    /// Notes that the upstream's record under the id of the transition matches the request.
    pub(crate) fn note_read_back(&mut self, id: &str) {
        self.with(id, |record| record.read_back = true);
    }

    pub(crate) fn is_read_back(&self, id: &str) -> bool {
        self.records.get(id).is_some_and(|record| record.read_back)
    }

    /// Notes that the upstream took the request to end the transition early.
    pub(crate) fn withdrawal_heard(&mut self, id: &str, now: Instant) {
        self.with(id, |record| record.withdrawal_heard = Some(now));
    }

    /// Returns whether the upstream is to be asked to end the transition early, for the first time or again.
    pub(crate) fn withdrawal_is_due(&self, id: &str, now: Instant) -> bool {
        let heard = self.records.get(id).and_then(|record| record.withdrawal_heard);
        heard.is_none_or(|heard| now.saturating_duration_since(heard) >= WITHDRAW_AGAIN)
    }

    /// Notes that the upstream took the transition, and so may take others of the same batch.
    pub(crate) fn taken(&mut self, transition: &PowerTransition, now: Instant) {
        let ids = transition.members.iter().map(|member| &member.id);
        self.refusals.take(ids, now);
        if let Some(batch) = self.records.get(transition.id.as_str()).and_then(|record| record.batch.clone())
        {
            batch.lock().take();
        }
    }

    /// Notes that the upstream refused the transition. Returns the next step.
    pub(crate) fn refused(&mut self, transition: &PowerTransition, now: Instant) -> RefusalStep {
        let batch = self.with(&transition.id, |record| Arc::clone(record.batch.get_or_insert_default()));
        let mut batch = batch.lock();
        let refusals = &mut self.refusals;
        let members = &transition.members;
        refusals.refuse(members.iter().map(|member| (&member.id, member.generation)), now);
        let Some(first) = members.first() else { return RefusalStep::BackOff };
        let witness = refusals.witness(&first.id, batch.is_taken(), now);
        let step = batch.next_step(members.len(), witness, now);
        if let RefusalStep::Probe(_) = step {
            // Each probe is judged by calls that the upstream takes from now on, unless its node was blamed before.
            refusals.forget_suspicions(members.iter().map(|member| &member.id));
        }
        if step == RefusalStep::SetAside {
            for member in members {
                refusals.blame(&member.id, batch.is_taken(), now);
            }
        }
        step
    }

    /// Recalls which nodes an earlier term has blamed for refusals that the upstream has not taken since, and in which
    /// generation. `recorded` are all transitions, the oldest first.
    pub(crate) fn recall_refusals(&mut self, recorded: &[Arc<PowerTransition>]) {
        for transition in recorded {
            if transition.delivery == TransitionDelivery::Refused {
                for member in &transition.members {
                    self.refusals.recall_blame(member.id.clone(), member.generation);
                }
            } else if transition.accepted_at.is_some() {
                self.refusals.forget(transition.members.iter().map(|member| &member.id));
            }
        }
    }

    /// Forgets the refusals of a node that is gone.
    pub(crate) fn forget_refusals(&mut self, node: &ComponentId) {
        self.refusals.forget([&node.as_str().to_owned()]);
    }

    /// Returns the number of the next split of a transition into probes and others.
    pub(crate) fn next_round(&mut self) -> u32 {
        self.refusals.next_round()
    }
}

#[cfg(test)]
mod tests;
