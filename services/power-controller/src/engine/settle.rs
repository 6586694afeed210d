//! Records the ends of transitions at the upstream.

use std::collections::HashSet;

use domain::{
    boot::{
        component::Action,
        power::{
            PowerObservation,
            transition::{PowerTransition, TransitionDelivery, TransitionMember},
        },
    },
    core::{refusal, trouble::Trouble},
};
use proto::component::ActionReport;

use super::{
    EngineCommand, EngineEvent, EventContext, PointInTime, PowerEngine, TransitionId, attempts,
    deliver::shows_wait, step_after,
};
use crate::{convert, journal::JournalChanges, outcome};

/// Error of a member about which the upstream said nothing until it ended the transition.
const NO_RESULT: &str = "the power upstream ended it without a result";

/// End of transitions, in the order in which it is carried out.
#[derive(Debug, Default)]
pub(super) struct EndingCommands {
    /// Reports that precede the record.
    reports: Vec<ActionReport>,
    /// Transitions that are over, and those that continue them.
    put: Vec<PowerTransition>,
    /// Commands that follow the record.
    after: Vec<EngineCommand>,
}

impl EndingCommands {
    /// Adds another end, to be recorded in the same write.
    pub(super) fn join(&mut self, other: Self) {
        self.reports.extend(other.reports);
        self.put.extend(other.put);
        self.after.extend(other.after);
    }

    /// Returns the commands that report `reports` first, and record `put` in the same write.
    pub(super) fn with(
        mut self,
        mut reports: Vec<ActionReport>,
        put: Vec<PowerTransition>,
    ) -> Vec<EngineCommand> {
        reports.append(&mut self.reports);
        self.put.extend(put);
        let record = EngineCommand::Write(JournalChanges { put: self.put, delete: Vec::new() });
        let mut commands = vec![EngineCommand::Report(reports), record];
        commands.append(&mut self.after);
        commands
    }

    /// Returns the commands in their order.
    pub(super) fn commands(self) -> Vec<EngineCommand> {
        self.with(Vec::new(), Vec::new())
    }
}

impl PowerEngine {
    /// Continues a transition that the upstream took.
    pub(super) fn accepted(
        &mut self,
        transition: PowerTransition,
        upstream_id: String,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let nodes = transition.members.len();
        let action = convert::action_name(transition.action);
        tracing::info!(transition = transition.id, upstream_id, action, nodes, "transition accepted");
        let accepted = PowerTransition {
            delivery: TransitionDelivery::Accepted,
            upstream_id,
            accepted_at: Some(seen.now.at),
            ..convert::with_trouble(transition, None)
        };
        self.transitions.taken(&accepted, seen.now.instant);
        let clear = EngineCommand::Report(match self.shows_error(&accepted, seen) {
            // Only a poll shows whether a reservation is gone.
            true => {
                let free = accepted.members.iter().filter(|member| member.reservations == 0);
                free.map(|member| convert::told(&accepted, member, None)).collect()
            }
            false => Vec::new(),
        });
        if !self.upstream.follows {
            self.nodes.accepted(&accepted, seen.now.at);
            let finished = PowerTransition { delivery: TransitionDelivery::Finished, ..accepted };
            let mut commands = vec![clear];
            commands.extend(self.finish(finished, seen.now).commands());
            return commands;
        }
        self.transitions.begin_anew(accepted.clone());
        self.nodes.follow(&accepted, true);
        let id = accepted.id.as_str().into();
        // Old errors are cleared before the first poll; otherwise the clear could erase a new failure.
        vec![EngineCommand::put(accepted), clear, EngineCommand::Tell(EngineEvent::Followed(id))]
    }

    /// Begins to poll a transition whose acceptance is on record.
    pub(super) fn followed(&mut self, id: &str, now: PointInTime) -> Vec<EngineCommand> {
        self.transitions.begin_polls(id);
        let transition = self.transitions.get(id).cloned();
        transition.map(|transition| self.poll_later(&transition, now)).into_iter().collect()
    }

    /// Returns whether a member still shows that the upstream was not reached. A restart forgets that it was shown, the
    /// component does not.
    fn shows_error(&self, transition: &PowerTransition, seen: EventContext<'_>) -> bool {
        self.transitions.shown(&transition.id).is_some()
            || transition.members.iter().any(|member| {
                let component = seen.facts.component(&member.id);
                component.is_some_and(|component| component.power.trouble.is_some())
            })
    }

    /// Ends a transition that the upstream refuses. The error is reported before the refusal is recorded, so that a
    /// recorded refusal implies a reported one.
    pub(super) fn refused(
        &mut self,
        transition: PowerTransition,
        error: &str,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let nodes = transition.members.len();
        tracing::warn!(transition = transition.id, error, nodes, "transition refused");
        let failed = transition.members.iter().map(|member| (member, error));
        let failures = convert::failures(&transition, failed);
        convert::component_ids(&transition.members).for_each(|id| self.nodes.cancel(&id));
        let refused = convert::with_trouble(transition, Trouble::failed(error).as_ref());
        let refused = PowerTransition { delivery: TransitionDelivery::Refused, ..refused };
        self.finish(refused, seen.now).with(failures, Vec::new())
    }

