//! Follows the transitions that the upstream took, until it has ended them.
//!
//! The result of a node is known long before the transition ends, and is used at once. But until the end the upstream
//! holds all nodes of the transition and refuses every other action on them. A transition whose time is over is
//! withdrawn, and is still open then: only the upstream ends it, or an operator abandons it.

use domain::{
    boot::{
        component::Action,
        power::{
            self,
            transition::{PowerTransition, TransitionDelivery},
        },
    },
    core::{clock_offset::ClockOffset, time::Timestamp},
};

use super::{
    EngineCommand, EventContext, PointInTime, PollAnswer, PowerEngine, UpstreamCall,
    plan::{self, ReadBack, SearchWindow},
};
use crate::{convert, driver::DriverFailure, outcome};

impl PowerEngine {
    /// Schedules the next poll of a transition.
    pub(super) fn poll_later(&mut self, transition: &PowerTransition, now: PointInTime) -> EngineCommand {
        let at = self.polls.turn(transition, now);
        EngineCommand::Poll { ids: vec![transition.id.as_str().into()], at, failures: 0 }
    }

    /// Polls a transition that the upstream works on, or withdraws it first.
    pub(super) fn poll_due(&mut self, id: &str, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let accepted = self.transitions.in_state(id, TransitionDelivery::Accepted).cloned();
        let Some(transition) = accepted else { return Vec::new() };
        if !self.transitions.begin_poll(id) {
            let at = seen.now.instant + self.polls.patience();
            return vec![EngineCommand::Poll { ids: vec![id.into()], at, failures: 0 }];
        }
        if transition.abandoned_at.is_some() {
            return self.abandon(id, seen);
        }
        self.transitions.begin_polls(id);
        // A transition is withdrawn only after it was read back: the upstream's record might be of another transition.
        if self.transitions.is_read_back(id) && self.is_to_be_withdrawn(&transition, seen) {
            return self.withdraw_upstream(transition, seen);
        }
        vec![EngineCommand::poll(&transition)]
    }

    /// Returns whether the upstream is to be asked now to end the transition.
    fn is_to_be_withdrawn(&self, transition: &PowerTransition, seen: EventContext<'_>) -> bool {
        self.transitions.withdrawal_is_due(&transition.id, seen.now.instant)
            && (transition.withdrawn_at.is_some() || self.time_is_over(transition, seen))
    }

    /// Returns whether the transition has outlasted its time, or one of its nodes is to be forced off.
    fn time_is_over(&self, transition: &PowerTransition, seen: EventContext<'_>) -> bool {
        let options = seen.options_in_force();
        let now = seen.now.at;
        power::outlasts(convert::begun_at(transition), self.upstream.task_deadline, now)
            || transition.action == Some(Action::PoweringOffGracefully)
                && transition.members.iter().any(|member| {
                    seen.facts.component(&member.id).is_some_and(|component| {
                        plan::is_overdue(&component, &seen.facts.reading(&component), member, &options, now)
                    })
                })
    }

    /// Asks the upstream to end the transition. Until the upstream reports the end, the transition is open and no other
    /// action is requested for its nodes, however long that takes.
    fn withdraw_upstream(
        &mut self,
        mut transition: PowerTransition,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let id = transition.id.clone();
        let upstream_id = transition.upstream_id.clone();
        let mut commands = Vec::new();
        if transition.withdrawn_at.is_none() {
            tracing::warn!(transition = id, upstream_id, "transition outlasts its time, withdrawing it");
            transition.withdrawn_at = Some(seen.now.at);
            commands.push(self.put(transition.clone()));
            // It is shown once, and at once: an earlier text of the same transition does not keep it away.
            self.transitions.take_shown(&id);
            let trouble = convert::waiting_for_end(&transition, self.upstream.aborts);
            commands.push(self.show_unresolved(&transition, &trouble, seen.now));
        }
        commands.push(EngineCommand::Ask(UpstreamCall::Withdraw { id: id.into(), upstream_id }));
        commands
    }

