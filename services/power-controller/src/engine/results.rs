//! Spreads the results of nodes that polls bring.
//!
//! Answers that arrive at the same time are processed together, with one report and one write. A result is reported
//! before it is recorded, so that a crash in between repeats the report.

use std::collections::HashSet;

use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery},
    core::{
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};
use proto::{component::ActionReport, power::PowerState};

use super::{
    EngineCommand, EngineEvent, EventContext, HolderPurpose, HolderSearch, PointInTime, PollAnswer,
    PowerEngine, TransitionId, UpstreamCall, settle::EndingCommands,
};
use crate::{
    convert,
    driver::{DriverFailure, UpstreamTransition, progress::TransitionProgress},
    outcome::{self, NewResults},
};

/// Knowledge gained from a poll of a transition.
#[derive(Debug)]
pub(crate) struct PolledTransition {
    transition: PowerTransition,
    asked_at: Timestamp,
    /// Whether the action may have ended any time before this term.
    is_inherited: bool,
    results: NewResults,
    ended: bool,
}

/// Power of a node that the result of an action shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownPower {
    /// State for the generation of the action.
    pub(crate) state: PowerState,
    /// Whether the result may be of any time since the action began: then the node had the power once, and readings from
    /// before the action are older.
    pub(crate) is_inherited: bool,
}

impl PowerEngine {
    /// Processes answers to polls. Each result is reported before it is recorded, so that a crash in between repeats the
    /// report.
    pub(super) fn hear(&mut self, answers: Vec<PollAnswer>, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let mut polled = Vec::new();
        let mut commands = Vec::new();
        for PollAnswer { id, asked_at, answer, .. } in answers {
            let accepted = self.transitions.in_state(&id, TransitionDelivery::Accepted).cloned();
            let Some(transition) = accepted else { continue };
            match answer {
                Ok(progress) => {
                    let (one, report) = self.learn(transition, progress, asked_at, seen);
                    polled.push(one);
                    commands.push(EngineCommand::Report(report));
                }
                Err(failure) => commands.extend(self.unheard(&transition, &failure, seen.now)),
            }
        }
        let nodes: HashSet<_> = polled.iter().flat_map(|one| &one.results.reserved).cloned().collect();
        if nodes.is_empty() {
            commands.extend(self.spread(polled, &[], seen));
        } else {
            // One list serves all polls.
            let purpose = HolderPurpose::Learn(polled);
            commands.push(EngineCommand::Ask(UpstreamCall::Holders(HolderSearch { nodes, purpose })));
        }
        commands
    }

    fn learn(
        &mut self,
        mut transition: PowerTransition,
        progress: TransitionProgress,
        asked_at: Timestamp,
        seen: EventContext<'_>,
    ) -> (PolledTransition, Vec<ActionReport>) {
        self.transitions.heard(&transition.id);
        let is_inherited = self.transitions.take_inherited(&transition.id);
        let report = match transition.withdrawn_at {
            None => self.clear_silence(&transition, seen),
            Some(_) => Vec::new(),
        };
        let ended = progress.ended;
        let results = outcome::learn(&mut transition, progress);
        (PolledTransition { transition, asked_at, is_inherited, results, ended }, report)
    }

    /// Distributes the outcomes of members, to the registry, the nodes and the task that reads power, and then records
    /// them. `holders`: transitions of the upstream that hold members.
    pub(super) fn spread(
        &mut self,
        mut polled: Vec<PolledTransition>,
        holders: &[UpstreamTransition],
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        polled.retain(|one| {
            self.transitions.in_state(&one.transition.id, TransitionDelivery::Accepted).is_some()
        });
        polled.iter_mut().for_each(|one| one.note_holders(holders));
        let mut reports = Vec::new();
        let mut shown = Vec::new();
        let mut read = Vec::new();
        for one in &polled {
            reports.extend(one.reports());
            shown.extend(one.shown());
            self.nodes.fail(&one.results.failed, seen.now.at);
            for id in
                convert::component_ids(&one.results.refused).chain(convert::component_ids(&one.results.held))
            {
                self.nodes.cancel(&id);
            }
            read.extend(convert::component_ids(&one.results.failed));
            read.extend(convert::component_ids(&one.results.refused));
            if one.is_inherited {
                read.extend(convert::component_ids(&one.results.succeeded));
            }
        }
        let mut commands =
            vec![EngineCommand::Report(reports), EngineCommand::Read(read), EngineCommand::ShowPower(shown)];
        commands.extend(self.record(polled, seen));
        commands
    }

    /// Records the results of polls in one write, and schedules the next polls unless a transition is over.
    fn record(&mut self, polled: Vec<PolledTransition>, seen: EventContext<'_>) -> Vec<EngineCommand> {
        let mut reports = Vec::new();
        let mut put = Vec::new();
        let mut recorded = Vec::new();
        let mut polls = Vec::new();
        let mut ending = EndingCommands::default();
        for PolledTransition { transition, results, ended, .. } in polled {
            if ended {
                reports.extend(self.clear_silence(&transition, seen));
                ending.join(self.end_by_upstream(transition, "", seen));
                continue;
            }
            recorded.push(transition.id.as_str().into());
            self.nodes.follow(&transition, true);
            polls.push(self.poll_later(&transition, seen.now));
            if !results.is_empty() {
                self.transitions.put(transition.clone());
                put.push(transition);
            }
        }
        let mut commands = ending.with(reports, put);
        commands.push(EngineCommand::Tell(EngineEvent::PollsRecorded(recorded)));
        commands.extend(polls);
        commands
    }