    /// Ends a transition. The power of members without a result shows once it was read again.
    pub(super) fn end(
        &mut self,
        transition: PowerTransition,
        error: &str,
        seen: EventContext<'_>,
    ) -> EndingCommands {
        let unresolved = transition.members.iter().filter(|member| outcome::is_unresolved(member)).count();
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, unresolved, "transition finished");
        // Held members continue their wait in another transition.
        let over = transition.members.iter().filter(|member| !outcome::is_held(member));
        let over = over.filter(|member| shows_wait(&transition, member, seen));
        let reports = over.map(|member| convert::told(&transition, member, None)).collect();
        self.nodes.ended(&transition, seen.now.at);
        self.nodes.leave_open(&transition, seen.now);
        let finished = convert::with_trouble(transition, Trouble::failed(error).as_ref());
        let finished = PowerTransition { delivery: TransitionDelivery::Finished, ..finished };
        EndingCommands { reports, ..self.finish(finished, seen.now) }
    }

    /// Ends a transition that is over at the upstream, or unknown there for the reason `error`. A shutdown without a result
    /// has failed if the node is not off: otherwise a node would be forced off that perhaps nobody has asked. An upstream that
    /// keeps no records has asked every node before it took the transition.
    pub(super) fn end_by_upstream(
        &mut self,
        transition: PowerTransition,
        error: &str,
        seen: EventContext<'_>,
    ) -> EndingCommands {
        let may_be_lost = self.upstream.lists && transition.action == Some(Action::PoweringOffGracefully);
        let unasked = transition
            .members
            .iter()
            .filter(|member| may_be_lost && outcome::is_unresolved(member) && !is_off(member, seen));
        let words = if error.is_empty() { NO_RESULT } else { error };
        let failures = convert::failures(&transition, unasked.map(|member| (member, words)));
        let mut ending = self.end(transition, error, seen);
        ending.reports.extend(failures);
        ending
    }

    /// Ends a transition that an operator has abandoned. Only new readings show the power of its nodes. Attempts that are
    /// not known to have been sent have failed: a node that nobody asked to shut down is not forced off.
    pub(super) fn abandon(&mut self, id: &str, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let Some(mut transition) = self.transitions.get(id).cloned() else { return Vec::new() };
        let upstream_id = transition.upstream_id.clone();
        tracing::warn!(transition = transition.id, upstream_id, "transition abandoned");
        let mut reports = self.clear_silence(&transition, seen);
        let is_sent = transition.delivery == TransitionDelivery::Accepted;
        if !is_sent {
            let counted = transition.members.iter().filter(|member| is_counted(&transition, member, seen));
            reports.extend(counted.map(|member| convert::unsent(&transition, member)));
        }
        let mut commands = vec![EngineCommand::Report(reports)];
        if !upstream_id.is_empty() {
            commands.push(EngineCommand::GiveUp(upstream_id));
        }
        // No end of a holder is waited for any more.
        for member in &mut transition.members {
            member.held_by.clear();
            member.reservations = 0;
        }
        let mut ending = self.end(transition, "an operator gave it up", seen);
        ending.reports.retain(|_| is_sent);
        commands.extend(ending.commands());
        commands
    }

    /// Records that a transition is over. Its members may get actions again, and a newer generation of them may have
    /// waited for that. Members that another transition held continue in a transition of their own, with the same
    /// attempts.
    fn finish(&mut self, transition: PowerTransition, now: PointInTime) -> EndingCommands {
        let held = convert::continuations(&transition, now.at);
        let goes_on: HashSet<_> = held.iter().flat_map(attempts).collect();
        let over = attempts(&transition).filter(|attempt| !goes_on.contains(attempt));
        let mut ids = Vec::new();
        for (id, attempt) in over {
            self.nodes.close(&id, attempt, transition.accepted_at.is_some());
            ids.push(id);
        }
        self.transitions.forget(&transition.id);
        let put = std::iter::once(transition).chain(held.clone()).collect();
        let mut after = Vec::from(Self::judge_again(ids));
        after.extend(held.into_iter().map(|held| self.hold(held, now)));
        EndingCommands { reports: Vec::new(), put, after }
    }

    /// Continues a transition whose members are held, after a pause.
    fn hold(&mut self, held: PowerTransition, now: PointInTime) -> EngineCommand {
        let id = TransitionId::from(held.id.as_str());
        let waits = held.trouble.clone();
        let reservations = held.members.iter().map(|member| member.reservations).max();
        self.transitions.put(held);
        if let Some(waits) = waits {
            self.transitions.show(&id, &waits, now.instant);
        }
        let pause = match reservations {
            Some(0) | None => refusal::pause(self.transitions.failed(&id)),
            Some(times) => refusal::pause_for_reservation(times),
        };
        step_after(&id, pause)
    }
}

/// Returns whether the node of a member was read as off.
fn is_off(member: &TransitionMember, seen: EventContext<'_>) -> bool {
    let component = seen.facts.component(&member.id);
    component.is_some_and(|component| seen.facts.reading(&component) == PowerObservation::Off)
}

/// Returns whether the registry has counted the attempt as the last action on the node.
fn is_counted(transition: &PowerTransition, member: &TransitionMember, seen: EventContext<'_>) -> bool {
    let (Some(action), Some(component)) = (transition.action, seen.facts.component(&member.id)) else {
        return false;
    };
    (component.generation, component.attempts(action)) == (member.generation, member.attempt)
        && component.last_action() == Some(action)
}
