//! Explains a component.

use std::sync::Arc;

use super::{
    AttemptNumber, CauseReason, ExplainedCause, Explanation, Peer, ScriptEvidence, evidence,
    sight::ComponentEvidence,
    stage::BootStage,
    story::{BootStory, FailedAttempt, ScriptProgress},
    wording,
};
use crate::{
    boot::{
        component::{
            Action, Component, InventoryPresence, PauseHolder, Phase,
            status::{ComponentStatus, computed_status},
        },
        evaluation::{Decision, Reason, evaluate},
        power::{self, PowerDecision, PowerIdle, PowerReading},
    },
    core::{
        explanation::CauseOutcome,
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};

/// Explains a component at `now`.
pub fn explain_component(evidence: &ComponentEvidence<'_>, now: Timestamp) -> Explanation {
    let component = evidence.component;
    let story = BootStory::read(evidence.history.unwrap_or_default());
    let decision =
        component.is_enabled().then(|| evaluate(component, evidence.evaluated, evidence.options, now));
    let view = ComponentView { evidence, component, story: &story, now };
    let (causes, is_over) = match &decision {
        Some(decision) => view.under_way(decision),
        None if computed_status(component) == ComponentStatus::Failed => (view.given_up(None), true),
        None => (view.at_rest(), true),
    };
    let head = &causes[0];
    // An attempt failed, and another one follows.
    let goes_on = !is_over && head.reason.outcome() == CauseOutcome::Failed;
    let outcome = if goes_on { CauseOutcome::Progressing } else { head.reason.outcome() };
    let (last_stage, missing_stage) = view.stages(head);
    Explanation {
        subject: component.id.as_str().to_owned(),
        outcome,
        next_step: wording::next_step(head, component.id.as_str(), evidence.tools),
        evidence: evidence::items(evidence, decision.as_ref()),
        last_stage,
        missing_stage,
        causes,
    }
}

struct ComponentView<'a> {
    evidence: &'a ComponentEvidence<'a>,
    component: &'a Component,
    story: &'a BootStory,
    now: Timestamp,
}

