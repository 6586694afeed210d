//! Reports of agents: the parts of a device that a status document may overwrite (device reference 2.2).

use crate::device::record::{
    Device,
    report::{AgentReport, IntegrityStatus},
    status::{ApplicationsStatus, LifecycleStatus, StatusEntry},
};

/// Status document that an agent or a person writes. The summary and the updated status in it have no effect, because
/// the service decides them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusDocument {
    /// Report of the agent.
    pub report: AgentReport,
    /// Stage of life.
    pub lifecycle: StatusEntry<LifecycleStatus>,
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
