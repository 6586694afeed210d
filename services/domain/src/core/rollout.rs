//! Rollouts: work on many members that begins in batches, the next one after the one before has proved itself.
//!
//! The rule knows groups, counts and outcomes. [`policy`] says how members are cut into batches, and [`step`] what is to be
//! done now. It is a function of the record and of the outcomes that are seen, so that a restart goes on with it.

pub mod policy;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use crate::core::{
    rollout::policy::{MissAction, RolloutPolicy},
    time::Timestamp,
};

/// Progress of a batch, as it is on record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BatchProgress {
    /// The members do not begin yet.
    #[default]
    Closed,
    /// The members are under way, and it is not decided whether enough of them succeed.
    Open {
        /// Time at which the batch was opened.
        since: Timestamp,
    },
    /// Members succeeded in the wanted number.
    Met {
        /// Time at which the batch was opened.
        since: Timestamp,
        /// Time at which enough members had succeeded.
        at: Timestamp,
    },
    /// Members failed in a number that keeps the batch from its threshold.
    Missed {
        /// Time at which the batch was opened.
        since: Timestamp,
    },
    /// Members failed in such a number, and a person lets the rollout go on.
    Waived {
        /// Time at which the batch was opened.
        since: Timestamp,
    },
}

impl BatchProgress {
    /// Returns when the batch was opened; `None`: it is closed.
    pub fn opened_at(self) -> Option<Timestamp> {
        match self {
            Self::Closed => None,
            Self::Open { since }
            | Self::Met { since, .. }
            | Self::Missed { since }
            | Self::Waived { since } => Some(since),
        }
    }

    /// Returns the word for the progress.
    pub fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::Met { .. } => "met",
            Self::Missed { .. } => "missed",
            Self::Waived { .. } => "waived",
        }
    }
}

/// Outcome of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberOutcome {
    /// The work is not done; in a closed batch it has not begun.
    UnderWay,
    /// The member is as wanted.
    Succeeded,
    /// The member was given up.
    Failed,
    /// The member left the rollout, and counts no more.
    Gone,
}

/// Members of a batch by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchTally {
    /// Members with [`MemberOutcome::UnderWay`].
    pub under_way: usize,
    /// Members with [`MemberOutcome::Succeeded`].
    pub succeeded: usize,
    /// Members with [`MemberOutcome::Failed`].
    pub failed: usize,
    /// Members with [`MemberOutcome::Gone`].
    pub gone: usize,
}

impl BatchTally {
    /// Counts a member.
    pub fn count(&mut self, outcome: MemberOutcome) {
        match outcome {
            MemberOutcome::UnderWay => self.under_way += 1,
            MemberOutcome::Succeeded => self.succeeded += 1,
            MemberOutcome::Failed => self.failed += 1,
            MemberOutcome::Gone => self.gone += 1,
        }
    }

    /// Returns the number of members that count.
    pub fn counted(&self) -> usize {
        self.under_way + self.succeeded + self.failed
    }

    /// Returns how many members have to succeed for that share in percent.
    pub fn wanted(&self, threshold: u32) -> usize {
        (self.counted() * threshold as usize).div_ceil(100)
    }

    /// Returns whether so many members failed that the share in percent cannot be reached.
    fn is_out_of_reach(&self, threshold: u32) -> bool {
        self.counted() - self.failed < self.wanted(threshold)
    }
}

impl FromIterator<MemberOutcome> for BatchTally {
    fn from_iter<I: IntoIterator<Item = MemberOutcome>>(outcomes: I) -> Self {
        let mut tally = Self::default();
        outcomes.into_iter().for_each(|outcome| tally.count(outcome));
        tally
    }
}

/// Batch as the rule sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchView {
    /// Progress on record.
    pub progress: BatchProgress,
    /// Outcomes of the members now.
    pub tally: BatchTally,
}

/// Next step of a rollout. Batches are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutStep {
    /// The batch is opened.
    Open(usize),
    /// The success of the batch is noted.
    Meet(usize),
    /// The miss of the batch is noted, and the policy says what follows.
    Miss(usize),
    /// A step is not due yet.
    Wait(RolloutWait),
    /// The rollout is over before its last batch: a batch missed, and the policy stops it.
    Stopped,
    /// The last batch was opened, and is decided.
    Done,
}