impl ComponentView<'_> {
    /// Returns the causes of a component that is acted on, and whether it was given up.
    fn under_way(&self, decision: &Decision) -> (Vec<ExplainedCause>, bool) {
        let of = ExplainedCause::new;
        let shown = || decision.error.trouble().map(|trouble| trouble.text().clone()).unwrap_or_default();
        let since = self.trouble_since();
        let last_action = self.component.last_action_at();
        if let Some(pause) = self.pause(decision) {
            return (self.with_failures(pause), false);
        }
        if self.is_held_for_turns() {
            let contested = of(CauseReason::PowerContested).since(since.or(last_action));
            return (self.with_failures(contested), false);
        }
        let current = match decision.reason {
            Reason::NotEnabled => of(CauseReason::NotEnabled),
            Reason::OffAsWanted | Reason::Booted | Reason::Configured => of(CauseReason::AsWanted),
            Reason::AwaitingPower => self
                .outage(Peer::Power, self.evidence.evaluated.power_trouble.as_ref())
                .unwrap_or_else(|| of(CauseReason::PowerReadingAwaited)),
            Reason::AwaitingConfiguration => self
                .outage(Peer::Configuration, self.evidence.evaluated.configuration_trouble.as_ref())
                .unwrap_or_else(|| of(CauseReason::ConfigurationReadingAwaited)),
            Reason::PowerUndefined => {
                of(CauseReason::PowerStateUnknown).about(Peer::Power).since(since).saying(shown())
            }
            Reason::PowerMissing => of(CauseReason::UnknownToPower).about(Peer::Power).since(since),
            Reason::ConfigurationMissing => {
                of(CauseReason::UnknownToConfiguration).about(Peer::Configuration).since(since)
            }
            Reason::OffAgainstReport => of(CauseReason::PowerStateMismatch)
                .about(Peer::Power)
                .since(self.component.reported.running_report),
            Reason::PowerOnAwaited => self.power_on_awaited(decision),
            Reason::PowerOnNeeded | Reason::PowerOnWithoutEffect => self.due(Action::PoweringOn),
            Reason::PowerOffNeeded | Reason::RebootNeeded => self.due(Action::PoweringOffGracefully),
            Reason::ConfigurationDiffers => self.configuration_differs(),
            Reason::ConfigurationPending => {
                of(CauseReason::ConfigurationPending).since(self.component.boot_reported_at())
            }
            Reason::ConfigurationSilent => {
                of(CauseReason::ConfigurationNotStarted).since(self.component.boot_reported_at())
            }
            Reason::BootAwaited => self.boot_awaited().since(last_action).until(decision.until),
            Reason::TurnedTooOften => of(CauseReason::PowerContested).since(since.or(last_action)),
            Reason::ConfigurationFailed
            | Reason::ConfigurationUnknown
            | Reason::RetriesExhausted
            | Reason::AlreadyFailed => return (self.given_up(Some(decision.reason)), true),
        };
        (self.with_failures(current), false)
    }

    /// Returns whether the record asks for one turn of the power too many. An evaluator of another version may have decided
    /// so, without a word about it.
    fn is_held_for_turns(&self) -> bool {
        let ComponentEvidence { evaluated, options, .. } = self.evidence;
        let decision = power::decide(self.component, &evaluated.power, options, self.now);
        decision == PowerDecision::Nothing { reason: PowerIdle::TurnedTooOften }
    }

    /// Joins the current cause with those of failed attempts. A failed attempt explains more than the next step does,
    /// but nothing goes on before an obstacle is removed.
    fn with_failures(&self, now: ExplainedCause) -> Vec<ExplainedCause> {
        let mut causes = self.failures();
        let position = match now.reason.outcome() {
            CauseOutcome::Progressing if !causes.is_empty() => 1,
            CauseOutcome::Progressing
            | CauseOutcome::AsWanted
            | CauseOutcome::LeftOut
            | CauseOutcome::Waiting
            | CauseOutcome::Held
            | CauseOutcome::Failed => 0,
        };
        causes.insert(position, now);
        causes.dedup_by(|later, first| is_repeated(later, first));
        causes
    }

    /// Returns the causes of a component that was given up. `reason` is the decision, or else that of the history.
    fn given_up(&self, reason: Option<Reason>) -> Vec<ExplainedCause> {
        let end = self.story.end.as_ref();
        let reason = reason.filter(|reason| *reason != Reason::AlreadyFailed);
        let reason = reason.or(end.and_then(|end| end.reason));
        let is_configuration = self.component.phase() == Phase::Configuring;
        let ended_at = end.map(|end| end.at).or(self.trouble_since());
        let words = self.component.evaluation.error.clone().unwrap_or_default();
        let mut causes = self.failures();
        let of = |reason| ExplainedCause::new(reason).since(ended_at);
        match reason {
            Some(Reason::ConfigurationUnknown) => {
                causes.insert(
                    0,
                    of(CauseReason::ConfigurationUnknown).about(Peer::Configuration).saying(words),
                );
            }
            Some(Reason::ConfigurationFailed) => {
                causes.insert(0, of(CauseReason::ConfigurationFailed).about(Peer::Configuration));
            }
            _ if is_configuration => {
                causes.insert(0, of(CauseReason::ConfigurationFailed).about(Peer::Configuration));
            }
            Some(_) | None if causes.is_empty() => {
                // Nothing is known but the obstacle, which would stop the next attempt too.
                causes.extend(self.inventory_obstacle());
                causes.push(of(CauseReason::RetriesExhausted).saying(words));
                return causes;
            }
            Some(_) | None => {}
        }
        causes.extend(self.inventory_obstacle());
        causes
    }

    /// Returns the causes of a component that is not acted on and was not given up.
    fn at_rest(&self) -> Vec<ExplainedCause> {
        let of = ExplainedCause::new;
        let end = self.story.end.as_ref();
        let ended_at = end.map(|end| end.at);
        let is_success = end.and_then(|end| end.reason).is_some_and(Reason::is_success);
        let is_as_wanted = is_success || (self.component.kernel_wanted() && self.component.runs_wanted());
        let is_staged = self.component.wish.staged_state.as_ref().is_some_and(|staged| !staged.applied);
        if let Some(stage) = self.component.staged_by().filter(|_| is_staged) {
            let staged_at = self.component.wish.staged_state.as_ref().and_then(|one| one.last_updated);
            let waiting = of(CauseReason::StageWaiting).since(staged_at);
            return vec![ExplainedCause { session: stage.name, ..waiting }];
        }
        if !is_as_wanted {
            return self.inventory_obstacle().into_iter().chain([self.not_enabled(ended_at)]).collect();
        }
        match self.switched_off_after(ended_at) {
            Some(at) => vec![of(CauseReason::PowerChangedOutside).about(Peer::Power).since(Some(at))],
            None => vec![of(CauseReason::AsWanted).since(ended_at)],
        }
    }

    /// Returns the cause of a component that is not enabled and not as wanted. Without a wish, enabling it would switch the
    /// node off.
    fn not_enabled(&self, ended_at: Option<Timestamp>) -> ExplainedCause {
        if !self.component.kernel_wanted() && self.component.session_name().is_empty() {
            return ExplainedCause::new(CauseReason::NothingWanted);
        }
        let words = self.component.evaluation.error.clone().unwrap_or_default();
        ExplainedCause::new(CauseReason::NotEnabled).since(ended_at).saying(words)
    }

    /// Returns the time of a reading "off" of a node that was on when its work ended.
    fn switched_off_after(&self, ended_at: Option<Timestamp>) -> Option<Timestamp> {
        let sight = self.evidence.power.as_ref().filter(|_| self.component.kernel_wanted())?;
        let observed_at = sight.observed_at?;
        let is_off = match sight.reading {
            PowerReading::Off => true,
            PowerReading::On | PowerReading::Unknown | PowerReading::Undefined | PowerReading::Missing => {
                false
            }
        };
        (is_off && ended_at.is_some_and(|ended| observed_at > ended)).then_some(observed_at)
    }

    fn power_on_awaited(&self, decision: &Decision) -> ExplainedCause {
        if self.component.waits_for_power_upstream()
            && let Some(outage) = self.outage(Peer::Power, self.component.power.trouble.as_deref())
        {
            return outage;
        }
        let awaited = ExplainedCause::new(CauseReason::PowerOnAwaited);
        let awaited = awaited.since(self.component.last_action_at()).until(decision.until);
        ExplainedCause { attempt: self.attempt_of(Action::PoweringOn), ..awaited }
    }

    fn boot_awaited(&self) -> ExplainedCause {
        let began = self.component.last_action_at().unwrap_or_default();
        let reason = match self.evidence.script.within(began, None) {
            ScriptProgress::Unknown => CauseReason::BootAwaited,
            ScriptProgress::NotRequested => CauseReason::BootScriptAwaited,
            ScriptProgress::Requested => CauseReason::BootReportAwaited,
            ScriptProgress::Repeated => CauseReason::ArtifactFetchFailing,
        };
        ExplainedCause { attempt: self.attempt_of(Action::PoweringOn), ..ExplainedCause::new(reason) }
    }

    fn configuration_differs(&self) -> ExplainedCause {
        let trouble = self.evidence.evaluated.configuration_trouble.as_ref();
        let refused = trouble.filter(|trouble| trouble.kind() == TroubleKind::ConfigurationRefused);
        if let Some(trouble) = refused {
            let cause = ExplainedCause::new(CauseReason::ConfigurationRefused).about(Peer::Configuration);
            return cause.since(self.trouble_since()).saying(trouble.text().clone());
        }
        self.outage(Peer::Configuration, trouble).unwrap_or_else(|| {
            ExplainedCause::new(CauseReason::ConfigurationNotStarted).since(self.component.boot_reported_at())
        })
    }

    /// Returns the cause of a power action that is due or under way.
    fn due(&self, action: Action) -> ExplainedCause {
        if let Some(obstacle) = self.obstacle(action) {
            return obstacle;
        }
        let is_on = action == Action::PoweringOn;
        let last = self.component.last_action();
        if !is_on && self.component.is_being_shut_down() {
            let awaited =
                ExplainedCause::new(CauseReason::PowerOffAwaited).since(self.component.last_action_at());
            return ExplainedCause { attempt: last.and_then(|last| self.attempt_of(last)), ..awaited };
        }
        ExplainedCause::new(CauseReason::PowerActionDue)
    }

    /// Returns the first obstacle of a power action: a person's hold, a peer that is away, a refusal.
    fn obstacle(&self, action: Action) -> Option<ExplainedCause> {
        let component = self.component;
        if let Some(obstacle) = self.inventory_obstacle() {
            return Some(obstacle);
        }
        let power_trouble =
            component.power.trouble.as_deref().or(self.evidence.evaluated.power_trouble.as_ref());
        let prepared = component.preparation_of(component.attempts(Action::PoweringOn) + 1);
        let preparation = match prepared {
            Some(outcome) => outcome.trouble.as_deref(),
            None => self.evidence.evaluated.configuration_trouble.as_ref(),
        };
        let preparation = preparation.filter(|_| action == Action::PoweringOn);
        self.outage(Peer::Preparation, preparation).or_else(|| self.outage(Peer::Power, power_trouble))
    }

    /// Returns the cause of a node whose next step does not begin because its session is paused.
    fn pause(&self, decision: &Decision) -> Option<ExplainedCause> {
        let trouble = decision.error.trouble().filter(|trouble| trouble.kind() == TroubleKind::Paused);
        let mark = self.component.wish.pause.as_ref().filter(|_| trouble.is_some())?;
        let session = self.component.wish.session.clone().unwrap_or_default();
        let of = |reason| ExplainedCause { session: session.clone(), ..ExplainedCause::new(reason) };
        let cause = match &mark.holder {
            PauseHolder::Client(_) => {
                of(CauseReason::SessionPaused).saying(mark.text(&format!("session {session}")))
            }
            PauseHolder::Rollout => {
                let sight = self.evidence.batch;
                let awaited = of(CauseReason::BatchAwaited).saying(sight.map_or("", |sight| &sight.rollout));
                ExplainedCause { batch: sight.map(|sight| sight.batch), ..awaited }
            }
        };
        Some(cause.since(Some(mark.since)))
    }

    /// Returns the obstacle that the inventory is to every power action: a lock, a node that it does not list, no answer.
    fn inventory_obstacle(&self) -> Option<ExplainedCause> {
        let of = |reason| ExplainedCause::new(reason).about(Peer::Inventory);
        if self.component.inventory.locked {
            return Some(of(CauseReason::NodeLocked).since(self.story.locked_at.or(self.trouble_since())));
        }
        match &self.component.inventory.presence {
            InventoryPresence::Absent { since } | InventoryPresence::Doubtful { since } => {
                Some(of(CauseReason::UnknownToInventory).since(Some(*since)))
            }
            InventoryPresence::Unknown { trouble } => {
                let outage = Trouble::new(TroubleKind::Waiting, Arc::clone(trouble));
                self.outage(Peer::Inventory, outage.as_ref())
            }
            InventoryPresence::Listed => None,
        }
    }

    /// Returns the cause of a peer that is waited for, or that took an action and reports no results; `None`: the
    /// trouble is another one. A power service that names the transition which holds the node is not away.
    fn outage(&self, peer: Peer, trouble: Option<&Trouble>) -> Option<ExplainedCause> {
        let trouble = trouble?;
        match trouble.kind() {
            TroubleKind::Waiting | TroubleKind::NoResults => {
                let holder = self.evidence.holder.filter(|_| peer == Peer::Power);
                let (reason, since, words) = match holder {
                    Some(holder) => (holder.reason(self.now), holder.created_at, &holder.id),
                    None => (CauseReason::UpstreamUnavailable, self.trouble_since(), trouble.text()),
                };
                Some(ExplainedCause::new(reason).about(peer).since(since).saying(Arc::clone(words)))
            }
            TroubleKind::Failed
            | TroubleKind::Exhausted
            | TroubleKind::ConfigurationRefused
            | TroubleKind::Held
            | TroubleKind::NotListed
            | TroubleKind::Paused => None,
        }
    }

    /// Returns the causes of failed attempts, the latest first.
    fn failures(&self) -> Vec<ExplainedCause> {
        let transitions = self.evidence.transitions.unwrap_or_default();
        let failures = self.story.failures(transitions, self.evidence.script);
        failures.into_iter().map(|failure| self.failed_attempt(failure)).collect()
    }

    fn failed_attempt(&self, failure: FailedAttempt) -> ExplainedCause {
        let FailedAttempt { reason, action: _, number, since, words } = failure;
        let most = self.component.retry_limit(self.evidence.options);
        ExplainedCause {
            attempt: Some(AttemptNumber { number, most }),
            ..ExplainedCause::new(reason).since(Some(since)).saying(words)
        }
    }

    fn attempt_of(&self, action: Action) -> Option<AttemptNumber> {
        let number = self.component.attempts(action);
        let most = self.component.retry_limit(self.evidence.options);
        (number > 0).then_some(AttemptNumber { number, most })
    }

    /// Returns the begin of the trouble that the record shows.
    fn trouble_since(&self) -> Option<Timestamp> {
        self.component.evaluation.error_begin.as_ref().map(|begin| begin.since)
    }

    /// Returns the last stage with proof, and the first without.
    fn stages(&self, head: &ExplainedCause) -> (Option<BootStage>, Option<BootStage>) {
        if !self.component.kernel_wanted() {
            return (None, None);
        }
        let is_configured = self.component.desired_configuration().is_some_and(|name| !name.is_empty());
        let missing = match (head.reason, head.peer) {
            (CauseReason::AsWanted, _) => {
                let last = if is_configured { BootStage::Configured } else { BootStage::Reported };
                return (Some(last), None);
            }
            (
                CauseReason::UpstreamUnavailable | CauseReason::UnknownToConfiguration,
                Some(Peer::Configuration),
            ) if self.component.runs_wanted() => Some(BootStage::Configured),
            (CauseReason::UpstreamUnavailable, Some(Peer::Power)) => Some(BootStage::PowerAccepted),
            (CauseReason::PowerStateUnknown, _)
                if self.component.last_action() != Some(Action::PoweringOn) =>
            {
                Some(BootStage::PowerAccepted)
            }
            (reason, _) => reason.row().missing,
        };
        let scripts_are_known = match self.evidence.script {
            ScriptEvidence::Known { .. } => true,
            ScriptEvidence::NotOffered | ScriptEvidence::Unknown => false,
        };
        (missing.and_then(|stage| stage.before(scripts_are_known)), missing)
    }
}

/// Returns whether a failed attempt only repeats the current cause.
fn is_repeated(later: &ExplainedCause, first: &ExplainedCause) -> bool {
    later.reason == first.reason && later.attempt == first.attempt && later.words == first.words
}
