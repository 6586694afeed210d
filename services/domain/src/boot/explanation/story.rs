//! Attempts at a boot since the wish for a node was last set, and the cause of each that failed.

use std::{mem, sync::Arc};

use super::{HistoryChange, HistoryEvent, ScriptEvidence, TransitionResult, cause::CauseReason};
use crate::{
    boot::{component::Action, evaluation::Reason, power::transition::TaskOutcome},
    core::time::{SKEW, Timestamp},
};

/// Requests for a boot script within one attempt that show that kernel or initrd do not arrive: firmware asks once, and
/// repeats it only after a failure.
const REPEATED_REQUESTS: u32 = 3;

/// Attempts since the wish was last set, or the component was last enabled.
#[derive(Debug, Default)]
pub(super) struct BootStory {
    pub(super) session: Arc<str>,
    pub(super) attempts: Vec<StoryAttempt>,
    /// Attempts before the component was last enabled.
    earlier: Vec<StoryAttempt>,
    /// End of the work; `None`: it goes on, or the history does not tell.
    pub(super) end: Option<StoryEnd>,
    pub(super) locked_at: Option<Timestamp>,
    pub(super) not_listed_at: Option<Timestamp>,
}

/// End of the work on a component.
#[derive(Debug)]
pub(super) struct StoryEnd {
    pub(super) at: Timestamp,
    /// Rule that decided; `None`: a person did.
    pub(super) reason: Option<Reason>,
}

/// Attempt at a power action, or at the preparation of one.
#[derive(Debug)]
pub(super) struct StoryAttempt {
    pub(super) action: Action,
    pub(super) number: u32,
    pub(super) began: Timestamp,
    trouble: Option<AttemptTrouble>,
    report: Option<BootReport>,
}

/// Failure of an attempt that is on record.
#[derive(Debug)]
struct AttemptTrouble {
    at: Timestamp,
    words: Arc<str>,
    /// Whether the power-on was not even prepared.
    is_unprepared: bool,
}

/// Report of a node within an attempt.
#[derive(Debug, Clone, Copy)]
struct BootReport {
    at: Timestamp,
    kind: ReportKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportKind {
    Wanted,
    Other,
    Earlier,
}

/// Failed attempt with its cause.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedAttempt {
    pub(super) reason: CauseReason,
    pub(super) action: Action,
    pub(super) number: u32,
    pub(super) since: Timestamp,
    pub(super) words: Arc<str>,
}

impl BootStory {
    /// Reads the events of a component, the oldest first.
    pub(super) fn read(history: &[HistoryEvent]) -> Self {
        let mut story = Self::default();
        for event in history {
            story.add(event);
        }
        story
    }

    fn add(&mut self, event: &HistoryEvent) {
        let at = event.at;
        match &event.change {
            HistoryChange::WishSet { session } => *self = Self { session: session.clone(), ..self.anew() },
            HistoryChange::Enabled => {
                let earlier = mem::take(&mut self.attempts);
                *self = Self { earlier, ..self.anew() };
            }
            HistoryChange::Disabled { reason } => self.finish(StoryEnd { at, reason: *reason }),
            HistoryChange::ActionBegan { action, attempt } => {
                self.attempts.push(StoryAttempt::new(*action, *attempt, at));
            }
            HistoryChange::ActionFailed { action, attempt, words } => {
                let trouble = AttemptTrouble { at, words: words.clone(), is_unprepared: false };
                self.fail(*action, *attempt, trouble);
            }
            HistoryChange::PreparationFailed { attempt, words } => {
                let trouble = AttemptTrouble { at, words: words.clone(), is_unprepared: true };
                self.fail(Action::PoweringOn, *attempt, trouble);
            }
            HistoryChange::BootReported { as_desired: true } => self.report(at, ReportKind::Wanted),
            HistoryChange::BootReported { as_desired: false } => self.report(at, ReportKind::Other),
            HistoryChange::EarlierBootReported => self.report(at, ReportKind::Earlier),
            HistoryChange::Locked => self.locked_at = Some(at),
            HistoryChange::NotListed => self.not_listed_at = Some(at),
        }
    }

