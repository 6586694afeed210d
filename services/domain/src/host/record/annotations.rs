//! Annotations that steer a host, as parsed values (host reference 1.12, 1.14, 1.15).

use std::sync::Arc;

use crate::{
    core::time::Timestamp,
    host::record::status::{HostInventory, HostStatus},
};

/// Annotation with the time until which a host may give up its system, however many others do.
pub const DISCARD_UNTIL: &str = "reveille.io/discard-until";

/// Annotations of a host that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAnnotations {
    /// Whether the host is left alone.
    pub paused: bool,
    /// Mark that the driver is to let go of the host.
    pub detached: Option<DetachMark>,
    /// Requests to reboot, or to hold the power off.
    pub reboots: Vec<RebootRequest>,
    /// Request about inspection.
    pub inspect: Option<InspectRequest>,
    /// Whether the value of that request is no word of the contract, so that it counts as one to inspect again.
    pub is_inspect_unreadable: bool,
    /// Time until which the host may give up its system, however many others do.
    pub discard_until: Option<Timestamp>,
    /// Inventory that a person supplies; `Err`: its text cannot be read.
    pub hardware_details: Option<Result<Arc<HostInventory>, UnreadableText>>,
    /// Status to restore; `Err`: its text cannot be read.
    pub status: Option<Result<Box<HostStatus>, UnreadableText>>,
}

/// Text of an annotation that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnreadableText;

/// Mark that the driver is to let go of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DetachMark {
    /// Whether an operation of the driver is interrupted.
    pub force: bool,
    /// Whether a deletion waits until the mark is removed.
    pub delays_deletion: bool,
}

/// Request to reboot a host, or to hold its power off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebootRequest {
    /// Author's key, of a request that holds the power off until its author removes it; `None`: reboot once.
    pub key: Option<Arc<str>>,
    /// Manner of the power-off.
    pub mode: RebootMode,
    /// Whether it counts before a system is installed.
    pub force: bool,
    /// Whether its value could not be read, so that it counts as a soft one.
    pub is_unreadable: bool,
}

/// Manner of a power-off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RebootMode {
    /// The operating system shuts down.
    #[default]
    Soft,
    /// The power is cut.
    Hard,
}

/// Request about inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InspectRequest {
    /// The host is not inspected.
    Disabled,
    /// The host is inspected again.
    Again,
}

/// Name of an annotation that the rules remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnnotationName {
    /// Request to reboot once.
    Reboot,
    /// Request to inspect again.
    Inspect,
    /// Supplied inventory.
    HardwareDetails,
    /// Status to restore.
    Status,
}

impl AnnotationName {
    /// The name in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reboot => "reboot.metal3.io",
            Self::Inspect => "inspect.metal3.io",
            Self::HardwareDetails => "inspect.metal3.io/hardwaredetails",
            Self::Status => "baremetalhost.metal3.io/status",
        }
    }
}

impl HostAnnotations {
    /// Removes an annotation; returns whether it was there.
    pub(crate) fn remove(&mut self, name: AnnotationName) -> bool {
        match name {
            AnnotationName::Reboot => {
                let before = self.reboots.len();
                self.reboots.retain(|request| request.key.is_some());
                self.reboots.len() < before
            }
            AnnotationName::Inspect => {
                self.inspect.take_if(|request| *request == InspectRequest::Again).is_some()
            }
            AnnotationName::HardwareDetails => self.hardware_details.take().is_some(),
            AnnotationName::Status => self.status.take().is_some(),
        }
    }
}
