//! Power of a host at its Ironic.
//!
//! Ironic keeps no record of a request that is over. So a request that was made is remembered until its operation ends;
//! after a restart of this part a request that left no trace at Ironic is made again, which has no effect on a host that
//! is as wanted. A reboot shows no effect, so there the intent on record stands for the request.

use std::time::Duration;

use domain::host::record::{
    annotations::RebootMode,
    call::{DriverAnswer, DriverCall},
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    answers::{LATER, SOON, Step, after_change, done, failed, running},
    node::{IronicNode, NodePower, ProvisionState, ProvisionVerb},
    operation::HostOperation,
};

/// Power request of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PowerGoal {
    On,
    Off,
    Reboot,
}

/// Node as the rules of power see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PowerSight {
    state: ProvisionState,
    power: NodePower,
    /// Whether Ironic is about to change the power.
    is_changing: bool,
    is_locked: bool,
    has_error: bool,
    /// Whether a waiting or cleaning node is interrupted for a power-off.
    is_interrupted: bool,
    request: PowerRequest,
}

/// Knowledge about the request of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PowerRequest {
    NotMade,
    /// Made before this part was restarted, or not at all.
    Unknown,
    Made,
}

/// Next step of a power request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PowerStep {
    Done,
    Wait {
        is_short: bool,
    },
    Request,
    /// Ends what the ramdisk waits for.
    Interrupt,
    /// The request failed, in the words of the node.
    Failed,
    NoEffect,
}

/// Returns the next step of a power request.
fn power_step(goal: PowerGoal, node: PowerSight) -> PowerStep {
    let is_waiting = matches!(node.state, ProvisionState::InspectWait | ProvisionState::CleanWait);
    if goal != PowerGoal::On && is_waiting && node.is_interrupted {
        return PowerStep::Interrupt;
    }
    if node.state.is_passing() {
        return PowerStep::Wait { is_short: false };
    }
    if node.is_changing || (node.is_locked && node.request == PowerRequest::Made) {
        return PowerStep::Wait { is_short: true };
    }
    let is_as_wanted = match goal {
        PowerGoal::On => node.power == NodePower::On,
        PowerGoal::Off => node.power == NodePower::Off,
        PowerGoal::Reboot => node.request != PowerRequest::NotMade && !node.has_error,
    };
    match node.request {
        _ if is_as_wanted => PowerStep::Done,
        PowerRequest::Made | PowerRequest::Unknown if node.has_error => PowerStep::Failed,
        PowerRequest::Made => PowerStep::NoEffect,
        PowerRequest::Unknown | PowerRequest::NotMade => PowerStep::Request,
    }
}

impl HostOperation<'_> {
    /// Switches the power, or returns how far it is.
    pub(super) async fn switch(&self, goal: PowerGoal, mode: RebootMode) -> Step<DriverAnswer> {
        let Some(node) = self.node().await? else { return Ok(DriverAnswer::NotRegistered) };
        match power_step(goal, self.power_sight(&node)) {
            PowerStep::Done => Ok(done()),
            PowerStep::Wait { is_short: true } => Ok(running(SOON, true)),
            PowerStep::Wait { is_short: false } => Ok(running(LATER, false)),
            PowerStep::Failed => Err(failed(&self.failure(&node).await?)),
            PowerStep::NoEffect => Err(failed("the power request had no effect")),
            PowerStep::Interrupt => {
                self.request(&node, ProvisionVerb::Abort, json!({})).await?;
                Ok(running(SOON, false))
            }
            PowerStep::Request => self.request_power(&node, goal, mode).await,
        }
    }

    fn power_sight(&self, node: &IronicNode) -> PowerSight {
        let request = if self.fleet.has_requested_power(&self.host.key, self.order.work.since) {
            PowerRequest::Made
        } else if self.order.asked_before.is_some() {
            PowerRequest::Unknown
        } else {
            PowerRequest::NotMade
        };
        let cleaning_disabled =
            matches!(self.order.work.call, DriverCall::PowerOff { cleaning_disabled: true, .. });
        let is_inspected = node.state == ProvisionState::InspectWait;
        PowerSight {
            state: node.state,
            power: node.power,
            is_changing: node.target_power.is_some(),
            is_locked: node.is_locked,
            has_error: !node.last_error.is_empty(),
            is_interrupted: is_inspected || node.is_cleaned_by_hand || cleaning_disabled,
            request,
        }
    }

    async fn request_power(
        &self,
        node: &IronicNode,
        goal: PowerGoal,
        mode: RebootMode,
    ) -> Step<DriverAnswer> {
        self.fleet.note_power_request(&self.host.key, self.order.work.since);
        let wanted = request_body(goal, mode, self.fleet.soft_off);
        let mut sent = self.backend.power(node, &wanted).await;
        // Some hardware types know no soft requests.
        let is_unknown = |status: Option<StatusCode>| status == Some(StatusCode::BAD_REQUEST);
        if mode == RebootMode::Soft && sent.as_ref().is_err_and(|failure| is_unknown(failure.status)) {
            let wanted = request_body(goal, RebootMode::Hard, self.fleet.soft_off);
            sent = self.backend.power(node, &wanted).await;
        }
        match sent {
            Ok(()) => Ok(running(SOON, true)),
            Err(failure) => {
                let answer = after_change(failure);
                if !matches!(answer, DriverAnswer::InProgress { .. }) {
                    self.fleet.forget_power_request(&self.host.key);
                }
                Err(answer)
            }
        }
    }
}