    /// A component that is enabled without attempts left is given up at once, for the failure before.
    fn finish(&mut self, end: StoryEnd) {
        if self.attempts.is_empty() && end.reason == Some(Reason::RetriesExhausted) {
            self.attempts = mem::take(&mut self.earlier);
        }
        self.end = Some(end);
    }

    /// Returns a story without attempts. A lock outlasts a wish.
    fn anew(&self) -> Self {
        Self {
            session: self.session.clone(),
            locked_at: self.locked_at,
            not_listed_at: self.not_listed_at,
            ..Self::default()
        }
    }

    fn fail(&mut self, action: Action, number: u32, trouble: AttemptTrouble) {
        let is_same = |one: &&mut StoryAttempt| (one.action, one.number) == (action, number);
        match self.attempts.iter_mut().rev().find(is_same) {
            Some(attempt) => attempt.trouble = Some(trouble),
            None => {
                let attempt = StoryAttempt::new(action, number, trouble.at);
                self.attempts.push(StoryAttempt { trouble: Some(trouble), ..attempt });
            }
        }
    }

    /// A wanted boot that was reported outweighs a late report of an earlier one.
    fn report(&mut self, at: Timestamp, kind: ReportKind) {
        let power_on = self.attempts.iter_mut().rev().find(|one| one.action == Action::PoweringOn);
        let Some(attempt) = power_on else { return };
        if attempt.report.is_none_or(|before| before.kind != ReportKind::Wanted) {
            attempt.report = Some(BootReport { at, kind });
        }
    }

    /// Returns the failed attempts, the latest first. An attempt that is under way has not failed.
    pub(super) fn failures(
        &self,
        transitions: &[TransitionResult],
        script: &ScriptEvidence,
    ) -> Vec<FailedAttempt> {
        let mut failures = Vec::new();
        for (index, attempt) in self.attempts.iter().enumerate().rev() {
            let next = self.attempts.get(index + 1);
            failures.extend(self.failure(attempt, next, transitions, script));
        }
        failures
    }

    fn failure(
        &self,
        attempt: &StoryAttempt,
        next: Option<&StoryAttempt>,
        transitions: &[TransitionResult],
        script: &ScriptEvidence,
    ) -> Option<FailedAttempt> {
        let is_over = next.is_some() || self.end.is_some();
        let failed = |reason, since, words: &Arc<str>| FailedAttempt {
            reason,
            action: attempt.action,
            number: attempt.number,
            since,
            words: words.clone(),
        };
        match &attempt.trouble {
            Some(trouble) if trouble.is_unprepared => {
                Some(failed(CauseReason::BootDataRefused, trouble.at, &trouble.words))
            }
            Some(_) if self.is_step_of_retry(attempt) => None,
            Some(trouble) => {
                let (reason, words) = attempt.without_effect(trouble, transitions);
                Some(failed(reason, trouble.at, &words))
            }
            None if attempt.action == Action::PoweringOn => {
                let reason = attempt.unreported(script, self.next_power_on(attempt))?;
                let since = attempt.report.map_or(attempt.began, |report| report.at);
                (is_over || attempt.report.is_some()).then(|| failed(reason, since, &Arc::default()))
            }
            None if is_over && !self.has_power_on_around(attempt) => {
                Some(failed(CauseReason::PowerOffTimedOut, attempt.began, &Arc::default()))
            }
            None => None,
        }
    }

    /// Returns whether an attempt is the shutdown of a node that did not boot: that the shutdown took force explains
    /// nothing.
    fn is_step_of_retry(&self, attempt: &StoryAttempt) -> bool {
        attempt.action == Action::PoweringOffGracefully && self.has_power_on_around(attempt)
    }

    /// Returns whether a power-on came before that attempt, or after it. Then a shutdown without a trouble on record had
    /// its effect.
    fn has_power_on_around(&self, attempt: &StoryAttempt) -> bool {
        self.attempts.iter().any(|one| one.action == Action::PoweringOn && one.began != attempt.began)
    }

