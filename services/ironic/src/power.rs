//! Power of a host at its Ironic.
//!
//! Ironic keeps no record of a request that is over. So a request that was made is remembered until its operation ends;
//! after a restart of this part a request that left no trace at Ironic is made again, which has no effect on a host that
//! is as wanted. A reboot shows no effect, so there the intent on record stands for the request.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use domain::{
    core::time::Timestamp,
    host::record::{
        HostKey,
        annotations::RebootMode,
        call::{DriverAnswer, DriverCall},
    },
};
use host_calls::{CallOrder, HostTarget};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    IronicBackend, NodeAccess,
    answers::{LATER, SOON, Step, after_change, done, failed, running},
    node::{IronicNode, NodePower, ProvisionState, ProvisionVerb},
};

/// Power requests that were made of Ironics, by the first calls of their operations.
#[derive(Default)]
pub struct PowerRequests(Mutex<HashMap<HostKey, Timestamp>>);

impl PowerRequests {
    /// Returns whether the request of the operation that began at `since` was made.
    fn has(&self, host: &HostKey, since: Timestamp) -> bool {
        self.0.lock().get(host) == Some(&since)
    }

    fn note(&self, host: &HostKey, since: Timestamp) {
        self.0.lock().insert(host.clone(), since);
    }

    /// Forgets the request for a host.
    pub fn forget(&self, host: &HostKey) {
        self.0.lock().remove(host);
    }

    /// Forgets the request for a host once its operation is over by that answer.
    pub fn forget_ended(&self, host: &HostKey, answer: &DriverAnswer) {
        if !answer.may_go_on() {
            self.forget(host);
        }
    }

    /// Forgets the requests for hosts that are gone.
    pub fn keep_only(&self, present: &HashSet<&HostKey>) {
        self.0.lock().retain(|host, _| present.contains(host));
    }
}

/// Power call at the node of a host.
#[derive(Clone, Copy)]
pub struct NodePowerCall<'a> {
    /// Requests of all hosts.
    pub requests: &'a PowerRequests,
    /// Ironic of the host.
    pub backend: &'a IronicBackend,
    /// Host of the node.
    pub host: &'a HostTarget,
    /// Operation.
    pub order: &'a CallOrder,
    /// Time for the effect of a soft power-off.
    pub soft_off: Duration,
}

/// Power request of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PowerGoal {
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
    /// Ends the wait of the ramdisk.
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

impl NodePowerCall<'_> {
    /// Switches the host on, or returns how far it is.
    ///
    /// # Errors
    /// The answer about the operation, where it was not begun or has failed.
    pub async fn power_on(&self) -> Step<DriverAnswer> {
        self.switch(PowerGoal::On, RebootMode::Hard).await
    }

    /// Switches the host off, or reboots it if it may never be off; or returns how far it is.
    ///
    /// # Errors
    /// The answer about the operation, where it was not begun or has failed.
    pub async fn power_off(&self, mode: RebootMode) -> Step<DriverAnswer> {
        let goal = if self.host.disable_power_off { PowerGoal::Reboot } else { PowerGoal::Off };
        self.switch(goal, mode).await
    }

    async fn switch(&self, goal: PowerGoal, mode: RebootMode) -> Step<DriverAnswer> {
        let access = NodeAccess { backend: self.backend, host: self.host };
        let Some(node) = access.node().await? else { return Ok(DriverAnswer::NotRegistered) };
        match power_step(goal, self.power_sight(&node)) {
            PowerStep::Done => Ok(done()),
            PowerStep::Wait { is_short: true } => Ok(running(SOON, true)),
            PowerStep::Wait { is_short: false } => Ok(running(LATER, false)),
            PowerStep::Failed => Err(failed(&access.failure(&node).await?)),
            PowerStep::NoEffect => Err(failed("the power request had no effect")),
            PowerStep::Interrupt => {
                access.request(&node, ProvisionVerb::Abort, json!({})).await?;
                Ok(running(SOON, false))
            }
            PowerStep::Request => self.request_power(&node, goal, mode).await,
        }
    }

    fn power_sight(&self, node: &IronicNode) -> PowerSight {
        let request = if self.requests.has(&self.host.key, self.order.work.since) {
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
        self.requests.note(&self.host.key, self.order.work.since);
        let wanted = request_body(goal, mode, self.soft_off);
        let mut sent = self.backend.power(node, &wanted, &self.order.still_due).await;
        // Some hardware types know no soft requests.
        let is_unknown = |status: Option<StatusCode>| status == Some(StatusCode::BAD_REQUEST);
        if mode == RebootMode::Soft && sent.as_ref().is_err_and(|failure| is_unknown(failure.status)) {
            let wanted = request_body(goal, RebootMode::Hard, self.soft_off);
            sent = self.backend.power(node, &wanted, &self.order.still_due).await;
        }
        match sent {
            Ok(()) => Ok(running(SOON, true)),
            Err(failure) => {
                let answer = after_change(failure);
                if !matches!(answer, DriverAnswer::InProgress { .. }) {
                    self.requests.forget(&self.host.key);
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
