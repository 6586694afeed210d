//! Judges where a component stands by its record and by the readings of the upstreams (BOS reference 5.3, with the
//! faults of BUG-11 and BUG-32 mended).
//!
//! Missing knowledge never decides anything: without a reading of the current generation a component stays where it is.
//! A node that an upstream left out of its answer is held until the upstream lists it again; the node keeps its phase
//! and stays enabled.

use crate::{
    boot::{
        bos::{compatibility::Compatibility, options::Options},
        component::{
            Action, Component, Phase,
            report::StatusReport,
            status::{ComponentProgress, ComponentStatus, computed_status},
            turns::{ERROR_TURNED_TOO_OFTEN, ERROR_TURNS_SPENT, are_turns_spent, turned_too_often},
        },
        configuration::ConfigurationObservation,
        power::PowerObservation,
    },
    core::{
        decision::DecisionVersion,
        text::text,
        time::Timestamp,
        trouble::{ErrorChange, Trouble, TroubleKind},
    },
};

mod notice;
mod reason;
mod rows;
mod version;

pub use notice::DecisionNotice;
pub use reason::Reason;
pub use rows::awaits_configuration;
pub use version::{RULES_VERSION, current_version};

/// The power upstream answered and left the node out.
pub const ERROR_POWER_MISSING: &str = "Component information was not returned by pcs";
/// The configuration upstream answered and left the node out.
pub const ERROR_CONFIGURATION_MISSING: &str = "Component information was not returned by cfs";
/// The configuration upstream gave up on the node.
pub const ERROR_CONFIGURATION_FAILED: &str = "cfs configuration failed";
/// The configuration upstream used an unknown word; the word follows.
pub const ERROR_CONFIGURATION_UNKNOWN: &str =
    "cfs is not reporting a valid configuration status for this component: ";
/// The power upstream knows the node but not its power state, and gave no reason.
pub const ERROR_POWER_UNDEFINED: &str = "the power state of the component is undefined";
/// The inventory locks the node, so its power is left alone.
pub const ERROR_LOCKED: &str =
    "the inventory locks the node against power operations; it goes on once the node is unlocked";
/// Beginning of every text about a configuration that the configuration upstream does not take; the upstream's words
/// follow.
pub const ERROR_CONFIGURATION_REFUSED: &str = "Error encountered setting CFS information: ";
/// A boot that began in an earlier generation is awaited. Its report may be among commits that the database has lost,
/// and a node reports a boot once.
pub const ERROR_REPORT_AWAITED: &str = "waiting for the node to report the boot that its last action began; the \
     report may have been lost, so the wait ends max_boot_wait_time after that action";
/// Beginning of the text of a component whose attempts were all used up while no upstream gave a reason; the effect
/// follows.
pub const ERROR_RETRIES_EXHAUSTED: &str = "the retry limit was reached";
/// [`ERROR_RETRIES_EXHAUSTED`] in the words of BOS.
const BOS_RETRIES_EXHAUSTED: &str =
    "The retry limit has been hit for this component, but no services have reported specific errors";
/// Beginning of BOS's text about a power-on that the power upstream refused; the upstream's words follow.
const BOS_POWER_ON_REFUSED: &str = "Error encountered calling CAPMC to power on: ";

/// Evidence about a node besides its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Observed power.
    pub power: PowerObservation,
    /// Power actions of the generation that had begun when the power was requested.
    pub begun_actions: u32,
    /// Observed configuration.
    pub configuration: ConfigurationObservation,
    /// Trouble of the peer that reports the power, with the beginning of its outage and its last error; while the power is
    /// known, the reason why the next action waits for that peer. `None`: there is none, or the power was only just
    /// requested.
    pub power_trouble: Option<Trouble>,
    /// Trouble of the peer that reports the configuration; while another configuration is known than the wanted one,
    /// the reason why the wanted one could not be set.
    pub configuration_trouble: Option<Trouble>,
}

impl Evidence {
    /// Returns whether the power was requested after the last action had begun. An earlier reading does not show that
    /// the action had no effect.
    fn is_after_last_action(&self, component: &Component) -> bool {
        component.last_action_failed() || self.begun_actions >= component.begun_actions()
    }
}

