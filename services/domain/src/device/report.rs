//! Reports of agents: the parts of a device that a status document may overwrite (device reference 2.2).

use crate::{
    core::invalid::Invalid,
    device::record::{
        Device,
        report::{AgentReport, IntegrityStatus},
        status::{ApplicationsStatus, LifecycleStatus, StatusEntry},
    },
};

/// Most bytes of a document that an agent writes. A report about a hundred applications has about 25 KiB.
pub const LARGEST_DOCUMENT: usize = 256 << 10;

/// Status document that an agent or a person writes. The summary and the updated status in it have no effect, because
/// the service decides them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusDocument {
    /// Report of the agent.
    pub report: AgentReport,
    /// Stage of life.
    pub lifecycle: StatusEntry<LifecycleStatus>,
}

/// Checks the size of a document of an agent, in bytes on the wire.
///
/// # Errors
/// Names `field`, the part of the request that is too large.
pub fn check_size(field: &str, bytes: usize) -> Result<(), Invalid> {
    if bytes <= LARGEST_DOCUMENT {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("has {bytes} bytes when encoded, more than the {LARGEST_DOCUMENT} that are allowed"),
    ))
}

/// Returns the device with a status document merged into it. The caller evaluates the result.
#[must_use]
pub fn merge(device: &Device, document: StatusDocument) -> Device {
    let StatusDocument { report, lifecycle } = document;
    let mut merged = device.clone();
    merged.reported = merge_report(&device.reported, report);
    merged.status.lifecycle = merge_lifecycle(&device.status.lifecycle, lifecycle);
    merged
}

/// Clients send documents that they have read, so conditions of the service arrive with those of the agent.
fn merge_report(known: &AgentReport, mut report: AgentReport) -> AgentReport {
    report.conditions.retain(|condition| !condition.kind.is_of_service());
    if report.integrity.overall.status == IntegrityStatus::Unknown {
        report.integrity = known.integrity.clone();
    }
    if report.applications_verdict.status == ApplicationsStatus::Unknown {
        report.applications_verdict.status = known.applications_verdict.status;
    }
    report
}

/// Stages of life never go back, so no document leads back either (choice V4).
fn merge_lifecycle(
    known: &StatusEntry<LifecycleStatus>,
    document: StatusEntry<LifecycleStatus>,
) -> StatusEntry<LifecycleStatus> {
    StatusEntry { status: known.status.max(document.status), info: document.info }
}
