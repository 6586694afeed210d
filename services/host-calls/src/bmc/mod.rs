//! Resets of hosts at their BMCs, each a poll.
//!
//! A BMC keeps no operations, so what is under way shows in its documents alone. A change is requested once for a step: the
//! request is remembered, and after a restart of the part the intent on record stands for the first reset.

mod requests;

use std::time::Duration;

use chassis::{
    process::clock,
    settings::{HostOperationSettings, seconds},
};
use domain::{
    core::time::Timestamp,
    host::record::{
        annotations::RebootMode,
        call::{DoneFacts, DriverAnswer, DriverTrouble},
    },
};
use redfish::{BmcTurn, ComputerSystem, SystemPower, choose_reset};
use serde_json::Value;
use upstream::{Failure, FailureKind};

use crate::{CallOrder, HostTarget};

pub use requests::{ChangeRequests, ChangeStep};

/// Time until a BMC is asked again about an effect that shows soon.
pub const SOON: Duration = Duration::from_secs(3);

/// Most time until a BMC that serves another caller is free.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Reset that switches a host on.
pub const ON: ResetWords = ResetWords { kinds: &["On", "ForceOn"], word: "power-on" };

/// Reset that switches a host off at once.
pub const HARD_OFF: ResetWords = ResetWords { kinds: &["ForceOff"], word: "hard power-off" };

/// Reset that reboots a host.
pub const RESTART: ResetWords =
    ResetWords { kinds: &["GracefulRestart", "ForceRestart", "PowerCycle"], word: "restart" };

const SOFT_OFF: ResetWords =
    ResetWords { kinds: &["GracefulShutdown", "Off", "ForceOff"], word: "soft power-off" };

/// Result of a step that may end the operation for now.
pub type Step<T> = Result<T, DriverAnswer>;

/// Resets of one operation on a host.
#[derive(Clone, Copy)]
pub struct HostResets<'a> {
    /// Requests of all hosts.
    pub requests: &'a ChangeRequests,
    /// Host of the operation.
    pub host: &'a HostTarget,
    /// Path of its system at the BMC; empty: the only one.
    pub path: &'a str,
    /// Operation.
    pub order: &'a CallOrder,
    /// Times for effects.
    pub patience: ResetPatience,
}

/// Times in which resets have to show their effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetPatience {
    /// Time for the effect of a reset.
    pub effect: Duration,
    /// Time for the effect of a soft power-off.
    pub soft_off: Duration,
}

impl ResetPatience {
    /// Returns the times of the settings.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        Ok(Self {
            effect: seconds("host_operations.effect_seconds", settings.effect_seconds)?,
            soft_off: seconds("host_operations.soft_off_seconds", settings.soft_off_seconds)?,
        })
    }
}

/// System as it was just read.
pub struct SeenSystem {
    /// Path of the system at the BMC.
    pub path: String,
    /// Document of the system.
    pub document: Value,
    /// Power in the document.
    pub power: SystemPower,
}

/// Kinds of reset with one effect, best first, and a word for it.
#[derive(Clone, Copy)]
pub struct ResetWords {
    kinds: &'static [&'static str],
    word: &'static str,
}

/// Reset that a step needs.
#[derive(Clone, Copy)]
pub struct WantedReset {
    step: ChangeStep,
    words: ResetWords,
    /// Time for its effect.
    patience: Duration,
}

impl ResetWords {
    /// Returns the reset for a step whose effect may take that time.
    pub fn step(self, step: ChangeStep, patience: Duration) -> WantedReset {
        WantedReset { step, words: self, patience }
    }
}

