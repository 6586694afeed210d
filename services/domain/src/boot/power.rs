//! Decisions about actions on the power of a node (BOS reference 5.5 to 5.7, 5.15).

use std::time::Duration;

use crate::{
    boot::{
        bos::options::Options,
        component::{
            Action, Component, InventoryPresence,
            status::{ComponentProgress, computed_progress},
            turns::turned_too_often,
        },
    },
    core::time::Timestamp,
};

pub mod claim;
pub mod event;
pub mod foreign;
mod orphan;
mod reading;
pub mod standing;
pub mod transition;

pub use orphan::{AttemptFate, OrphanedWait, orphaned_wait};
pub use reading::{
    PowerObservation, PowerReading, ReadingSource, SAMPLED, SeenOff, Shown, doubt_ends, is_after_report,
    is_newer, is_outdated,
};

/// Decision about the power of a component now. An unresolved earlier action is not part of the record: the caller
/// checks its own transitions before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerDecision {
    /// Begin this attempt.
    Act {
        /// Powering on, off gracefully, or off forcefully.
        action: Action,
        /// Number of the attempt in this generation, counted from 1.
        attempt: u32,
    },
    /// Decide again at `until`: the last action still has time to work, or the pause after a refusal runs.
    Wait {
        /// First moment at which the decision differs.
        until: Timestamp,
    },
    /// Leave the power alone until the record changes.
    Nothing {
        /// Reason for it.
        reason: PowerIdle,
    },
}

/// Reason to leave the power of a component alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerIdle {
    /// The component is not enabled.
    NotEnabled,
    /// An override such as `on_hold` or `failed` stands in the way.
    Overridden,
    /// No action on the power is wanted, or the wanted one was done.
    NotWanted,
    /// Boot data and configuration of the coming power-on are not in place yet.
    NotPrepared,
    /// Boot data or configuration of the coming power-on were refused.
    PreparationFailed,
    /// No attempt is left.
    Exhausted,
    /// An action is due, but the power of the node is unknown or already as the action would make it.
    AwaitingPower,
    /// The inventory locks the node against power operations.
    Locked,
    /// The inventory does not list the node, or has not answered yet whether it does.
    NotListed,
    /// The power was switched off and on in turn too often for one wish.
    TurnedTooOften,
    /// No decision rests on evidence of this generation yet.
    Undecided,
    /// The session of the component is paused.
    Paused,
}

/// Pause before an action is repeated that was refused or failed, for each attempt that was made. An obstacle such as a
/// reservation by another client needs a while to pass.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// Decides whether an action on the power of `component` is due. `power` is the observation of the component in its
/// generation; unknown power is never acted on.
pub fn decide(
    component: &Component,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> PowerDecision {
    match due(component, power, options, now) {
        PowerDecision::Act { action, .. } if !would_change(action, power) => {
            nothing(PowerIdle::AwaitingPower)
        }
        decision @ (PowerDecision::Act { .. }
        | PowerDecision::Wait { .. }
        | PowerDecision::Nothing { .. }) => decision,
    }
}

/// Returns whether `action` would change the power of a node with the observed `power`. Unknown power cannot be changed
/// on purpose.
pub fn would_change(action: Action, power: &PowerObservation) -> bool {
    match action {
        Action::PoweringOn => *power == PowerObservation::Off,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => power.is_on(),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            false
        }
    }
}

/// Expectation that an action still changes the power of a node. While it may, a reading says nothing to a newer
/// generation: "off" is no evidence for "off as wanted" when a power-on is still on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// The effect has arrived, or its time has passed.
    Settled,
    /// The effect may still arrive.
    Pending {
        /// First moment at which the effect is no longer awaited; `None`: the time does not run yet.
        until: Option<Timestamp>,
    },
}

/// Progress of the upstream with an action on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// The upstream may take the action at any time, or works on it.
    Open,
    /// The upstream took the action at this time, and reports nothing more.
    Taken(Timestamp),
    /// The upstream was done with the action at this time, and did not report the power of the node.
    Ended(Timestamp),
}

/// Time that hardware may take to react to a command. An effect that the upstream did not show by then does not arrive
/// any more.
const REACTION: Duration = Duration::from_secs(10);

/// Origin of a call that has no answer on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A caller that no longer waits: this process, which saw the call end, or an earlier process that is over.
    Gone,
    /// Another replica, or this one before it lost its lease: until the work was handed over it may have begun the
    /// call, and may still be waiting for the answer.
    Elsewhere,
}

