//! Action on one system, from the first poll to its effect.

use std::{sync::Arc, time::Duration};

use redfish::{BmcClient, BmcTurn, ResetAction, SystemPower};
use tokio::time::{Instant, sleep_until, timeout_at};
use upstream::{Failure, FailureKind};

use super::reset::ResetKind;
use crate::driver::progress::TaskState;

/// Instruction for the reset of systems.
#[derive(Clone)]
pub(super) struct ResetOrder {
    pub(super) reset: ResetKind,
    /// Most time until the effect shows.
    pub(super) patience: Duration,
    /// Time between polls of the power.
    pub(super) pause: Duration,
    /// Whether no other owner continues the action.
    pub(super) still_ours: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl ResetOrder {
    pub(super) fn is_ours(&self) -> bool {
        (self.still_ours)()
    }
}

/// Order for one system.
pub(super) struct ResetTask<'a> {
    pub(super) bmc: &'a BmcClient,
    /// Path of the system; empty: the only one.
    pub(super) system: &'a str,
    pub(super) order: &'a ResetOrder,
}

/// Whether the reset was requested from the BMC.
enum ResetRequest {
    No,
    Yes,
    /// The BMC may have received the request or not; the text has the reason of the doubt.
    Perhaps(String),
}

impl ResetRequest {
    fn without_effect(&self, words: String) -> TaskState {
        match self {
            Self::No => TaskState::Failed(words),
            Self::Yes | Self::Perhaps(_) => TaskState::TimedOut(words),
        }
    }
}

/// Result of one step.
enum ResetStep {
    Done,
    /// The effect may still come; the text has the present state.
    Wait(String),
}

impl ResetTask<'_> {
    /// Carries the order out: requests the reset once, unless the power is as wanted, and polls until it is.
    ///
    /// A BMC that is not reached is tried again until the time is over, since nothing has happened. A BMC that may have
    /// received the request is not asked a second time.
    ///
    /// Returns the end of the task: a failure with the BMC's words if the BMC refuses, and with the last observation if
    /// there is no effect in time, or the action is not ours any more. Nothing is requested after that.
    pub(super) async fn carry_out(&self) -> TaskState {
        let deadline = Instant::now() + self.order.patience;
        let mut asked = ResetRequest::No;
        let mut last = "its turn did not come".to_owned();
        while self.order.is_ours() {
            let next = Instant::now() + self.order.pause;
            let Ok(mut turn) = timeout_at(deadline, self.bmc.turn()).await else { break };
            let step = self.step(&mut turn, &mut asked, deadline).await;
            drop(turn);
            match step {
                Ok(ResetStep::Done) => return TaskState::Succeeded,
                Ok(ResetStep::Wait(seen)) => last = seen,
                Err(failure) => return asked.without_effect(failure.text),
            }
            if next >= deadline {
                break;
            }
            sleep_until(next).await;
        }
        let words = self.out_of_time(&asked, &last);
        asked.without_effect(words)
    }

    /// Polls the system, and requests the reset if it is due.
    async fn step(
        &self,
        turn: &mut BmcTurn<'_>,
        asked: &mut ResetRequest,
        deadline: Instant,
    ) -> Result<ResetStep, Failure> {
        let (path, system) = match turn.system(self.system).await {
            Ok(found) => found,
            Err(failure) => return wait_for(failure),
        };
        match (system.power, &asked) {
            (power, _) if power == self.order.reset.target() => Ok(ResetStep::Done),
            // The power is changing or unknown: neither is a reason to request a reset.
            (SystemPower::Other(text), _) => Ok(ResetStep::Wait(text)),
            (SystemPower::On | SystemPower::Off, ResetRequest::No) if Instant::now() < deadline => {
                self.ask(turn, &path, &system.reset, asked).await
            }
            (SystemPower::On, _) => Ok(ResetStep::Wait("PowerState is 'On'".to_owned())),
            (SystemPower::Off, _) => Ok(ResetStep::Wait("PowerState is 'Off'".to_owned())),
        }
    }

    async fn ask(
        &self,
        turn: &mut BmcTurn<'_>,
        path: &str,
        action: &ResetAction,
        asked: &mut ResetRequest,
    ) -> Result<ResetStep, Failure> {
        let allowable = match turn.allowable(action).await {
            Ok(allowable) => allowable,
            Err(failure) => return wait_for(failure),
        };
        let reset_type = self.order.reset.choose(&allowable).map_err(|reason| turn.refusal(&reason))?;
        let failure = match turn.reset(path, action, &reset_type, Arc::clone(&self.order.still_ours)).await {
            Ok(()) => {
                *asked = ResetRequest::Yes;
                return Ok(ResetStep::Wait(format!("{reset_type} was accepted")));
            }
            Err(failure) => failure,
        };
        match failure.kind {
            FailureKind::Unreachable => Ok(ResetStep::Wait(failure.text)),
            FailureKind::Ambiguous => {
                *asked = ResetRequest::Perhaps(failure.text.clone());
                Ok(ResetStep::Wait(failure.text))
            }
            // The BMC may refuse because another client changed the power since the poll.
            FailureKind::Refused | FailureKind::Denied => match turn.system(path).await {
                Ok((_, system)) if system.power == self.order.reset.target() => Ok(ResetStep::Done),
                Ok(_) | Err(_) => Err(failure),
            },
        }
    }

    fn out_of_time(&self, asked: &ResetRequest, last: &str) -> String {
        let (name, word, patience) = (self.bmc.name(), self.order.reset.word(), self.order.patience);
        match asked {
            ResetRequest::No => format!("{name} could not be asked for {word} within {patience:?}: {last}"),
            ResetRequest::Yes => format!("{name}: {word} had no effect within {patience:?}: {last}"),
            ResetRequest::Perhaps(doubt) => {
                format!("{name}: {word} had no effect within {patience:?}: {last}; when asked: {doubt}")
            }
        }
    }
}

/// Returns the step after a failed poll: trouble may pass, a refusal does not.
fn wait_for(failure: Failure) -> Result<ResetStep, Failure> {
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Ambiguous => Ok(ResetStep::Wait(failure.text)),
        FailureKind::Refused | FailureKind::Denied => Err(failure),
    }
}
