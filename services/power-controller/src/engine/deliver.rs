//! Carries out the recorded transitions.
//!
//! The upstream cannot distinguish a repeated call from a new one, so the order is fixed: the record is durable before
//! the registry counts the attempt, the count is durable before the upstream is called, and a lost answer leaves the
//! transition unknown until `resolve` has searched the upstream. A restart at any point continues from the record.

use std::{
    collections::HashSet,
    mem,
    time::{Duration, Instant},
};

use domain::{
    boot::{
        bos::options::Options,
        power::transition::{PowerTransition, TransitionDelivery, TransitionMember},
    },
    core::{id::ComponentId, refusal},
};
use proto::component::ActionReport;

use super::{
    BEHIND, EngineCommand, EventContext, ForeignListing, PowerEngine, StepPause, TransitionId, UpstreamCall,
    plan::{self, AttemptStep},
    step_after, step_now,
};
use crate::{convert, driver::DriverFailure, journal::JournalChanges};

/// Longest time between the question whether other clients' transitions are in the way and the call. It is only that long
/// if the registry or the database are slow.
const LOOK_LASTS: Duration = Duration::from_secs(10);

/// Prepared transitions, sorted by the next step of their members.
#[derive(Debug, Default)]
pub(crate) struct AttemptAnnouncement {
    /// Time at which the upstream was asked for transitions of other clients; `None`: it lists none.
    looked_at: Option<Instant>,
    /// Transitions as they were before they were sorted.
    before: Vec<PowerTransition>,
    due: Vec<PowerTransition>,
    /// Transitions that can be sent only after something has changed.
    later: Vec<PowerTransition>,
    /// Components whose attempt is dropped.
    gone: Vec<ComponentId>,
}

impl AttemptAnnouncement {
    /// Returns the transitions as they were before and after they were sorted.
    fn all(&self) -> impl Iterator<Item = &PowerTransition> {
        self.before.iter().chain(&self.due).chain(&self.later)
    }
}

impl PowerEngine {
    /// Takes open transitions without an answer of the upstream a step further.
    pub(super) fn step(&mut self, ids: &[TransitionId], seen: EventContext<'_>) -> Vec<EngineCommand> {
        let mut prepared = Vec::new();
        let mut in_doubt = Vec::new();
        let mut abandoned = Vec::new();
        let mut commands = Vec::new();
        for id in ids {
            let Some(transition) = self.transitions.get(id) else { continue };
            match transition.delivery {
                // The answer of the registry continues it.
                TransitionDelivery::Prepared if self.transitions.is_announced(id) => {}
                TransitionDelivery::Prepared | TransitionDelivery::Unknown
                    if transition.abandoned_at.is_some() =>
                {
                    abandoned.push(id);
                }
                TransitionDelivery::Prepared => match known_holders(transition) {
                    holders if holders.is_empty() => prepared.push(transition.clone()),
                    holders => {
                        commands
                            .push(EngineCommand::Ask(UpstreamCall::PollHolders { id: id.clone(), holders }));
                    }
                },
                TransitionDelivery::Unknown => in_doubt.push(id.clone()),
                TransitionDelivery::Unspecified
                | TransitionDelivery::Sent
                | TransitionDelivery::Accepted
                | TransitionDelivery::Refused
                | TransitionDelivery::Finished => {}
            }
        }
        commands.extend(self.search(in_doubt, seen));
        commands.extend(self.look_or_announce(prepared, seen));
        abandoned.into_iter().for_each(|id| commands.extend(self.abandon(id, seen)));
        commands
    }

    /// Announces transitions, once the upstream has said which of their nodes transitions of other clients hold.
    fn look_or_announce(
        &mut self,
        prepared: Vec<PowerTransition>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        if prepared.is_empty() || !self.upstream.lists {
            return self.announce(prepared, None, seen);
        }
        let ids: Vec<TransitionId> = prepared.iter().map(|one| one.id.as_str().into()).collect();
        if self.foreign.listing() == ForeignListing::Awaited {
            return vec![EngineCommand::Step { ids, pause: StepPause::Fixed(BEHIND) }];
        }
        ids.iter().for_each(|id| self.transitions.begin_announcement(id));
        vec![EngineCommand::Ask(UpstreamCall::Look { ids, asked_at: seen.now.instant })]
    }