/// Time for which a call may still take effect in the upstream after its caller left it. A call is handled within
/// milliseconds of its arrival, and one that is still on its way by then was lost with its connection.
const QUIET: Duration = Duration::from_secs(2);

/// Time until the upstream is polled again for a call that it did not show; `None`: the call did not arrive and may be
/// made again. The call is `in_doubt` since its caller left it, or since the work of the `caller` was handed over; no
/// caller waits longer than `longest_call` for an answer.
///
/// A call that shows up at all mostly does so at once, so the first poll is early even when the last one is late.
pub fn next_look(caller: Caller, longest_call: Duration, in_doubt: Duration) -> Option<Duration> {
    let last = last_look(caller, longest_call);
    [QUIET, last].into_iter().find(|look| in_doubt < *look).map(|look| look - in_doubt)
}

/// Time for which a call may still take effect after its caller left it, or after the work was handed over.
pub fn last_look(caller: Caller, longest_call: Duration) -> Duration {
    match caller {
        Caller::Gone => QUIET,
        Caller::Elsewhere => longest_call + QUIET,
    }
}

/// Returns until when the upstream can take a call that was recorded as made at `sent_at`, and that waits no longer than
/// `longest_call` for its answer.
pub fn call_is_over(sent_at: Timestamp, longest_call: Duration) -> Timestamp {
    sent_at.plus(longest_call + QUIET)
}

/// Judges by the newest reading whether `action` may still have its effect. The action has the time of the options (BOS
/// reference 4, `max_power_on_wait_time` and `max_power_off_wait_time`); when the upstream is done with it, only an
/// operating system that was asked to shut down still may take as long.
pub fn outlook(
    action: Action,
    course: Course,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> Outlook {
    let (effect, wait) = match action {
        Action::PoweringOn => (PowerObservation::On, options.power_on_wait()),
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => {
            (PowerObservation::Off, options.power_off_wait())
        }
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            return Outlook::Settled;
        }
    };
    let until = match course {
        Course::Open => None,
        Course::Ended(at) if action != Action::PoweringOffGracefully => Some(at.plus(wait.min(REACTION))),
        Course::Taken(at) | Course::Ended(at) => Some(at.plus(wait)),
    };
    if *power == effect || until.is_some_and(|until| now >= until) {
        return Outlook::Settled;
    }
    Outlook::Pending { until }
}

/// Progress of an attempt that the upstream began and ended without the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The request did not reach the node, as far as is known: its BMC refused, failed or was not there.
    Bmc,
    /// The request reached the node, which did not follow in its time.
    Node,
}

/// Returns whether an attempt has failed that the upstream ended without the effect. A node that was asked to shut down
/// may still do so: its attempt is over when its time is, and then the node is forced off. A node that was not asked is
/// asked again.
pub fn has_failed(action: Action, reach: Reach) -> bool {
    match reach {
        Reach::Bmc => true,
        Reach::Node => action != Action::PoweringOffGracefully,
    }
}

/// Time that the upstream works on a node before it gives the node up (BOS reference 6.3, `taskDeadlineMinutes`).
pub const TASK_DEADLINE: Duration = Duration::from_secs(60);

/// Time that a transition may take beyond that of its nodes. Power services confirm in steps of 15 seconds, and prepare
/// and clean up before and after.
const FOLLOW_MARGIN: Duration = Duration::from_secs(30);

/// Returns whether a transition has outlasted its time, and is to be withdrawn upstream. The transition had
/// `task_deadline` per node from `sent_at`. A withdrawn transition is still open: only the upstream ends it.
pub fn outlasts(sent_at: Timestamp, task_deadline: Duration, now: Timestamp) -> bool {
    now.since(sent_at) >= task_deadline.saturating_add(FOLLOW_MARGIN)
}

/// Time after which the upstream is asked once more to end a transition that it still works on: a worker of the
/// upstream that has died may have taken the signal with it.
pub const WITHDRAW_AGAIN: Duration = Duration::from_secs(60);

/// First moment at which the last action is older than the options allow for its effect; `None`: no action changes the
/// power, or the last one is older at any time.
pub fn effect_due(component: &Component, options: &Options) -> Option<Timestamp> {
    let wait = match component.last_action()? {
        Action::PoweringOn => options.power_on_wait(),
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => options.power_off_wait(),
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            return None;
        }
    };
    component.last_action_wait_ends(wait)
}

