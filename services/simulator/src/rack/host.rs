//! A host on the rack, and the operation on it.

use std::time::Duration;

use proto::simulation::{OperateRackHostRequest, RackHealth, RackHost, RackOperation};

use super::faults::{FaultEffect, RackFault};
use crate::node::PowerCommand;

/// A host on the rack.
#[derive(Debug, Clone)]
pub(super) struct SimulatedHost {
    pub(super) id: String,
    pub(super) seed: u64,
    pub(super) boot_mac: String,
    pub(super) faults: Vec<RackFault>,
    /// Name of the node of the fleet that the host is, if the fleet has such a node.
    pub(super) node: String,
    /// Whether the fleet has the node, so that its power is that of the host.
    pub(super) is_node: bool,
    pub(super) is_on: bool,
    /// Command to the node that is not given yet.
    pub(super) order: Option<PowerCommand>,
    /// System that runs on the host, as far as the rack knows.
    system: Option<String>,
    /// Inserted image.
    media: Option<String>,
    needs_adoption: bool,
    has_power_failure: bool,
    /// Last operation, under way or ended.
    pub(super) operation: Option<HostOperation>,
}

/// Operation on a host.
#[derive(Debug, Clone)]
pub(super) struct HostOperation {
    pub(super) id: String,
    pub(super) kind: RackOperation,
    image: String,
    /// Time of its end; `None`: it never ends.
    ends_at: Option<Duration>,
    failure: Option<&'static str>,
    /// Power of the node that ends the operation; `None`: its time ends it.
    ends_with: Option<bool>,
    /// Whether its effect has shown.
    is_over: bool,
}

/// Progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationProgress {
    Done,
    Running(Duration),
    Failed(&'static str),
}

/// Time after which an operation that never ends is looked at again.
const HANGING: Duration = Duration::from_secs(60);

/// Time after which a node that is switched is looked at again.
const SWITCHING: Duration = Duration::from_millis(200);

impl SimulatedHost {
    pub(super) fn new(request: &OperateRackHostRequest, seed: u64, faults: Vec<RackFault>) -> Self {
        let runs = request.runs_a_system;
        Self {
            id: uuid::Builder::from_random_bytes(u128::from(seed).to_be_bytes()).into_uuid().to_string(),
            seed,
            boot_mac: request.boot_mac.clone(),
            faults,
            node: request.address.rsplit('/').next().unwrap_or_default().to_owned(),
            is_node: false,
            is_on: runs,
            order: None,
            system: None,
            media: None,
            needs_adoption: runs,
            has_power_failure: false,
            operation: None,
        }
    }

    /// Takes the power of the node of that name from `power`, which returns `None` for a node that does not exist.
    pub(super) fn follow_node(&mut self, power: impl Fn(&str) -> Option<bool>) {
        let is_on = power(&self.node);
        self.is_node = is_on.is_some();
        self.is_on = is_on.unwrap_or(self.is_on);
    }

    /// Returns the command to the node that was not given yet.
    pub(super) fn take_order(&mut self) -> Option<(String, PowerCommand)> {
        Some((self.node.clone(), self.order.take()?))
    }

