//! Rollout of a session: its members begin in batches.
//!
//! All members are assigned at once, with a mark that keeps them from beginning. When a batch is opened, its members lose the
//! mark. The rule is [`crate::core::rollout`]; this module applies it to the record of the session.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use crate::{
    boot::{
        component::{Component, PauseMark},
        session::{
            Progress, Session, SessionPause,
            completion::owns,
            result::{MemberStanding, standing},
        },
    },
    core::{
        bos_time,
        id::ComponentId,
        rollout::{
            BatchProgress, BatchTally, BatchView, MemberOutcome, RolloutStep, RolloutWait, in_flight,
            policy::{MissAction, RolloutPolicy},
            step,
        },
        time::Timestamp,
        xname::{NodePlace, counting_order, place_of},
    },
};

/// Name under which a rollout pauses its session.
pub const ROLLOUT: &str = "rollout";

/// Policy of the rollout of a session.
pub type NodeRolloutPolicy = RolloutPolicy<NodePlace>;

/// Rollout of a session, as far as it is. Clones share the batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRollout {
    policy: Arc<NodeRolloutPolicy>,
    batches: Arc<[Vec<ComponentId>]>,
    places: Arc<HashMap<ComponentId, usize>>,
    progress: Vec<BatchProgress>,
}

impl SessionRollout {
    /// Creates the rollout of a session whose members are not known yet.
    pub fn new(policy: NodeRolloutPolicy) -> Self {
        Self::restored(policy, Vec::new())
    }

    /// Creates a rollout with its batches as they are on record.
    pub fn restored(policy: NodeRolloutPolicy, batches: Vec<(Vec<ComponentId>, BatchProgress)>) -> Self {
        Self::with_batches(policy.into(), batches)
    }

    fn with_batches(policy: Arc<NodeRolloutPolicy>, batches: Vec<(Vec<ComponentId>, BatchProgress)>) -> Self {
        let (batches, progress): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        let numbered = batches.iter().enumerate();
        let places =
            numbered.flat_map(|(number, members)| members.iter().map(move |id| (id.clone(), number)));
        Self { policy, places: Arc::new(places.collect()), batches: batches.into(), progress }
    }

    /// Returns the rollout with the members in closed batches, in the order in which people count.
    #[must_use]
    pub fn cut(&self, members: &[ComponentId]) -> Self {
        let mut members = members.to_vec();
        members.sort_by_cached_key(|id| counting_order(id.as_str()));
        let place = |id: &ComponentId, place: &NodePlace| place_of(id.as_str(), *place).unwrap_or_default();
        let batches = self.policy.batches(members, place).into_iter();
        let closed = batches.map(|members| (members, BatchProgress::Closed)).collect();
        Self::with_batches(Arc::clone(&self.policy), closed)
    }

    /// Returns the policy.
    pub fn policy(&self) -> &NodeRolloutPolicy {
        &self.policy
    }

    /// Returns the members and the progress of each batch; none: the members are not known yet.
    pub fn batches(&self) -> impl ExactSizeIterator<Item = (&[ComponentId], BatchProgress)> {
        self.batches.iter().zip(&self.progress).map(|(members, progress)| (&**members, *progress))
    }

    /// Returns the progress of each batch.
    pub fn progress(&self) -> &[BatchProgress] {
        &self.progress
    }

    /// Returns the number of batches that were opened.
    pub fn opened(&self) -> usize {
        self.progress.iter().take_while(|progress| **progress != BatchProgress::Closed).count()
    }

