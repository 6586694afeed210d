//! One action on one system, from the first look to its effect.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout_at};
use upstream::{Failure, FailureKind};

use super::{
    bmc::{Bmc, Turn},
    reset::Reset,
    system::{Power, ResetAction},
};
use crate::progress::TaskState;

/// What is to be done to systems.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) reset: Reset,
    /// How long its effect may take.
    pub(super) patience: Duration,
    /// Time between looks at the power.
    pub(super) pause: Duration,
    /// Whether nobody else goes on with it.
    pub(super) still_ours: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Order {
    pub(super) fn is_ours(&self) -> bool {
        (self.still_ours)()
    }
}

/// An order, and to which system.
pub(super) struct Task<'a> {
    pub(super) bmc: &'a Bmc,
    /// Path of the system; empty: the only one.
    pub(super) system: &'a str,
    pub(super) order: &'a Order,
}

/// Whether the BMC was asked for the reset.
enum Asked {
    No,
    Yes,
    /// It may have heard, or not; this is why nobody knows.
    Perhaps(String),
}

impl Asked {
    fn without_effect(&self, words: String) -> TaskState {
        match self {
            Self::No => TaskState::Failed(words),
            Self::Yes | Self::Perhaps(_) => TaskState::TimedOut(words),
        }
    }
}

/// What one step found.
enum Step {
    Done,
    /// It may still come; this is how it looks.
    Wait(String),
}

impl Task<'_> {
    /// Does it: asks the BMC once, unless the power is as wanted, and looks until it is.
    ///
    /// A BMC that is not reached is tried again until the time is over, since nothing has happened. One that may
    /// have heard is not asked a second time.
    ///
    /// Tells how it ended: without success in the BMC's words if it refuses, and with what was seen last if there is no
    /// effect in time, or it is not ours any more. Nothing is asked for after that.
    pub(super) async fn carry_out(&self) -> TaskState {
        let deadline = Instant::now() + self.order.patience;
        let mut asked = Asked::No;
        let mut last = "its turn did not come".to_owned();
        while self.order.is_ours() {
            let next = Instant::now() + self.order.pause;
            let Ok(mut turn) = timeout_at(deadline, self.bmc.turn()).await else { break };
            let step = self.step(&mut turn, &mut asked, deadline).await;
            drop(turn);
            match step {
                Ok(Step::Done) => return TaskState::Succeeded,
                Ok(Step::Wait(seen)) => last = seen,
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

    /// Looks, and asks where that is due.
    async fn step(&self, turn: &mut Turn<'_>, asked: &mut Asked, deadline: Instant) -> Result<Step, Failure> {
        let (path, system) = match turn.system(self.system).await {
            Ok(found) => found,
            Err(failure) => return wait_for(failure),
        };
        match (system.power, &asked) {
            (power, _) if power == self.order.reset.target() => Ok(Step::Done),
            // On its way, or not known: neither is a reason to ask.
            (Power::Other(text), _) => Ok(Step::Wait(text)),
            (Power::On | Power::Off, Asked::No) if Instant::now() < deadline => {
                self.ask(turn, &path, &system.reset, asked).await
            }
            (Power::On, _) => Ok(Step::Wait("PowerState is 'On'".to_owned())),
            (Power::Off, _) => Ok(Step::Wait("PowerState is 'Off'".to_owned())),
        }
    }

    async fn ask(
        &self,
        turn: &mut Turn<'_>,
        path: &str,
        action: &ResetAction,
        asked: &mut Asked,
    ) -> Result<Step, Failure> {
        let allowable = match turn.allowable(action).await {
            Ok(allowable) => allowable,
            Err(failure) => return wait_for(failure),
        };
        let reset_type = self.order.reset.choose(&allowable).map_err(|reason| turn.refusal(&reason))?;
        let failure = match turn.reset(path, action, &reset_type, Arc::clone(&self.order.still_ours)).await {
            Ok(()) => {
                *asked = Asked::Yes;
                return Ok(Step::Wait(format!("{reset_type} was accepted")));
            }
            Err(failure) => failure,
        };
        match failure.kind {
            FailureKind::Unreachable => Ok(Step::Wait(failure.text)),
            FailureKind::Ambiguous => {
                *asked = Asked::Perhaps(failure.text.clone());
                Ok(Step::Wait(failure.text))
            }
            // It may refuse because it is so already, whoever did it since the look.
            FailureKind::Refused | FailureKind::Denied => match turn.system(path).await {
                Ok((_, system)) if system.power == self.order.reset.target() => Ok(Step::Done),
                Ok(_) | Err(_) => Err(failure),
            },
        }
    }

    fn out_of_time(&self, asked: &Asked, last: &str) -> String {
        let (name, word, patience) = (self.bmc.name(), self.order.reset.word(), self.order.patience);
        match asked {
            Asked::No => format!("{name} could not be asked for {word} within {patience:?}: {last}"),
            Asked::Yes => format!("{name}: {word} had no effect within {patience:?}: {last}"),
            Asked::Perhaps(doubt) => {
                format!("{name}: {word} had no effect within {patience:?}: {last}; when asked: {doubt}")
            }
        }
    }
}

/// What to make of a look that failed: trouble may pass, a refusal does not.
fn wait_for(failure: Failure) -> Result<Step, Failure> {
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Ambiguous => Ok(Step::Wait(failure.text)),
        FailureKind::Refused | FailureKind::Denied => Err(failure),
    }
}