    /// Continues transitions after the question which of their nodes transitions of other clients hold. Nothing is sent
    /// without an answer, or while the nodes of an open transition are not known.
    pub(super) fn looked(
        &mut self,
        ids: &[TransitionId],
        asked_at: Instant,
        outcome: Result<(), DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        ids.iter().for_each(|id| self.transitions.end_announcement(id));
        let prepared =
            ids.iter().filter_map(|id| self.transitions.in_state(id, TransitionDelivery::Prepared));
        let (abandoned, prepared): (Vec<_>, Vec<_>) =
            prepared.cloned().partition(|transition| transition.abandoned_at.is_some());
        let error = outcome.err().map(|failure| failure.to_string()).or_else(|| self.foreign.nameless());
        let mut commands = Vec::new();
        match error {
            None => commands.extend(self.announce(prepared, Some(asked_at), seen)),
            Some(error) => {
                for transition in prepared {
                    self.nodes.begin(&transition);
                    let failures = self.transitions.failed(&transition.id);
                    commands.extend(self.wait(transition, &error, StepPause::Backoff { failures }, seen));
                }
            }
        }
        abandoned.iter().for_each(|transition| commands.extend(self.abandon(&transition.id, seen)));
        commands
    }

    /// Reports to the registry that attempts begin. Members whose component has moved on are dropped.
    fn announce(
        &mut self,
        prepared: Vec<PowerTransition>,
        looked_at: Option<Instant>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        if prepared.is_empty() {
            return Vec::new();
        }
        let Some(options) = seen.facts.options() else {
            return prepared.iter().map(|transition| self.postpone(&transition.id)).collect();
        };
        let (mut announcement, mut reports) = self.sort(prepared, &options, seen);
        announcement.looked_at = looked_at;
        // Effects are noted before the report, which a registry with a newer generation refuses: a reader of the newer
        // generation must see these effects too.
        for transition in announcement.all() {
            self.transitions.begin_announcement(&transition.id);
        }
        for transition in &announcement.due {
            self.nodes.begin(transition);
            reports.extend(self.beginnings(transition));
        }
        vec![EngineCommand::Announce { reports, announcement }]
    }