    /// Returns the number of the batch of a member, from 0.
    pub fn place(&self, id: &ComponentId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// Returns whether nothing begins for that member yet. Before the members are known, that holds for all.
    pub fn holds(&self, id: &ComponentId) -> bool {
        self.batches.is_empty()
            || self.place(id).is_some_and(|batch| self.progress[batch] == BatchProgress::Closed)
    }

    /// Returns whether there are members for which nothing begins yet.
    pub fn holds_any(&self) -> bool {
        self.batches.is_empty() || self.opened() < self.batches.len()
    }

    /// Returns whether a batch missed its threshold, and no further one is opened.
    pub fn is_stopped(&self) -> bool {
        self.policy.on_miss == MissAction::Stop && self.has_missed()
    }

    /// Returns the rollout once a person lets it go on after a miss.
    #[must_use]
    pub fn waived(mut self) -> Self {
        if self.is_stopped() {
            return self;
        }
        for progress in &mut self.progress {
            if let BatchProgress::Missed { since } = *progress {
                *progress = BatchProgress::Waived { since };
            }
        }
        self
    }

    /// Returns the batches with the outcomes of their members.
    pub fn views(&self, outcome: impl Fn(&ComponentId) -> MemberOutcome) -> Vec<BatchView> {
        let views = self.batches().map(|(members, progress)| {
            let tally = members.iter().map(&outcome).collect();
            BatchView { progress, tally }
        });
        views.collect()
    }

    fn has_missed(&self) -> bool {
        self.progress.iter().any(|progress| matches!(progress, BatchProgress::Missed { .. }))
    }

    fn with(mut self, batch: usize, progress: BatchProgress) -> Self {
        self.progress[batch] = progress;
        self
    }

    fn opened_at(&self, batch: usize) -> Timestamp {
        self.progress[batch].opened_at().unwrap_or_default()
    }
}

impl Session {
    /// Returns the mark that every member has from its assignment on; `None`: the session has no rollout.
    pub fn rollout_mark(&self) -> Option<PauseMark> {
        self.rollout.as_ref().map(|_| PauseMark::of_rollout(self.created_at))
    }

    /// Returns the mark that the session wants in a component that it owns. The pause of a client goes before the rollout.
    pub fn mark_of(&self, id: &ComponentId) -> Option<PauseMark> {
        let waits = || self.rollout.as_ref().is_some_and(|rollout| rollout.holds(id));
        match &self.pause {
            _ if self.progress == Progress::Complete => None,
            Some(pause) => Some(pause.mark()),
            None if waits() => self.rollout_mark(),
            None => None,
        }
    }

    /// Returns whether nothing begins for some components of the session: it is paused, or has closed batches.
    pub fn holds_components(&self) -> bool {
        let has_closed = || self.rollout.as_ref().is_some_and(SessionRollout::holds_any);
        self.progress != Progress::Complete && (self.pause.is_some() || has_closed())
    }