/// Wait of a rollout. Batches are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutWait {
    /// Members of the open batch are under way.
    Outcomes {
        /// Open batch.
        batch: usize,
        /// Number of members that have to succeed yet.
        lacking: usize,
    },
    /// The batch met its threshold, and is given time to show troubles.
    Soak {
        /// Batch that soaks.
        batch: usize,
        /// End of the wait.
        until: Timestamp,
    },
    /// Members are under way in such a number that the next batch would exceed the limit.
    InFlight {
        /// Batch that is to be opened.
        batch: usize,
        /// Members of open batches that are under way.
        in_flight: usize,
        /// Most that may be.
        most: NonZeroU32,
    },
    /// A batch missed its threshold, and a person decides.
    Decision {
        /// Batch that missed.
        batch: usize,
    },
}

impl RolloutWait {
    /// Returns the word for the wait.
    pub fn word(self) -> &'static str {
        match self {
            Self::Outcomes { .. } => "outcomes",
            Self::Soak { .. } => "soak",
            Self::InFlight { .. } => "in_flight",
            Self::Decision { .. } => "decision",
        }
    }

    /// Returns when the wait ends by itself; `None`: with an event.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Soak { until, .. } => Some(until),
            Self::Outcomes { .. } | Self::InFlight { .. } | Self::Decision { .. } => None,
        }
    }
}

/// Decides the next step of a rollout at `now`.
///
/// A batch is opened once the one before has met its threshold and soaked, or once a person waived its miss, and only if the members
/// that are under way then are not more than the policy allows. The last batch holds up nothing, so its miss is noted nowhere.
pub fn step<G>(policy: &RolloutPolicy<G>, batches: &[BatchView], now: Timestamp) -> RolloutStep {
    let opened = batches.iter().take_while(|batch| batch.progress != BatchProgress::Closed).count();
    let Some(current) = opened.checked_sub(1) else { return open(policy, batches, 0) };
    let is_last = opened == batches.len();
    match batches[current].progress {
        BatchProgress::Closed | BatchProgress::Open { .. } => {
            judge(policy.threshold, &batches[current].tally, current, is_last)
        }
        BatchProgress::Missed { .. } => match policy.on_miss {
            MissAction::Pause => RolloutStep::Wait(RolloutWait::Decision { batch: current }),
            MissAction::Stop => RolloutStep::Stopped,
        },
        BatchProgress::Met { at, .. } => {
            let until = at.plus(policy.soak);
            if now < until && !is_last {
                return RolloutStep::Wait(RolloutWait::Soak { batch: current, until });
            }
            open(policy, batches, opened)
        }
        BatchProgress::Waived { .. } => open(policy, batches, opened),
    }
}

/// Judges the open batch of that number by the outcomes of its members.
fn judge(threshold: u32, tally: &BatchTally, batch: usize, is_last: bool) -> RolloutStep {
    let lacking = tally.wanted(threshold).saturating_sub(tally.succeeded);
    if lacking == 0 {
        return RolloutStep::Meet(batch);
    }
    if is_last && tally.under_way == 0 {
        return RolloutStep::Done;
    }
    if !is_last && tally.is_out_of_reach(threshold) {
        return RolloutStep::Miss(batch);
    }
    RolloutStep::Wait(RolloutWait::Outcomes { batch, lacking })
}

/// Opens the batch of that number, unless too many members are under way.
fn open<G>(policy: &RolloutPolicy<G>, batches: &[BatchView], batch: usize) -> RolloutStep {
    let Some(next) = batches.get(batch) else { return RolloutStep::Done };
    let in_flight = in_flight(batches);
    match policy.most_in_flight {
        Some(most) if in_flight + next.tally.under_way > most.get() as usize => {
            RolloutStep::Wait(RolloutWait::InFlight { batch, in_flight, most })
        }
        Some(_) | None => RolloutStep::Open(batch),
    }
}

/// Returns the number of members of open batches that are under way.
pub fn in_flight(batches: &[BatchView]) -> usize {
    let opened = batches.iter().filter(|batch| batch.progress != BatchProgress::Closed);
    opened.map(|batch| batch.tally.under_way).sum()
}