impl HostResets<'_> {
    /// Switches the host on, or returns how far it is.
    ///
    /// # Errors
    /// The answer about the operation, where it was not begun or has failed.
    pub async fn power_on(&self, turn: &mut BmcTurn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        match &system.power {
            SystemPower::On => Ok(done()),
            SystemPower::Other(state) => self.while_changing(state),
            SystemPower::Off => {
                self.reset(turn, &system, ON.step(ChangeStep::First, self.patience.effect)).await
            }
        }
    }

    /// Switches the host off, or reboots it if it may never be off; or returns how far it is.
    ///
    /// # Errors
    /// The answer about the operation, where it was not begun or has failed.
    pub async fn power_off(&self, turn: &mut BmcTurn<'_>, mode: RebootMode) -> Step<DriverAnswer> {
        if self.host.disable_power_off {
            return self.reboot(turn).await;
        }
        let system = self.read(turn).await?;
        let wanted = match mode {
            RebootMode::Soft => SOFT_OFF.step(ChangeStep::First, self.patience.soft_off),
            RebootMode::Hard => self.hard_off(),
        };
        match &system.power {
            SystemPower::Off => Ok(done()),
            SystemPower::Other(state) => self.while_changing(state),
            SystemPower::On => self.reset(turn, &system, wanted).await,
        }
    }

    /// Reboots a host that may never be off. Its power shows no effect, so the request is all that there is.
    async fn reboot(&self, turn: &mut BmcTurn<'_>) -> Step<DriverAnswer> {
        let system = self.read(turn).await?;
        if self.requested_at(ChangeStep::First).is_some() {
            return Ok(done());
        }
        self.reset(turn, &system, RESTART.step(ChangeStep::First, self.patience.effect)).await
    }

    /// Returns the first reset of an operation that needs the host off.
    pub fn hard_off(&self) -> WantedReset {
        HARD_OFF.step(ChangeStep::First, self.patience.effect)
    }

    /// Reads the system of the host.
    ///
    /// # Errors
    /// The answer about the operation, where the BMC does not answer as it should.
    pub async fn read(&self, turn: &mut BmcTurn<'_>) -> Step<SeenSystem> {
        let read = turn.system_document(self.path).await;
        let (path, document) = read.map_err(after_read)?;
        let power = ComputerSystem::read(&document).power;
        Ok(SeenSystem { path, document, power })
    }

    /// Requests a reset, unless the step has requested it: then waits for its effect.
    ///
    /// # Errors
    /// The answer about the operation, where the reset was not requested, or had no effect in time.
    pub async fn reset(
        &self,
        turn: &mut BmcTurn<'_>,
        system: &SeenSystem,
        wanted: WantedReset,
    ) -> Step<DriverAnswer> {
        let ResetWords { kinds, word } = wanted.words;
        if let Some(at) = self.requested_at(wanted.step) {
            return await_effect(word, at, wanted.patience);
        }
        let action = ComputerSystem::read(&system.document).reset;
        let allowable = turn.allowable(&action).await.map_err(after_read)?;
        let Some(kind) = choose_reset(kinds, &allowable) else {
            return Err(failed(&format!("the BMC offers no {word}")));
        };
        self.note(wanted.step);
        let still_due = self.order.still_due.shared();
        let requested = turn.reset(&system.path, &action, &kind, still_due).await;
        requested.map(|()| running(SOON)).map_err(|failure| self.not_requested(failure))
    }

    /// Returns whether the operation may have requested a change.
    pub fn has_begun(&self) -> bool {
        self.order.asked_before.is_some() || self.requests.has_any(&self.host.key, self.order.work.since)
    }

    /// Waits while the power is neither on nor off. An operation that has requested nothing yet was not begun: taken for
    /// one under way, it would never request its first reset.
    ///
    /// # Errors
    /// The answer that the host is busy, where the operation has begun nothing.
    pub fn while_changing(&self, state: &str) -> Step<DriverAnswer> {
        if self.has_begun() {
            return Ok(running(SOON));
        }
        let text = format!("the power is changing: {state}").into();
        Err(DriverAnswer::Trouble { kind: DriverTrouble::Busy, text })
    }

    /// Notes that the change of a step is about to be requested.
    pub fn note(&self, step: ChangeStep) {
        self.requests.note(&self.host.key, self.order.work.since, step, clock::now());
    }

    /// Forgets a request that had no effect, and returns the answer about the operation.
    pub fn not_requested(&self, failure: Failure) -> DriverAnswer {
        match failure.kind {
            FailureKind::Ambiguous => {}
            FailureKind::Unreachable | FailureKind::Refused | FailureKind::Denied => {
                self.requests.forget(&self.host.key);
            }
        }
        after_change(failure)
    }

    /// Returns when the change of a step was requested; `None`: it was not.
    pub fn requested_at(&self, step: ChangeStep) -> Option<Timestamp> {
        let noted = self.requests.requested_at(&self.host.key, self.order.work.since, step);
        let recorded = self.order.asked_before.filter(|_| step == ChangeStep::First);
        noted.or(recorded)
    }
}

/// Waits for the effect of a change that was requested at `at`.
///
/// # Errors
/// The answer that the operation has failed, once its time is over.
pub fn await_effect(change: &str, at: Timestamp, patience: Duration) -> Step<DriverAnswer> {
    if clock::now().since(at) < patience {
        Ok(running(SOON))
    } else {
        Err(failed(&format!("{change} had no effect within {patience:?}")))
    }
}

/// Returns the answer about an operation after a failed read, which has no effect.
pub fn after_read(failure: Failure) -> DriverAnswer {
    let text = failure.text.into();
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Ambiguous => {
            DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text }
        }
        FailureKind::Refused | FailureKind::Denied => DriverAnswer::Failed { text },
    }
}

/// Returns the answer about an operation after a failed change: one that may have had its effect is in progress.
pub fn after_change(failure: Failure) -> DriverAnswer {
    match failure.kind {
        FailureKind::Ambiguous => DriverAnswer::InProgress { again_in: SOON, started: true },
        FailureKind::Unreachable | FailureKind::Refused | FailureKind::Denied => after_read(failure),
    }
}

/// Returns the answer that a host is served by another caller of its BMC.
pub fn busy(bmc: &str) -> DriverAnswer {
    let text = format!("{bmc} serves other callers").into();
    DriverAnswer::Trouble { kind: DriverTrouble::Busy, text }
}

/// Returns the answer that an operation is over.
pub fn done() -> DriverAnswer {
    DriverAnswer::Done(DoneFacts { started: true, ..DoneFacts::default() })
}

/// Returns the answer that an operation is under way.
pub fn running(again_in: Duration) -> DriverAnswer {
    DriverAnswer::InProgress { again_in, started: true }
}

/// Returns the answer that an operation has failed.
pub fn failed(text: &str) -> DriverAnswer {
    DriverAnswer::Failed { text: text.into() }
}