    /// Marks transitions as sent and requests them from the upstream. Members with a `stale` report are dropped, and a
    /// transition that an operator abandoned meanwhile ends.
    pub(super) fn announced(
        &mut self,
        announcement: AttemptAnnouncement,
        stale: &HashSet<String>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        announcement.all().for_each(|transition| self.transitions.end_announcement(&transition.id));
        let AttemptAnnouncement { looked_at, before, due, mut later, mut gone } = announcement;
        let (abandoned, mut due): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|transition| self.transitions.is_abandoned(&transition.id));
        for transition in &mut due {
            let members = mem::take(&mut transition.members);
            let (dropped, kept): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|member| stale.contains(&member.id));
            transition.members = kept;
            gone.extend(convert::component_ids(&dropped));
        }
        due.retain(|transition| !transition.members.is_empty());
        // Another client may have begun a transition meanwhile, which another look has shown or has yet to show.
        let is_old = looked_at.is_some_and(|at| seen.now.instant.saturating_duration_since(at) >= LOOK_LASTS);
        let is_held = |member: &TransitionMember| self.nodes.is_held_by_another(&member.id);
        later.extend(due.extract_if(.., |transition| is_old || transition.members.iter().any(is_held)));
        for transition in &mut due {
            transition.delivery = TransitionDelivery::Sent;
            transition.sent_at = Some(seen.now.at);
        }
        let goes_on =
            |id: &str| due.iter().chain(&later).chain(&abandoned).any(|transition| transition.id == id);
        let delete: Vec<_> = before.iter().map(|one| one.id.clone()).filter(|id| !goes_on(id)).collect();
        delete.iter().for_each(|id| self.transitions.forget(id));
        let changed = later.iter().filter(|transition| !before.contains(transition));
        let put: Vec<_> = due.iter().chain(changed).cloned().collect();
        put.iter().cloned().for_each(|transition| self.transitions.put(transition));
        let mut commands = vec![EngineCommand::Write(JournalChanges { put, delete })];
        commands.extend(self.withdraw(gone));
        commands.extend(later.iter().map(|transition| self.postpone(&transition.id)));
        due.into_iter().for_each(|transition| commands.extend(self.call(transition, seen)));
        for transition in &abandoned {
            // The records of these attempts may not have arrived here yet.
            let counted = transition.members.iter().filter(|member| !stale.contains(&member.id));
            let reports = counted.map(|member| convert::unsent(transition, member)).collect();
            commands.push(EngineCommand::Report(reports));
            commands.extend(self.abandon(&transition.id, seen));
        }
        commands
    }

    fn call(&mut self, transition: PowerTransition, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let Some(action) = transition.action else {
            return self.refused(transition, "the transition has no action", seen);
        };
        let nodes = transition.members.into_iter().map(|member| member.id).collect();
        vec![EngineCommand::Ask(UpstreamCall::Start { id: transition.id.into(), action, nodes })]
    }

    /// Sorts the members of transitions, and returns the reports that clear the waits shown by members that leave.
    /// Members that have to wait become a transition of their own, so that the others do not wait with them.
    fn sort(
        &mut self,
        prepared: Vec<PowerTransition>,
        options: &Options,
        seen: EventContext<'_>,
    ) -> (AttemptAnnouncement, Vec<ActionReport>) {
        let mut sorted = AttemptAnnouncement { before: prepared.clone(), ..AttemptAnnouncement::default() };
        let mut clearances = Vec::new();
        for mut transition in prepared {
            let shows_error = self.transitions.shown(&transition.id).is_some();
            let mut due = Vec::new();
            let mut later = Vec::new();
            for member in mem::take(&mut transition.members) {
                match self.attempt_step(&transition, &member, options, seen) {
                    AttemptStep::Due => due.push(member),
                    AttemptStep::Later => later.push(member),
                    AttemptStep::Gone => {
                        sorted.gone.extend(ComponentId::parse(&member.id));
                        if shows_error || shows_wait(&transition, &member, seen) {
                            clearances.push(convert::told(&transition, &member, None));
                        }
                    }
                }
            }
            if !due.is_empty() && !later.is_empty() {
                let apart = PowerTransition { id: convert::new_id(), members: later, ..transition.clone() };
                self.transitions.hand_down(&transition.id, [apart.clone()]);
                sorted.later.push(apart);
                sorted.due.push(PowerTransition { members: due, ..transition });
            } else if !later.is_empty() {
                sorted.later.push(PowerTransition { members: later, ..transition });
            } else if !due.is_empty() {
                sorted.due.push(PowerTransition { members: due, ..transition });
            }
        }
        (sorted, clearances)
    }

    fn attempt_step(
        &self,
        transition: &PowerTransition,
        member: &TransitionMember,
        options: &Options,
        seen: EventContext<'_>,
    ) -> AttemptStep {
        let (Some(action), Some(component)) = (transition.action, seen.facts.component(&member.id)) else {
            return AttemptStep::Gone;
        };
        plan::attempt_step(&component, &self.power(&component, seen), action, member, options, seen.now.at)
    }

    /// Returns the reports that the attempts of a transition begin. An error that the members show is repeated, because
    /// a report without it would clear it.
    fn beginnings(&self, transition: &PowerTransition) -> Vec<ActionReport> {
        convert::reports(transition, self.transitions.shown(&transition.id).as_ref()).collect()
    }

    /// Continues with the members whose known holders have `ended`. Until then no action is requested for members, and
    /// no attempt is spent.
    pub(super) fn holders_polled(&mut self, id: &str, ended: &HashSet<String>) -> Vec<EngineCommand> {
        let waiting = self.transitions.in_state(id, TransitionDelivery::Prepared).cloned();
        let Some(mut transition) = waiting else { return Vec::new() };
        for member in transition.members.iter_mut().filter(|member| ended.contains(&member.held_by)) {
            member.held_by.clear();
        }
        let members = transition.members.iter().cloned();
        let (held, free): (Vec<_>, Vec<_>) = members.partition(|member| !member.held_by.is_empty());
        if free.is_empty() {
            vec![step_after(id, refusal::pause(self.transitions.failed(id)))]
        } else if held.is_empty() {
            vec![self.put(transition), step_now(vec![id.into()])]
        } else {
            self.split(transition, vec![free], held, "some members are not held any more")
        }
    }
}

/// Returns whether the component shows that this attempt waits for the upstream. A restart forgets that it was shown,
/// the component does not.
pub(super) fn shows_wait(
    transition: &PowerTransition,
    member: &TransitionMember,
    seen: EventContext<'_>,
) -> bool {
    let (Some(action), Some(component)) = (transition.action, seen.facts.component(&member.id)) else {
        return false;
    };
    component.attempts(action) == member.attempt && component.waits_for_power_upstream()
}

/// Returns the known transitions of the upstream that hold members and have not ended as far as is known.
fn known_holders(transition: &PowerTransition) -> HashSet<String> {
    let holders = transition.members.iter().map(|member| member.held_by.clone());
    holders.filter(|holder| !holder.is_empty()).collect()
}