    /// Handles a failed poll. Until polls succeed again, the power of the nodes is read.
    fn unheard(
        &mut self,
        transition: &PowerTransition,
        failure: &DriverFailure,
        now: PointInTime,
    ) -> [EngineCommand; 3] {
        let failures = self.transitions.unheard(&transition.id, &failure.to_string());
        let first = if failures == 1 {
            let id = &transition.id;
            tracing::warn!(transition = id, error = %failure, "cannot follow a transition, trying again");
            self.nodes.follow(transition, false);
            EngineCommand::Read(convert::component_ids(&transition.members).collect())
        } else {
            self.show_unresolved(transition, &Trouble::no_results_from(failure), now)
        };
        let at = self.polls.turn(transition, now);
        let ids: Vec<TransitionId> = vec![transition.id.as_str().into()];
        [
            first,
            EngineCommand::Tell(EngineEvent::PollsRecorded(ids.clone())),
            EngineCommand::Poll { ids, at, failures },
        ]
    }

    /// Shows a trouble on the members without a result, unless they show it already, or began to show another one only
    /// a moment ago: a single failure is not worth thousands of records.
    pub(super) fn show_unresolved(
        &mut self,
        transition: &PowerTransition,
        trouble: &Trouble,
        now: PointInTime,
    ) -> EngineCommand {
        EngineCommand::Report(match self.transitions.show(&transition.id, trouble, now.instant) {
            true => reports_of_unresolved(transition, Some(trouble), |_| true),
            false => Vec::new(),
        })
    }

    /// Returns the reports that clear the texts of [`Self::show_unresolved`]. A restart forgets that they were shown, the
    /// components do not.
    pub(super) fn clear_silence(
        &mut self,
        transition: &PowerTransition,
        seen: EventContext<'_>,
    ) -> Vec<ActionReport> {
        let shows = |id: &str| {
            let component = seen.facts.component(id);
            component.is_some_and(|one| one.power_trouble_kind() == Some(TroubleKind::NoResults))
        };
        let shown = self.transitions.take_shown(&transition.id);
        let noted = shown.is_some_and(|shown| shown.kind() == TroubleKind::NoResults);
        reports_of_unresolved(transition, None, |id| noted || shows(id))
    }
}

impl PolledTransition {
    /// Records which of `holders` hold members that the upstream could not reserve. Those members are held, not
    /// refused, even if their holder is unknown: their attempt is made once they are released, or after a pause.
    fn note_holders(&mut self, holders: &[UpstreamTransition]) {
        if self.results.reserved.is_empty() {
            return;
        }
        let Self { transition, results, .. } = self;
        for member in transition.members.iter_mut().filter(|one| results.reserved.contains(&one.id)) {
            let holds =
                |one: &&UpstreamTransition| one.id != transition.upstream_id && one.ids.contains(&member.id);
            if let Some(holder) = holders.iter().find(holds) {
                tracing::info!(node = member.id, holder = holder.id, "node is held by another transition");
                member.held_by.clone_from(&holder.id);
                member.reservations = 0;
            } else if member.reservations == 1 {
                tracing::info!(node = member.id, "node is held by somebody unknown");
            }
        }
        results.held = transition.members.iter().filter(|member| outcome::is_held(member)).cloned().collect();
        let held: HashSet<_> = results.held.iter().map(|member| &member.id).collect();
        results.refused.retain(|member| !held.contains(&member.id));
    }

    /// Returns the reports about members without the effect, and the ends of waits.
    fn reports(&self) -> Vec<ActionReport> {
        let Self { transition, results, .. } = self;
        for member in &results.failed {
            tracing::debug!(
                transition = transition.id,
                node = member.id,
                error = member.error,
                "task failed"
            );
        }
        // A withdrawn member has not failed, because its next action is due already. A shutdown that never reached its
        // node has failed: otherwise the node would be forced off without having been asked.
        let ended = results.failed.iter().filter(|member| {
            transition.withdrawn_at.is_none()
                || convert::is_unasked_shutdown(transition, member, &results.asked)
        });
        let mut reports: Vec<_> = convert::ended_without_effect(transition, ended, &results.asked).collect();
        let refused = results.refused.iter().map(|member| (member, member.error.as_str()));
        reports.extend(convert::failures(transition, refused));
        reports.extend(results.freed.iter().map(|member| convert::told(transition, member, None)));
        reports.extend(results.held.iter().map(|member| {
            convert::told(transition, member, Some(&convert::waiting_for_holder(&member.held_by)))
        }));
        reports
    }

    /// Returns the power that results show.
    fn shown(&self) -> impl Iterator<Item = ShownPower> {
        let Self { transition, results, asked_at, is_inherited, .. } = self;
        let at = if *is_inherited { convert::begun_at(transition) } else { *asked_at };
        let succeeded = results.succeeded.iter();
        let states = succeeded.filter_map(move |member| convert::shown(transition.action?, member, at));
        states.map(|state| ShownPower { state, is_inherited: *is_inherited })
    }
}

/// Returns reports about members without a result.
fn reports_of_unresolved(
    transition: &PowerTransition,
    trouble: Option<&Trouble>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<ActionReport> {
    let members = transition.members.iter();
    let unresolved = members.filter(|member| outcome::is_unresolved(member) && wanted(&member.id));
    unresolved.map(|member| convert::told(transition, member, trouble)).collect()
}