/// Returns the body of a power request.
fn request_body(goal: PowerGoal, mode: RebootMode, soft_off: Duration) -> Value {
    match (goal, mode) {
        (PowerGoal::On, _) => json!({"target": "power on"}),
        (PowerGoal::Off, RebootMode::Hard) => json!({"target": "power off"}),
        (PowerGoal::Reboot, RebootMode::Hard) => json!({"target": "rebooting"}),
        (PowerGoal::Off, RebootMode::Soft) => {
            json!({"target": "soft power off", "timeout": soft_off.as_secs().max(1)})
        }
        (PowerGoal::Reboot, RebootMode::Soft) => {
            json!({"target": "soft rebooting", "timeout": soft_off.as_secs().max(1)})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_request_is_made_once() {
        use NodePower::{Off, On};
        use PowerRequest::{Made, NotMade, Unknown};
        let at = |power, request| PowerSight {
            state: ProvisionState::Active,
            power,
            is_changing: false,
            is_locked: false,
            has_error: false,
            is_interrupted: false,
            request,
        };
        let failing = |sight| PowerSight { has_error: true, ..sight };
        let changing = |sight| PowerSight { is_changing: true, ..sight };
        let locked = |sight| PowerSight { is_locked: true, ..sight };
        let waiting = |state, is_interrupted| PowerSight { state, is_interrupted, ..at(On, NotMade) };
        let rows = [
            (PowerGoal::On, at(Off, NotMade), PowerStep::Request),
            (PowerGoal::On, failing(at(Off, NotMade)), PowerStep::Request),
            (PowerGoal::On, at(On, NotMade), PowerStep::Done),
            (PowerGoal::On, at(Off, Unknown), PowerStep::Request),
            (PowerGoal::On, failing(at(Off, Unknown)), PowerStep::Failed),
            (PowerGoal::On, at(Off, Made), PowerStep::NoEffect),
            (PowerGoal::On, failing(at(Off, Made)), PowerStep::Failed),
            (PowerGoal::On, changing(at(Off, NotMade)), PowerStep::Wait { is_short: true }),
            (PowerGoal::On, locked(at(Off, Made)), PowerStep::Wait { is_short: true }),
            (PowerGoal::On, locked(at(Off, NotMade)), PowerStep::Request),
            (PowerGoal::Off, at(Off, Made), PowerStep::Done),
            (PowerGoal::Off, at(On, NotMade), PowerStep::Request),
            (PowerGoal::Reboot, at(On, NotMade), PowerStep::Request),
            (PowerGoal::Reboot, at(On, Unknown), PowerStep::Done),
            (PowerGoal::Reboot, at(On, Made), PowerStep::Done),
            (PowerGoal::Reboot, failing(at(On, Made)), PowerStep::Failed),
            (PowerGoal::Off, waiting(ProvisionState::InspectWait, true), PowerStep::Interrupt),
            (PowerGoal::On, waiting(ProvisionState::InspectWait, true), PowerStep::Wait { is_short: false }),
            (PowerGoal::Off, waiting(ProvisionState::CleanWait, false), PowerStep::Wait { is_short: false }),
            (PowerGoal::Off, waiting(ProvisionState::Cleaning, true), PowerStep::Wait { is_short: false }),
        ];
        for (goal, sight, expected) in rows {
            assert_eq!(power_step(goal, sight), expected, "{goal:?} {sight:?}");
        }
    }

    #[test]
    fn soft_requests_have_a_deadline() {
        let soft = request_body(PowerGoal::Off, RebootMode::Soft, Duration::from_secs(180));
        assert_eq!(soft, json!({"target": "soft power off", "timeout": 180}));
        let hard = request_body(PowerGoal::Reboot, RebootMode::Hard, Duration::from_secs(180));
        assert_eq!(hard, json!({"target": "rebooting"}));
    }
}