/// Position of a component with its reason, and the time until which it holds while nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Phase of the component from now on.
    pub phase: Phase,
    /// Word that replaces the computed status; empty: none.
    pub status_override: String,
    /// Whether the component is finished or failed, so that no service acts on it any more.
    pub settled: bool,
    /// Whether the last action is known not to have had its effect.
    pub action_failed: bool,
    /// Change of the error that the component shows.
    pub error: ErrorChange,
    /// Rule that decided.
    pub reason: Reason,
    /// First moment at which the same evidence leads to another decision; `None`: never.
    pub until: Option<Timestamp>,
}

impl Decision {
    /// Returns the decision about `component` as BOS makes and words it, where BOS is followed strictly: a node that an
    /// upstream left out is given up, on hold, and stays so until an operator or a session enables it (BOS reference
    /// 12, BUG-32).
    #[must_use]
    pub fn followed(self, component: &Component, compatibility: Compatibility) -> Self {
        if !compatibility.strict_bos {
            return self;
        }
        let error = self.bos_error(component).map_or_else(|| self.error.clone(), ErrorChange::Show);
        Self { settled: self.settled || self.reason.is_held(), error, ..self }
    }

    /// Returns the error in the words of BOS, where BOS has words of its own (BOS reference, appendix A.3).
    fn bos_error(&self, component: &Component) -> Option<Trouble> {
        let trouble = self.error.trouble()?;
        if trouble.kind() == TroubleKind::Exhausted {
            return Some(Trouble::own(TroubleKind::Exhausted, BOS_RETRIES_EXHAUSTED));
        }
        let refused = progress(self, component) == ComponentProgress::PowerOnPending
            && component.last_action() == Some(Action::PoweringOn)
            && !component.waits_for_power_upstream()
            && component.power.trouble.as_deref() == Some(trouble);
        let text = format!("{BOS_POWER_ON_REFUSED}{}", trouble.text());
        refused.then(|| Trouble::own(trouble.kind(), &text))
    }

    /// Returns the report to the registry about `component`, decided with the rules and options of `decided_by`;
    /// `None`: the record already says all of it.
    pub fn report(&self, component: &Component, decided_by: DecisionVersion) -> Option<StatusReport> {
        let report = StatusReport {
            id: component.id.clone(),
            revision: component.revision,
            phase: self.phase,
            status_override: text(&self.status_override),
            settled: self.settled,
            action_failed: self.action_failed,
            awaits_evidence: self.reason.awaits_evidence(),
            error: self.error.clone(),
            decided_by,
            reason: text(self.reason.word()),
        };
        Some(report).filter(|report| report.changes(component))
    }
}

/// Decides where `component` stands.
///
/// Power is judged first, and configuration only where the answer depends on it, except that a node that the
/// configuration upstream left out is always held. A component that is not enabled is left alone.
///
/// ```
/// use domain::{
///     boot::{
///         bos::options::Options,
///         component::{Component, Phase},
///         configuration::ConfigurationObservation,
///         evaluation::{Evidence, evaluate},
///         power::PowerObservation,
///     },
///     core::{id::ComponentId, time::Timestamp},
/// };
///
/// let node = Component::new(ComponentId::parse("x1000c0s0b0n0")?);
/// let node = node.with(|node| node.wish.enabled = Some(true));
/// let evidence = Evidence {
///     power: PowerObservation::On,
///     begun_actions: 0,
///     configuration: ConfigurationObservation::Known { desired: None, status: String::new() },
///     power_trouble: None,
///     configuration_trouble: None,
/// };
/// // The node runs, and nothing is wanted of it: it is shut down.
/// let decision = evaluate(&node, &evidence, &Options::default(), Timestamp(0));
/// assert_eq!(decision.phase, Phase::PoweringOff);
/// assert_eq!(decision.reason.word(), "power_off_needed");
///
/// // A reading that is missing decides nothing.
/// let evidence = Evidence { power: PowerObservation::Unknown, ..evidence };
/// assert_eq!(evaluate(&node, &evidence, &Options::default(), Timestamp(0)).phase, node.phase());
/// # Ok::<(), domain::core::invalid::Invalid>(())
/// ```
pub fn evaluate(component: &Component, evidence: &Evidence, options: &Options, now: Timestamp) -> Decision {
    let mut decision = rows::judge(component, evidence, options, now);
    if decision.reason.is_waiting() {
        warn_of_spent_turns(&mut decision, component, options);
        return decision;
    }
    if computed_status(component) == ComponentStatus::Failed {
        fail(&mut decision, Reason::AlreadyFailed);
        return decision;
    }
    if decision.reason.is_held() {
        return decision;
    }
    show_trouble(&mut decision, component, evidence);
    give_up_when_exhausted(&mut decision, component, evidence, options, now);
    hold_when_turned_too_often(&mut decision, component, options);
    warn_of_spent_turns(&mut decision, component, options);
    show_pause(&mut decision, component, options, now);
    if decision.reason.is_success() && !options.disable_components_on_completion {
        // The component stays enabled, and its next state is judged again.
        decision.settled = false;
    }
    decision
}