    /// Polls a transition that the upstream was asked to end.
    pub(super) fn withdrawn(
        &mut self,
        id: &str,
        answer: &Result<(), DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let Some(transition) = self.transitions.get(id).cloned() else { return Vec::new() };
        let mut commands = Vec::new();
        match answer {
            Ok(()) => {
                if let Some(failures) = self.withdrawals.ends() {
                    tracing::info!(failures, "transitions can be withdrawn again");
                }
                self.transitions.withdrawal_heard(id, seen.now.instant);
            }
            Err(failure) => {
                let upstream_id = &transition.upstream_id;
                if self.withdrawals.begins() {
                    tracing::warn!(transition = id, upstream_id, %failure, "cannot withdraw the transition");
                } else {
                    tracing::debug!(transition = id, upstream_id, %failure, "still cannot withdraw the transition");
                }
                let trouble = convert::not_withdrawn(&transition, failure);
                commands.push(self.show_unresolved(&transition, &trouble, seen.now));
                if !may_be_asked_again(failure) {
                    self.transitions.withdrawal_heard(id, seen.now.instant);
                }
            }
        }
        commands.push(EngineCommand::poll(&transition));
        commands
    }

    /// Compares the first answers about a transition with the request, and keeps the answer until others have arrived.
    pub(super) fn polled(&mut self, mut answer: PollAnswer, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let accepted = self.transitions.in_state(&answer.id, TransitionDelivery::Accepted).cloned();
        let Some(transition) = accepted else { return Vec::new() };
        if let Ok(progress) = &mut answer.answer
            && !self.transitions.is_read_back(&answer.id)
        {
            match plan::read_back(&transition, &progress.record, &taken_within(&transition, answer.clock)) {
                ReadBack::Same => self.transitions.note_read_back(&answer.id),
                ReadBack::Unclear => {
                    progress.tasks.clear();
                    // Action and time are right, and a transition that never begins has to be withdrawn too.
                    if self.time_is_over(&transition, seen) {
                        self.transitions.note_read_back(&answer.id);
                    }
                }
                ReadBack::Other => return self.distrust(transition, "which is another one", seen),
                ReadBack::Missing => return self.distrust(transition, "which it does not know", seen),
            }
        }
        let mut commands = Vec::new();
        if is_turn(&transition, &answer) {
            let ids = self.transitions.sent_with(&transition, self.polls.patience());
            commands.push(EngineCommand::Poll { ids, at: seen.now.instant, failures: 0 });
        }
        commands.push(EngineCommand::Collect(answer));
        commands
    }

    /// Handles an id under which the upstream has another transition, or none: an answer went to the wrong caller, is
    /// wrong, or the upstream lost its records. Our transition is in doubt again, and another one is not touched.
    fn distrust(
        &mut self,
        transition: PowerTransition,
        finding: &str,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let id = &transition.id;
        let upstream_id = &transition.upstream_id;
        tracing::warn!(
            transition = id,
            upstream_id,
            finding,
            "the upstream gave a wrong id, looking for the right one"
        );
        let error =
            format!("the record of it: the upstream answered with transition {upstream_id}, {finding}");
        self.transitions.end_polls(id);
        let nameless = PowerTransition { upstream_id: String::new(), ..transition };
        self.nodes.follow(&nameless, false);
        self.in_doubt(&nameless, &error, seen)
    }
}

/// Returns the time in which the upstream took an accepted transition.
fn taken_within(transition: &PowerTransition, clock: Option<ClockOffset>) -> SearchWindow {
    let until = transition.accepted_at.unwrap_or(Timestamp(i64::MAX));
    SearchWindow { from: convert::earliest(transition), ours_until: Some(until), until, clock }
}

/// Returns whether the answer has the first results of the transition, or its end: then others that were sent with the
/// transition have news as well.
fn is_turn(transition: &PowerTransition, answer: &PollAnswer) -> bool {
    let progress = answer.answer.as_ref();
    progress.is_ok_and(|progress| progress.ended || outcome::is_first(transition, progress))
}

/// Returns whether a failed call may succeed later.
fn may_be_asked_again(failure: &DriverFailure) -> bool {
    match failure {
        DriverFailure::Unreachable(_) | DriverFailure::Ambiguous(_) => true,
        DriverFailure::Refused(_) | DriverFailure::TooLarge(_) | DriverFailure::Denied(_) => false,
    }
}