    fn next_power_on(&self, attempt: &StoryAttempt) -> Option<Timestamp> {
        let mut later = self.attempts.iter().filter(|one| one.began > attempt.began);
        later.find(|one| one.action == Action::PoweringOn).map(|one| one.began)
    }
}

impl StoryAttempt {
    fn new(action: Action, number: u32, began: Timestamp) -> Self {
        Self { action, number, began, trouble: None, report: None }
    }

    /// Returns the cause of an action without effect. The transition tells a refusal from an action in vain; without it
    /// the words of the power service do.
    fn without_effect(
        &self,
        trouble: &AttemptTrouble,
        transitions: &[TransitionResult],
    ) -> (CauseReason, Arc<str>) {
        let own = transitions.iter().find(|one| {
            (one.action, one.attempt) == (Some(self.action), self.number)
                && one.created_at.is_some_and(|at| at.plus(SKEW) >= self.began && at <= trouble.at.plus(SKEW))
        });
        let outcome = own.map(|one| one.outcome);
        let is_refused = match outcome {
            Some(TaskOutcome::Refused) => true,
            Some(TaskOutcome::Failed | TaskOutcome::Succeeded) => false,
            Some(TaskOutcome::Unspecified) | None => !trouble.words.is_empty(),
        };
        let reason = match (self.action == Action::PoweringOn, is_refused) {
            (true, true) => CauseReason::PowerOnRefused,
            (true, false) => CauseReason::PowerOnTimedOut,
            (false, true) => CauseReason::PowerOffRefused,
            (false, false) => CauseReason::PowerOffTimedOut,
        };
        let late = own.map(|one| one.words.clone()).filter(|_| trouble.words.is_empty());
        (reason, late.unwrap_or_else(|| trouble.words.clone()))
    }

    /// Returns the cause of a power-on that came on without the report of the wanted boot; `None`: it was reported.
    fn unreported(&self, script: &ScriptEvidence, next: Option<Timestamp>) -> Option<CauseReason> {
        match self.report.map(|report| report.kind) {
            Some(ReportKind::Wanted) => None,
            Some(ReportKind::Other) => Some(CauseReason::OtherBootReported),
            Some(ReportKind::Earlier) => Some(CauseReason::EarlierBootReported),
            None => Some(match script.within(self.began, next) {
                ScriptProgress::Unknown => CauseReason::BootUnreported,
                ScriptProgress::NotRequested => CauseReason::BootScriptNotRequested,
                ScriptProgress::Requested => CauseReason::ReportMissing,
                ScriptProgress::Repeated => CauseReason::ArtifactFetchFailing,
            }),
        }
    }
}

/// Progress of a node with its boot script within an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptProgress {
    /// No source knows.
    Unknown,
    /// The node has not asked for it.
    NotRequested,
    /// The node has fetched it.
    Requested,
    /// The node asks again and again.
    Repeated,
}

impl ScriptEvidence {
    /// Returns the progress of an attempt that `began` then, and lasted until the `next` one. Only the latest requests
    /// are known, so they tell nothing about an attempt before them.
    pub(super) fn within(&self, began: Timestamp, next: Option<Timestamp>) -> ScriptProgress {
        let Self::Known { recorded_since, requests } = self else { return ScriptProgress::Unknown };
        // Clocks of services may differ, and what is prepared for an attempt is older than the attempt.
        let is_recorded = *recorded_since <= began.plus(SKEW);
        let began = began.minus(SKEW);
        let is_later = |at: Timestamp| next.is_some_and(|next| at >= next);
        match requests {
            Some(one) if is_later(one.last_at) => ScriptProgress::Unknown,
            Some(one) if one.last_at >= began && one.first_at >= began && one.count >= REPEATED_REQUESTS => {
                ScriptProgress::Repeated
            }
            Some(one) if one.last_at >= began => ScriptProgress::Requested,
            Some(_) | None if is_recorded => ScriptProgress::NotRequested,
            Some(_) | None => ScriptProgress::Unknown,
        }
    }
}