/// Ends the work on a component without success.
fn fail(decision: &mut Decision, reason: Reason) {
    decision.status_override = ComponentStatus::Failed.word().to_owned();
    decision.settled = true;
    decision.reason = reason;
    decision.until = None;
}

/// Chooses the error text of a decision that has none of its own.
///
/// While the power is being changed, the trouble of a peer is shown: the awaited peer of the preparation for the coming
/// power-on, else the refusal of that preparation, else that of the last power action. Once an action has begun and was not refused, older texts are cleared,
/// as BOS clears them when it acts. A text of Reveille about missing evidence is cleared once the evidence is there.
/// Every other text stays, so a finished node still shows its past trouble.
fn show_trouble(decision: &mut Decision, component: &Component, evidence: &Evidence) {
    if decision.error != ErrorChange::Keep {
        return;
    }
    let unlisted = component.inventory.presence.trouble().filter(|_| !decision.settled);
    decision.error = match unlisted {
        Some(trouble) => ErrorChange::Show(trouble),
        None => shown_power_trouble(decision, component, evidence),
    };
    if decision.error == ErrorChange::Keep && component.error_passes() {
        decision.error = ErrorChange::Clear;
    }
}

/// Returns the trouble of the power action that comes next, or that is under way.
fn shown_power_trouble(decision: &Decision, component: &Component, evidence: &Evidence) -> ErrorChange {
    let power_trouble = component.power.trouble.as_deref();
    match progress(decision, component) {
        ComponentProgress::PowerOnPending | ComponentProgress::PowerOffPending
            if component.inventory.locked =>
        {
            held_by_lock()
        }
        ComponentProgress::PowerOnPending => {
            let trouble = awaited_preparation(component, evidence).or_else(|| preparation_trouble(component));
            trouble.or(power_trouble).or(evidence.power_trouble.as_ref()).cloned().into()
        }
        ComponentProgress::PowerOffPending => {
            power_trouble.or(evidence.power_trouble.as_ref()).cloned().into()
        }
        ComponentProgress::PowerOnCalled
        | ComponentProgress::PowerOffGracefullyCalled
        | ComponentProgress::PowerOffForcefullyCalled => {
            // The upstream may be back by now, so the action waits for the lock.
            if component.inventory.locked && component.waits_for_power_upstream() {
                return held_by_lock();
            }
            let trouble = power_trouble.cloned().or_else(|| report_awaited(decision, component));
            trouble.map_or(ErrorChange::Clear, ErrorChange::Show)
        }
        ComponentProgress::Configuring | ComponentProgress::Stable => ErrorChange::Keep,
    }
}

/// Returns the trouble of a component that awaits a boot of an earlier generation, such as one that ended when commits were
/// lost.
fn report_awaited(decision: &Decision, component: &Component) -> Option<Trouble> {
    let is_earlier =
        component.reported.boot.as_ref().is_some_and(|boot| boot.generation < component.generation);
    let is_awaited = decision.reason == Reason::BootAwaited && is_earlier;
    is_awaited.then(|| Trouble::own(TroubleKind::NoResults, ERROR_REPORT_AWAITED))
}

fn held_by_lock() -> ErrorChange {
    ErrorChange::Show(Trouble::own(TroubleKind::Held, ERROR_LOCKED))
}

/// Returns the awaited peer of a power-on that no service has prepared yet.
fn awaited_preparation<'a>(component: &Component, evidence: &'a Evidence) -> Option<&'a Trouble> {
    let coming = component.attempts(Action::PoweringOn) + 1;
    let is_awaited = |trouble: &&Trouble| trouble.kind() == TroubleKind::Waiting;
    let trouble = evidence.configuration_trouble.as_ref().filter(is_awaited)?;
    component.preparation_of(coming).is_none().then_some(trouble)
}