/// Action that is due, if it would change the `power`.
fn due(component: &Component, power: &PowerObservation, options: &Options, now: Timestamp) -> PowerDecision {
    if !component.is_enabled() {
        return nothing(PowerIdle::NotEnabled);
    }
    if !component.status_override().is_empty() {
        return nothing(PowerIdle::Overridden);
    }
    if component.evaluation.is_undecided {
        return nothing(PowerIdle::Undecided);
    }
    if component.is_paused() {
        return nothing(PowerIdle::Paused);
    }
    if component.inventory.locked {
        return nothing(PowerIdle::Locked);
    }
    if component.inventory.presence != InventoryPresence::Listed {
        return nothing(PowerIdle::NotListed);
    }
    match computed_progress(component) {
        ComponentProgress::PowerOnPending => power_on(component, options, now),
        ComponentProgress::PowerOffPending => again(component, Action::PoweringOffGracefully, options, now),
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled => {
            force_off(component, power, options, now)
        }
        ComponentProgress::PowerOnCalled | ComponentProgress::Configuring | ComponentProgress::Stable => {
            nothing(PowerIdle::NotWanted)
        }
    }
}

/// A power-on needs boot data and configuration that were accepted for exactly this attempt (BUG-23).
fn power_on(component: &Component, options: &Options, now: Timestamp) -> PowerDecision {
    let preparation = component.preparation_of(component.attempts(Action::PoweringOn) + 1);
    match (attempt(component, Action::PoweringOn, options), preparation) {
        (PowerDecision::Act { .. }, None) => nothing(PowerIdle::NotPrepared),
        (PowerDecision::Act { .. }, Some(done)) if done.trouble.is_some() => {
            nothing(PowerIdle::PreparationFailed)
        }
        (PowerDecision::Act { .. }, Some(_)) => again(component, Action::PoweringOn, options, now),
        (decision, _) => decision,
    }
}

/// Next attempt at `action`, after a pause where the upstream refused the last one or failed at it.
fn again(component: &Component, action: Action, options: &Options, now: Timestamp) -> PowerDecision {
    match (attempt(component, action, options), retry_at(component, action, options)) {
        (PowerDecision::Act { .. }, Some(until)) if now < until => PowerDecision::Wait { until },
        (decision, _) => decision,
    }
}

/// Time at which `action` may be repeated after an attempt that the upstream refused or that failed there; `None`: at
/// once. An attempt that only had no effect in its time has been waited for already.
fn retry_at(component: &Component, action: Action, options: &Options) -> Option<Timestamp> {
    if component.power.trouble.is_none() || component.last_action() != Some(action) {
        return None;
    }
    let wait = if action == Action::PoweringOn { options.power_on_wait() } else { options.power_off_wait() };
    let pause = RETRY_PAUSE.saturating_mul(component.attempts(action));
    Some(component.last_action_at()?.plus(pause.min(wait)))
}

/// Decides about a power-off that had its time without effect: it is forced, again and again. A power-off from before
/// the node was as wanted, or from before the present wish, belongs to the past, and one that was followed by "off" has had
/// its effect, so a running node is asked first, where BOS cuts it off. A node is also asked first if the upstream refused
/// to ask it or [failed](has_failed) at it.
fn force_off(
    component: &Component,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> PowerDecision {
    if *power == PowerObservation::OnAgain {
        return again(component, Action::PoweringOffGracefully, options, now);
    }
    if !component.was_asked_to_shut_down() {
        return match attempt(component, Action::PoweringOffForcefully, options) {
            PowerDecision::Act { .. } => attempt(component, Action::PoweringOffGracefully, options),
            left @ (PowerDecision::Wait { .. } | PowerDecision::Nothing { .. }) => left,
        };
    }
    let not_asked =
        component.last_action() == Some(Action::PoweringOffGracefully) && component.last_action_failed();
    if not_asked {
        return again(component, Action::PoweringOffGracefully, options, now);
    }
    let act = attempt(component, Action::PoweringOffForcefully, options);
    match (act, component.last_action_wait_ends(options.power_off_wait())) {
        (PowerDecision::Act { .. }, Some(until)) if now < until => PowerDecision::Wait { until },
        _ => act,
    }
}

/// Next attempt at `action`, if one is left.
fn attempt(component: &Component, action: Action, options: &Options) -> PowerDecision {
    let done = component.attempts(action);
    if done >= component.retry_limit(options) {
        return nothing(PowerIdle::Exhausted);
    }
    if turned_too_often(component, action, options) {
        return nothing(PowerIdle::TurnedTooOften);
    }
    PowerDecision::Act { action, attempt: done + 1 }
}

fn nothing(reason: PowerIdle) -> PowerDecision {
    PowerDecision::Nothing { reason }
}

#[cfg(test)]
mod tests;