    /// Returns whether an operation is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.operation.as_ref().is_some_and(|operation| !operation.is_over)
    }

    /// Begins an operation that takes `duration`, in place of any other.
    pub(super) fn begin(&mut self, request: &OperateRackHostRequest, now: Duration, duration: Duration) {
        let kind = request.operation();
        let effect = self.faults.iter().find_map(|fault| fault.effect(kind));
        let (ends_at, failure) = match effect {
            Some(FaultEffect::Hangs) => (None, None),
            Some(FaultEffect::Fails(text)) => (Some(now + duration), Some(text)),
            None => (Some(now + duration), None),
        };
        let command = command(kind).filter(|_| self.is_node && effect.is_none());
        self.order = command.or(self.order);
        self.operation = Some(HostOperation {
            id: request.operation_id.clone(),
            kind,
            image: request.image.clone(),
            ends_at,
            failure,
            ends_with: command.map(|command| command == PowerCommand::On),
            is_over: false,
        });
    }

    /// Shows the effect of an operation that has ended by `now`, and returns its progress; `None`: there was none.
    pub(super) fn advance(&mut self, now: Duration) -> Option<OperationProgress> {
        let operation = self.operation.as_mut()?;
        if !operation.is_over && operation.ends_with.is_some_and(|power| power != self.is_on) {
            return Some(OperationProgress::Running(SWITCHING));
        }
        let Some(ends_at) = operation.ends_at else { return Some(OperationProgress::Running(HANGING)) };
        if operation.ends_with.is_none() && now < ends_at {
            return Some(OperationProgress::Running(ends_at.saturating_sub(now)));
        }
        let failure = operation.failure;
        if !std::mem::replace(&mut operation.is_over, true) {
            let kind = operation.kind;
            let image = operation.image.clone();
            self.take_effect(kind, image, failure.is_some());
        }
        Some(failure.map_or(OperationProgress::Done, OperationProgress::Failed))
    }

    fn take_effect(&mut self, kind: RackOperation, image: String, has_failed: bool) {
        if switches_power(kind) {
            self.has_power_failure = has_failed;
        }
        if has_failed {
            return;
        }
        match kind {
            RackOperation::PowerOn | RackOperation::Reboot => self.is_on = true,
            RackOperation::SoftPowerOff | RackOperation::HardPowerOff => self.is_on = false,
            RackOperation::Provision => {
                self.system = Some(image);
                self.switch(PowerCommand::On);
            }
            RackOperation::Adopt => self.needs_adoption = false,
            RackOperation::Deprovision => {
                self.system = None;
                self.needs_adoption = false;
                self.switch(PowerCommand::ForceOff);
            }
            RackOperation::InsertMedia => self.media = Some(image),
            RackOperation::EjectMedia => self.media = None,
            RackOperation::Unspecified
            | RackOperation::Register
            | RackOperation::Inspect
            | RackOperation::Prepare
            | RackOperation::Detach
            | RackOperation::Delete => {}
        }
    }

    /// Switches the host as a part of another operation. A node follows when it can.
    fn switch(&mut self, command: PowerCommand) {
        if self.is_node {
            self.order = Some(command);
        } else {
            self.is_on = command == PowerCommand::On;
        }
    }

    /// Returns the host as a listing shows it.
    pub(super) fn shown(&self, name: &str) -> RackHost {
        let is_dead = self.faults.contains(&RackFault::DeadBmc);
        let health = if self.has_power_failure { RackHealth::Critical } else { RackHealth::Ok };
        RackHost {
            name: name.to_owned(),
            powered_on: (!is_dead).then_some(self.is_on),
            is_busy: self.is_busy(),
            has_power_failure: self.has_power_failure,
            health: health.into(),
            needs_adoption: self.needs_adoption,
        }
    }
}

/// Returns the command to a node that an operation consists of; `None`: it is no single command.
fn command(kind: RackOperation) -> Option<PowerCommand> {
    match kind {
        RackOperation::PowerOn => Some(PowerCommand::On),
        RackOperation::SoftPowerOff => Some(PowerCommand::SoftOff),
        RackOperation::HardPowerOff => Some(PowerCommand::ForceOff),
        RackOperation::Unspecified
        | RackOperation::Register
        | RackOperation::Inspect
        | RackOperation::Prepare
        | RackOperation::Provision
        | RackOperation::Adopt
        | RackOperation::Deprovision
        | RackOperation::Reboot
        | RackOperation::Detach
        | RackOperation::Delete
        | RackOperation::InsertMedia
        | RackOperation::EjectMedia => None,
    }
}

fn switches_power(kind: RackOperation) -> bool {
    match kind {
        RackOperation::PowerOn
        | RackOperation::SoftPowerOff
        | RackOperation::HardPowerOff
        | RackOperation::Reboot => true,
        RackOperation::Unspecified
        | RackOperation::Register
        | RackOperation::Inspect
        | RackOperation::Prepare
        | RackOperation::Provision
        | RackOperation::Adopt
        | RackOperation::Deprovision
        | RackOperation::Detach
        | RackOperation::Delete
        | RackOperation::InsertMedia
        | RackOperation::EjectMedia => false,
    }
}
