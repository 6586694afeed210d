//! Status engine: one decision about the statuses of a device (device reference 2.1 to 2.6, 2.9).

pub(in crate::device) mod facts;
mod info;
pub mod reason;
mod table;

use std::time::Duration;

use self::{
    facts::StatusFacts,
    reason::{ApplicationsReason, LifecycleReason, SummaryReason, UpdatedReason},
};
use crate::{
    core::time::Timestamp,
    device::{
        application_health::judge_reports,
        event::{DeviceEvent, events},
        record::{
            Device,
            status::{
                ApplicationsStatus, DeviceStatus, LifecycleStatus, StatusEntry, SummaryStatus, UpdatedStatus,
            },
            version::FleetVersion,
        },
    },
};

/// Time without a sign of the agent after which a device counts as disconnected, unless configured otherwise.
pub const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Evidence about a device besides its record.
#[derive(Debug, Clone, Copy)]
pub struct StatusEvidence<'a> {
    /// Fleet that owns the device; `None`: the fleet cannot be read.
    pub fleet: Option<&'a FleetVersion>,
    /// Time at which the agent was last seen; `None`: never.
    pub last_seen: Option<Timestamp>,
    /// Time without a sign of the agent after which the device counts as disconnected.
    pub timeout: Duration,
    /// Present time.
    pub now: Timestamp,
}

/// Decision about the statuses of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusDecision {
    /// Statuses from now on.
    pub status: DeviceStatus,
    /// Reason of each status.
    pub reasons: StatusReasons,
    /// Events of the change.
    pub events: Vec<DeviceEvent>,
    /// Time at which the statuses change unless the agent is seen; `None`: time changes nothing.
    pub until: Option<Timestamp>,
}

/// Reasons of the statuses of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusReasons {
    /// Reason of the summary.
    pub summary: SummaryReason,
    /// Reason of the updated status.
    pub updated: UpdatedReason,
    /// Reason of the status of applications.
    pub applications: ApplicationsReason,
    /// Reason of the stage of life.
    pub lifecycle: LifecycleReason,
}

/// Decides the statuses of a device. Deciding again without new evidence changes nothing.
pub fn evaluate(device: &Device, evidence: &StatusEvidence<'_>) -> StatusDecision {
    let facts = StatusFacts { device, evidence };
    let reasons = StatusReasons {
        summary: table::SUMMARY.first_match(&facts),
        updated: updated_reason(&facts),
        applications: table::APPLICATIONS.first_match(&facts),
        lifecycle: table::LIFECYCLE.first_match(&facts),
    };
    let status = DeviceStatus {
        summary: summary(reasons.summary, &facts),
        updated: updated(reasons.updated, &facts),
        applications: applications(reasons.applications, &facts),
        lifecycle: lifecycle(reasons.lifecycle, &facts),
    };
    let after = Device { status, ..device.clone() };
    let events = events(Some(device), Some(&after));
    StatusDecision { status: after.status, reasons, events, until: facts.disconnects_at() }
}

fn updated_reason(facts: &StatusFacts<'_>) -> UpdatedReason {
    let reason = table::UPDATED.first_match(facts);
    if reason.status() == Some(UpdatedStatus::UpToDate) {
        return table::RUNNING_SYSTEM.first_match(facts).unwrap_or(reason);
    }
    reason
}

/// A pause keeps the text that explained how it began, whatever the agent reports meanwhile (device reference 2.2).
fn summary(reason: SummaryReason, facts: &StatusFacts<'_>) -> StatusEntry<SummaryStatus> {
    let known = &facts.device.status.summary;
    if reason.is_pause() && known.status == reason.status() {
        return known.clone();
    }
    StatusEntry::new(reason.status(), info::summary(reason, facts))
}

fn updated(reason: UpdatedReason, facts: &StatusFacts<'_>) -> StatusEntry<UpdatedStatus> {
    match reason.status() {
        Some(status) => StatusEntry::new(status, info::updated(reason, facts)),
        None => facts.device.status.updated.clone(),
    }
}

fn applications(reason: ApplicationsReason, facts: &StatusFacts<'_>) -> StatusEntry<ApplicationsStatus> {
    let status = match reason {
        ApplicationsReason::Disconnected => ApplicationsStatus::Unknown,
        ApplicationsReason::Rebooting => ApplicationsStatus::Degraded,
        ApplicationsReason::NoApplications => ApplicationsStatus::NoApplications,
        ApplicationsReason::Verdict => return info::verdict(&facts.device.reported.applications_verdict),
        ApplicationsReason::Statuses => return judge_reports(&facts.device.reported.applications),
    };
    StatusEntry::new(status, info::applications(reason))
}

fn lifecycle(reason: LifecycleReason, facts: &StatusFacts<'_>) -> StatusEntry<LifecycleStatus> {
    match reason.status() {
        Some(status) => StatusEntry::new(status, info::lifecycle(reason)),
        None => facts.device.status.lifecycle.clone(),
    }
}
