//! Searches the upstream for transitions whose answer was lost.
//!
//! A transition is recognised by its action, its nodes and the time at which the upstream took it, by the upstream's
//! clock as far as that was measured. A transition that began seconds before ours was sent belongs to another client. A
//! transition that began just before is undecidable, since our clock may have been ahead, and so is one that began after
//! our call was over. An upstream that loses its records when it restarts is asked again: that cannot be distinguished from
//! a call that never arrived.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{
    boot::power::{
        self,
        transition::{PowerTransition, TransitionDelivery},
    },
    core::{clock_offset::ClockOffset, refusal, time::Timestamp},
};

use super::{
    EngineCommand, EventContext, HolderPurpose, HolderSearch, PowerEngine, TransitionId, UpstreamCall,
    answers::prepared_again,
    plan::{self, SearchWindow, TransitionEvidence},
    step_after, step_now,
};
use crate::{
    convert,
    driver::{DriverFailure, FoundTransitions, UpstreamSearch, UpstreamTransition},
};

impl PowerEngine {
    /// Searches the upstream for transitions in doubt. A transition that is found was accepted; one that is not found
    /// after a quiet period is sent again as the same attempt; `power::next_look` has the length of the period.
    pub(super) fn search(&mut self, ids: Vec<TransitionId>, seen: EventContext<'_>) -> Option<EngineCommand> {
        let asked_at = seen.now.instant;
        let transitions: Vec<_> = ids.iter().filter_map(|id| self.transitions.get(id).cloned()).collect();
        let windows: Vec<_> = transitions.iter().map(|one| self.window(one, asked_at, None, seen)).collect();
        let known = self
            .transitions
            .all()
            .filter(|one| !one.upstream_id.is_empty() && self.transitions.is_read_back(&one.id));
        let search = UpstreamSearch {
            from: windows.iter().map(SearchWindow::earliest).min()?,
            until: windows.iter().map(|window| window.until).max()?,
            actions: transitions.iter().filter_map(|transition| transition.action).collect(),
            sizes: transitions.iter().map(|transition| transition.members.len()).collect(),
            known: known.map(|one| one.upstream_id.clone()).collect(),
        };
        Some(EngineCommand::Ask(UpstreamCall::Search { ids, asked_at, search }))
    }

    /// Returns the time in which the upstream can have taken a transition in doubt: from the moment at which its call
    /// was recorded until its caller was gone for good. After a restart that may be hours, in which others may have requested
    /// the same; ours is one from the time that a single call takes.
    fn window(
        &mut self,
        transition: &PowerTransition,
        asked_at: Instant,
        clock: Option<ClockOffset>,
        seen: EventContext<'_>,
    ) -> SearchWindow {
        let (since, caller) = self.transitions.doubt(&transition.id, asked_at);
        let longest_call = seen.upstream_deadline();
        let doubted = seen.now.instant.saturating_duration_since(since);
        let until = Timestamp(seen.now.at.0 - millis(doubted)).plus(power::last_look(caller, longest_call));
        let ours_until =
            transition.sent_at.map(|sent_at| power::call_is_over(sent_at, longest_call).min(until));
        SearchWindow { from: convert::earliest(transition), ours_until, until, clock }
    }

    /// Concludes from a search about transitions in doubt.
    pub(super) fn searched(
        &mut self,
        ids: Vec<TransitionId>,
        asked_at: Instant,
        answer: Result<FoundTransitions, DriverFailure>,
        finished: &[Arc<PowerTransition>],
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        match answer {
            Ok(found) => {
                if let Some(failures) = self.searches.ends() {
                    tracing::info!(failures, "transitions in doubt can be looked for again");
                }
                let mut commands = Vec::new();
                for id in ids {
                    let transition = self.transitions.in_state(&id, TransitionDelivery::Unknown).cloned();
                    let Some(transition) = transition else { continue };
                    commands.extend(self.conclude(transition, &found, finished, asked_at, seen));
                }
                commands
            }
            Err(failure) => {
                if self.searches.begins() {
                    tracing::warn!(error = %failure, "cannot look for transitions in doubt, trying again");
                } else {
                    tracing::debug!(error = %failure, "still cannot look for transitions in doubt");
                }
                ids.iter().for_each(|id| self.transitions.look_failed(id));
                ids.iter().map(|id| self.postpone(id)).collect()
            }
        }
    }