/// Returns the trouble of the coming power-on: its preparation failed, or the attempt before was refused.
fn preparation_trouble(component: &Component) -> Option<&Trouble> {
    let spent = component.attempts(Action::PoweringOn);
    let preparation = component.preparation_of(spent + 1).or(component.preparation_of(spent))?;
    preparation.trouble.as_deref()
}

/// Fails a component that waits for an action of which no attempt is left (BOS reference 5.15).
///
/// BOS finds this out when it is about to act; here the decision finds it, so a component never waits for an action
/// that will not come.
fn give_up_when_exhausted(
    decision: &mut Decision,
    component: &Component,
    evidence: &Evidence,
    options: &Options,
    now: Timestamp,
) {
    let exhausted =
        |action| Some(action).filter(|action| component.attempts(*action) >= component.retry_limit(options));
    let exhausted_action = match progress(decision, component) {
        ComponentProgress::PowerOnPending => exhausted(Action::PoweringOn),
        ComponentProgress::PowerOffPending => exhausted(Action::PoweringOffGracefully),
        // Force follows only a shutdown that the node was asked for.
        ComponentProgress::PowerOffGracefullyCalled if component.last_action_failed() => {
            exhausted(Action::PoweringOffGracefully)
        }
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled
            if !component.was_asked_to_shut_down() || evidence.power == PowerObservation::OnAgain =>
        {
            exhausted(Action::PoweringOffForcefully).or_else(|| exhausted(Action::PoweringOffGracefully))
        }
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled => {
            match last_force(component, evidence, options, now) {
                LastForce::NotYet => None,
                LastForce::Pending { until } => {
                    decision.until = Some(until);
                    None
                }
                LastForce::Unread => {
                    decision.until = None;
                    None
                }
                LastForce::InVain => Some(Action::PoweringOffForcefully),
            }
        }
        ComponentProgress::PowerOnCalled | ComponentProgress::Configuring | ComponentProgress::Stable => None,
    };
    let Some(action) = exhausted_action else { return };
    fail(decision, Reason::RetriesExhausted);
    if decision.error.text().unwrap_or(component.error_text()).is_empty() {
        let text = exhausted_text(component, action);
        decision.error = ErrorChange::Show(Trouble::own(TroubleKind::Exhausted, &text));
    }
}

/// Returns the text of a component of which no attempt at `action` is left, as far as the reason is known.
fn exhausted_text(component: &Component, action: Action) -> String {
    let attempts = component.attempts(action);
    if was_switched_on_in_vain(component, action) {
        let power_ons = component.attempts(Action::PoweringOn);
        return format!(
            "{ERROR_RETRIES_EXHAUSTED}: the node was switched on (attempts: {power_ons}) and did not report the wanted boot"
        );
    }
    let effect = match action {
        Action::PoweringOn => format!("off (power-ons: {attempts})"),
        Action::PoweringOffForcefully => format!("on (forced power-offs: {attempts})"),
        Action::PoweringOffGracefully
        | Action::ActualStateCleanup
        | Action::ApplyStaged
        | Action::NewlyDiscovered
        | Action::SessionSetup => format!("on (requests to shut down: {attempts})"),
    };
    format!("{ERROR_RETRIES_EXHAUSTED}: the node is {effect}, and no service reported a failure")
}

/// Returns whether the power actions had their effect, so that the boot is what is missing: the node was switched off
/// again after its last power-on, or is on after it and would be switched off once more.
fn was_switched_on_in_vain(component: &Component, action: Action) -> bool {
    let last = component.last_action();
    component.attempts(Action::PoweringOn) > 0
        && match action {
            Action::PoweringOn => {
                matches!(last, Some(Action::PoweringOffGracefully | Action::PoweringOffForcefully))
            }
            Action::PoweringOffGracefully => {
                last == Some(Action::PoweringOn) && !component.last_action_failed()
            }
            Action::PoweringOffForcefully
            | Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => false,
        }
}

/// Outcome of the last attempt to force a component off.
enum LastForce {
    /// An attempt is left, or the last one waits for its upstream.
    NotYet,
    /// The last attempt still has time.
    Pending { until: Timestamp },
    /// The time of the last attempt is over, and the power was not read since.
    Unread,
    /// The time of the last attempt is over, and the power was read since.
    InVain,
}