    /// Returns whether the rollout of the session may have a next step.
    pub fn is_rolling(&self) -> bool {
        self.progress == Progress::Running && self.rollout.is_some() && !self.is_being_cancelled()
    }
}

/// Returns the outcome of a member of `session`; `None`: the component does not exist.
pub fn outcome(session: &Session, component: Option<&Component>) -> MemberOutcome {
    match standing(session, component) {
        MemberStanding::Reached => MemberOutcome::Succeeded,
        MemberStanding::Failed => MemberOutcome::Failed,
        MemberStanding::TakenOver { .. } => MemberOutcome::Gone,
        MemberStanding::Unfinished => match component {
            Some(component) if owns(session, component) && component.is_enabled() => MemberOutcome::UnderWay,
            Some(_) | None => MemberOutcome::Gone,
        },
    }
}

/// Returns the session after the next step of its rollout at `now`; `None`: there is nothing to record. The outcomes are those of
/// its members now. Nothing changes while the session is paused.
pub fn advance(session: &Session, views: &[BatchView], now: Timestamp) -> Option<Session> {
    let rollout = session.rollout.clone().filter(|_| session.is_rolling() && session.pause.is_none())?;
    let rolled = |rollout| Session { rollout: Some(rollout), ..session.clone() };
    match step(&rollout.policy, views, now) {
        RolloutStep::Open(batch) => Some(rolled(rollout.with(batch, BatchProgress::Open { since: now }))),
        RolloutStep::Meet(batch) => {
            let since = rollout.opened_at(batch);
            Some(rolled(rollout.with(batch, BatchProgress::Met { since, at: now })))
        }
        RolloutStep::Miss(batch) => {
            let since = rollout.opened_at(batch);
            let missed = rolled(rollout.with(batch, BatchProgress::Missed { since }));
            Some(match missed.rollout.as_ref().is_some_and(SessionRollout::is_stopped) {
                true => missed,
                false => Session { pause: Some(pause_after_miss(session, batch, views, now)), ..missed },
            })
        }
        RolloutStep::Wait(_) | RolloutStep::Stopped | RolloutStep::Done => None,
    }
}

/// Returns the pause of a session in which a batch missed its threshold.
fn pause_after_miss(session: &Session, batch: usize, views: &[BatchView], now: Timestamp) -> SessionPause {
    let tally = views[batch].tally;
    let threshold = session.rollout.as_ref().map_or(0, |rollout| rollout.policy.threshold);
    let reason = format!(
        "batch {} of {} missed its threshold of {threshold}%: {} of {} nodes failed",
        batch + 1,
        views.len(),
        tally.failed,
        tally.counted()
    );
    SessionPause { by: ROLLOUT.into(), since: now, reason: reason.into(), request_id: Arc::default() }
}

/// Standing of a rollout: how far it is, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutStanding {
    /// Number of the latest open batch, from 0, with its progress and its members; `None`: none is open.
    pub current: Option<(usize, BatchView)>,
    /// Number of batches; 0: the members are not known yet.
    pub batches: usize,
    /// Members of open batches that are under way.
    pub in_flight: usize,
    /// Next step.
    pub step: RolloutStep,
}

/// Returns the standing of a rollout at `now`; `None`: the session has none.
pub fn rollout_standing(session: &Session, views: &[BatchView], now: Timestamp) -> Option<RolloutStanding> {
    let rollout = session.rollout.as_ref()?;
    let current = rollout.opened().checked_sub(1).map(|batch| (batch, views[batch]));
    let step = step(&rollout.policy, views, now);
    Some(RolloutStanding { current, batches: views.len(), in_flight: in_flight(views), step })
}

impl RolloutStanding {
    /// Returns the words for people. Batches are numbered from 1.
    pub fn text(&self) -> String {
        let of = self.batches;
        let Some((batch, view)) = &self.current else {
            return match of {
                0 => "the nodes are not in batches yet".to_owned(),
                _ => format!("none of {of} batches is open yet"),
            };
        };
        let BatchTally { succeeded, failed, under_way, .. } = view.tally;
        let mut text = format!("batch {} of {of} is open", batch + 1);
        text += &format!(", {succeeded} of {} nodes as wanted", view.tally.counted());
        for (count, word) in [(failed, "failed"), (under_way, "under way")] {
            if count > 0 {
                text += &format!(", {count} {word}");
            }
        }
        text + &self.wait_text()
    }

    fn wait_text(&self) -> String {
        match self.step {
            RolloutStep::Wait(RolloutWait::Outcomes { lacking, .. }) => {
                format!("; waits for {lacking} more as wanted")
            }
            RolloutStep::Wait(RolloutWait::Soak { until, .. }) => {
                format!("; soaks until {}Z", bos_time::text(until))
            }
            RolloutStep::Wait(RolloutWait::InFlight { batch, in_flight, most }) => {
                format!("; batch {} waits, as {in_flight} of at most {most} nodes are under way", batch + 1)
            }
            RolloutStep::Wait(RolloutWait::Decision { .. }) => {
                "; missed its threshold, and a person decides whether the others follow".to_owned()
            }
            RolloutStep::Stopped => "; missed its threshold, and the others do not follow".to_owned(),
            RolloutStep::Done | RolloutStep::Open(_) | RolloutStep::Meet(_) | RolloutStep::Miss(_) => {
                String::new()
            }
        }
    }
}