    fn conclude(
        &mut self,
        transition: PowerTransition,
        found: &FoundTransitions,
        finished: &[Arc<PowerTransition>],
        asked_at: Instant,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let window = self.window(&transition, asked_at, found.clock, seen);
        let is_claimed = |one: &UpstreamTransition| {
            let ours = finished.iter().map(|one| &**one).chain(self.transitions.all());
            ours.filter(|other| other.id != transition.id).any(|other| is_the_same(other, one))
        };
        match plan::evidence(&transition, &found.accepted, &window, is_claimed) {
            TransitionEvidence::Found(upstream_id) => self.accepted(transition, upstream_id.to_owned(), seen),
            TransitionEvidence::Perhaps => vec![self.postpone(&transition.id)],
            // Its owner cannot be determined, so it is not touched; its effect on the power shows when it is over.
            TransitionEvidence::Undated { id, open: true } => {
                tracing::debug!(
                    transition = transition.id,
                    upstream_id = id,
                    "waiting for one that may be ours"
                );
                vec![step_after(&transition.id, refusal::pause(self.transitions.failed(&transition.id)))]
            }
            TransitionEvidence::Undated { id, open: false } => {
                let error = format!("transition {id} of the upstream may have been this one, and is over");
                vec![end_unless_held(&transition, error)]
            }
            TransitionEvidence::Missing => self.not_found(transition, asked_at, seen),
        }
    }

    /// Continues with a transition that the upstream does not show: it is searched for again, or did not arrive.
    fn not_found(
        &mut self,
        transition: PowerTransition,
        asked_at: Instant,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let (since, caller) = self.transitions.doubt(&transition.id, asked_at);
        let doubted = asked_at.saturating_duration_since(since);
        if let Some(pause) = power::next_look(caller, seen.upstream_deadline(), doubted) {
            let elapsed = seen.now.instant.saturating_duration_since(asked_at);
            return vec![step_after(&transition.id, pause.saturating_sub(elapsed))];
        }
        if transition.accepted_at.is_some() {
            let error = "the upstream took it and does not know it any more";
            return vec![end_unless_held(&transition, error.to_owned())];
        }
        if self.transitions.doubt_recurs(&transition.id) {
            tracing::debug!(transition = transition.id, "transition did not arrive again, sending it again");
        } else {
            tracing::info!(transition = transition.id, "transition did not arrive, sending it again");
        }
        self.transitions.no_longer_in_doubt(&transition.id);
        let ids = vec![transition.id.as_str().into()];
        let shown = self.transitions.shown(&transition.id).filter(convert::is_wait);
        vec![self.put(prepared_again(transition, shown.as_ref())), step_now(ids)]
    }

    /// Continues with the transitions of the upstream that hold the nodes of a search.
    pub(super) fn holders_found(
        &mut self,
        search: HolderSearch,
        mut answer: Result<Vec<UpstreamTransition>, DriverFailure>,
        abandoned: &HashSet<String>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let nodes = search.nodes.len();
        if let Ok(holders) = &mut answer {
            // An abandoned transition is not waited for, and may hold its nodes at the upstream for ever.
            holders.retain(|holder| !abandoned.contains(&holder.id));
        }
        match &answer {
            Ok(_) => {
                if let Some(failures) = self.holder_searches.ends() {
                    tracing::info!(failures, "who holds nodes can be looked for again");
                }
            }
            Err(failure) if self.holder_searches.begins() => {
                tracing::warn!(nodes, %failure, "cannot look for who holds nodes");
            }
            Err(failure) => tracing::debug!(nodes, %failure, "still cannot look for who holds nodes"),
        }
        match search.purpose {
            HolderPurpose::End { id, error } => self.end_if_free(&id, &error, answer, seen),
            HolderPurpose::Learn(polled) => self.spread(polled, &answer.unwrap_or_default(), seen),
        }
    }

    /// Ends a transition if the upstream holds none of its nodes.
    fn end_if_free(
        &mut self,
        id: &str,
        error: &str,
        holders: Result<Vec<UpstreamTransition>, DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let transition = self.transitions.in_state(id, TransitionDelivery::Unknown).cloned();
        let Some(transition) = transition else { return Vec::new() };
        match holders {
            Ok(holders) if holders.is_empty() => self.end_by_upstream(transition, error, seen).commands(),
            Ok(_) => vec![step_after(id, refusal::pause(self.transitions.failed(id)))],
            Err(_) => vec![self.postpone(id)],
        }
    }
}

/// Ends a transition that the upstream took, or may have taken, and does not show any more. A clock that was set may
/// hide it from the search, so it stays open as long as the upstream works on a transition that holds one of its nodes.
fn end_unless_held(transition: &PowerTransition, error: String) -> EngineCommand {
    let nodes: HashSet<_> = transition.members.iter().map(|member| member.id.clone()).collect();
    let purpose = HolderPurpose::End { id: transition.id.as_str().into(), error };
    EngineCommand::Ask(UpstreamCall::Holders(HolderSearch { nodes, purpose }))
}

/// Returns whether a transition of ours with the same request was taken under the id of an upstream's record. A
/// transition with a different request has the id by mistake, and a poll will show that.
fn is_the_same(transition: &PowerTransition, record: &UpstreamTransition) -> bool {
    transition.upstream_id == record.id
        && transition.action == record.action
        && convert::sorted_ids(transition) == record.ids
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
