//! Input of a driver besides the host: the operation.

use domain::{
    core::time::Timestamp,
    host::{
        firmware::reading::{FirmwareComponent, FirmwareWishes},
        record::{call::PreparationParts, operation::OperationKind, progress::HostWork},
    },
};
use host_calls::CallOrder;
use upstream::SecretText;

/// Operation that a driver is asked about.
#[derive(Debug, Clone)]
pub(crate) struct WorkOrder {
    /// Call, as every driver needs it.
    pub(crate) call: CallOrder,
    /// Documents for the system, of a provisioning.
    pub(crate) documents: DeployDocuments,
    /// Firmware, of a preparation or servicing that changes it.
    pub(crate) firmware: FirmwareOrder,
}

/// Firmware that an operation is to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FirmwareOrder {
    /// Wishes that were not begun before the operation.
    pub(crate) wishes: FirmwareWishes,
    /// Components as they were before the operation.
    pub(crate) known: Vec<FirmwareComponent>,
}

/// Documents that a system reads when it first starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeployDocuments {
    /// Instructions for the system.
    pub(crate) user_data: Option<SecretText>,
    /// Configuration of the network.
    pub(crate) network_data: Option<SecretText>,
    /// Facts that take the place of the usual ones.
    pub(crate) meta_data: Option<SecretText>,
}

impl FirmwareOrder {
    /// Returns whether nothing is to be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.wishes == FirmwareWishes::default()
    }
}

impl WorkOrder {
    /// Kind of the operation.
    pub(crate) fn kind(&self) -> OperationKind {
        self.call.kind()
    }

    /// Call of the rules.
    pub(crate) fn work(&self) -> &HostWork {
        &self.call.work
    }

    /// Time at which the driver was first asked for this operation; `None`: it was not.
    pub(crate) fn asked_before(&self) -> Option<Timestamp> {
        self.call.asked_before
    }

    /// Changes that calls of the operation are about, this one and earlier ones.
    pub(crate) fn parts(&self) -> PreparationParts {
        self.work().parts.or(self.work().call.parts())
    }
}