fn last_force(component: &Component, evidence: &Evidence, options: &Options, now: Timestamp) -> LastForce {
    let is_last = component.attempts(Action::PoweringOffForcefully) >= component.retry_limit(options);
    if !is_last || component.waits_for_power_upstream() {
        return LastForce::NotYet;
    }
    match component.last_action_wait_ends(options.power_off_wait()) {
        Some(until) if now < until => LastForce::Pending { until },
        Some(_) | None if evidence.is_after_last_action(component) => LastForce::InVain,
        Some(_) | None => LastForce::Unread,
    }
}

/// Holds a component whose power would be turned once more than one wish can explain. The component stays enabled, and
/// goes on when an operator or a session sets its wish again.
fn hold_when_turned_too_often(decision: &mut Decision, component: &Component, options: &Options) {
    let coming = match progress(decision, component) {
        ComponentProgress::PowerOnPending => Action::PoweringOn,
        ComponentProgress::PowerOffPending => Action::PoweringOffGracefully,
        ComponentProgress::PowerOnCalled
        | ComponentProgress::PowerOffGracefullyCalled
        | ComponentProgress::PowerOffForcefullyCalled
        | ComponentProgress::Configuring
        | ComponentProgress::Stable => return,
    };
    if !decision.settled && turned_too_often(component, coming, options) {
        *decision = rows::hold(component, Reason::TurnedTooOften, ERROR_TURNED_TOO_OFTEN);
    }
}

/// Shows that no turn is left while the effect of the last one is awaited. The hold itself comes only with the next turn,
/// which may be half an hour away.
fn warn_of_spent_turns(decision: &mut Decision, component: &Component, options: &Options) {
    let is_under_way = match progress(decision, component) {
        ComponentProgress::PowerOnPending
        | ComponentProgress::PowerOffPending
        | ComponentProgress::PowerOnCalled
        | ComponentProgress::PowerOffGracefullyCalled
        | ComponentProgress::PowerOffForcefullyCalled => component.is_enabled() && !decision.settled,
        ComponentProgress::Configuring | ComponentProgress::Stable => false,
    };
    // The text about a peer is more useful than this one; the text about an awaited report is not.
    let is_replaced = decision.error.trouble().is_none_or(|trouble| {
        decision.reason == Reason::BootAwaited && trouble.kind() == TroubleKind::NoResults
    });
    if is_under_way && is_replaced && are_turns_spent(component, options) {
        decision.error = ErrorChange::Show(Trouble::own(TroubleKind::Held, ERROR_TURNS_SPENT));
    }
}

/// Shows that the next step of the component does not begin because its session is paused. Steps that have begun go on, and
/// show their own trouble.
fn show_pause(decision: &mut Decision, component: &Component, options: &Options, now: Timestamp) {
    let Some(pause) = component.pause_trouble().filter(|_| !decision.settled && !decision.reason.is_held())
    else {
        return;
    };
    let is_stopped = match progress(decision, component) {
        ComponentProgress::PowerOnPending | ComponentProgress::PowerOffPending => {
            decision.reason != Reason::TurnedTooOften
        }
        // The upstream may be back by now, so the action waits for the end of the pause.
        ComponentProgress::PowerOnCalled => component.waits_for_power_upstream(),
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled => {
            match component.last_action_wait_ends(options.power_off_wait()) {
                _ if component.waits_for_power_upstream() || !component.was_asked_to_shut_down() => true,
                Some(due) if now < due => {
                    decision.until = Some(decision.until.map_or(due, |until| until.min(due)));
                    false
                }
                Some(_) | None => true,
            }
        }
        ComponentProgress::Configuring => decision.reason == Reason::ConfigurationDiffers,
        ComponentProgress::Stable => false,
    };
    if is_stopped {
        decision.error = ErrorChange::Show(pause);
    }
}

/// Returns the progress of the component by phase and last action once the decision is written.
fn progress(decision: &Decision, component: &Component) -> ComponentProgress {
    let failed = decision.action_failed || component.last_action_failed();
    ComponentProgress::of(decision.phase, component.last_action(), failed)
}

#[cfg(test)]
mod tests;
