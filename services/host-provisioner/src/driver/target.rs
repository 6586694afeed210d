//! Input of a driver: the host, and the operation.

use std::sync::Arc;

use domain::{
    core::time::Timestamp,
    host::{
        firmware::reading::{FirmwareComponent, FirmwareWishes},
        record::{HostKey, call::PreparationParts, operation::OperationKind, progress::HostWork},
    },
};
use redfish::BmcLogin;
use upstream::SecretText;

/// Host as its driver needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostTarget {
    /// Name of the host.
    pub(crate) key: HostKey,
    /// Unique id of the record: names may be reused.
    pub(crate) uid: Arc<str>,
    /// Id of the host at the driver; empty: none yet.
    pub(crate) driver_id: Arc<str>,
    /// Address of the BMC.
    pub(crate) address: Arc<str>,
    /// Whether the certificate of the BMC is taken unverified.
    pub(crate) takes_any_certificate: bool,
    /// MAC address that the host boots from.
    pub(crate) boot_mac: Option<Arc<str>>,
    /// Whether the host may never be off.
    pub(crate) disable_power_off: bool,
    /// Login at the BMC; `None`: none can be read.
    pub(crate) login: Option<BmcLogin>,
}

/// Operation that a driver is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkOrder {
    /// Call of the rules.
    pub(crate) work: HostWork,
    /// Time at which the driver was first asked for this operation, if it may have been: the operation may be under way,
    /// or over.
    pub(crate) asked_before: Option<Timestamp>,
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
        self.work.call.kind()
    }

    /// Changes that calls of the operation are about, this one and earlier ones.
    pub(crate) fn parts(&self) -> PreparationParts {
        self.work.parts.or(self.work.call.parts())
    }
}
