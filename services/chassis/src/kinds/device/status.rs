//! Statuses that the service decides, and their counts.

use std::collections::BTreeMap;

use domain::{
    core::invalid::Invalid,
    device::{
        counts::DeviceCounts,
        record::status::{
            ApplicationsStatus, DeviceStatus, LifecycleStatus, StatusEntry, SummaryStatus, UpdatedStatus,
        },
    },
};
use proto::device as wire;

use super::words::{entry, read_entry};
use crate::kinds::Interner;

/// Reads the statuses of a device.
///
/// # Errors
/// Names the status that is not known.
pub fn from_wire(status: wire::DeviceStatus, texts: &mut Interner) -> Result<DeviceStatus, Invalid> {
    let applications = "status.applicationsSummary";
    Ok(DeviceStatus {
        summary: read_entry("status.summary", status.summary, SummaryStatus::from_word, texts)?,
        updated: read_entry("status.updated", status.updated, UpdatedStatus::from_word, texts)?,
        applications: read_entry(applications, status.applications, ApplicationsStatus::from_word, texts)?,
        lifecycle: lifecycle(status.lifecycle, texts)?,
    })
}

/// Reads the stage of the life of a device.
///
/// # Errors
/// The stage is not known.
pub fn lifecycle(
    entry: Option<wire::StatusEntry>,
    texts: &mut Interner,
) -> Result<StatusEntry<LifecycleStatus>, Invalid> {
    read_entry("status.lifecycle", entry, LifecycleStatus::from_word, texts)
}

/// Returns the message of the statuses of a device.
pub fn to_wire(status: &DeviceStatus) -> wire::DeviceStatus {
    wire::DeviceStatus {
        summary: Some(entry(&status.summary, SummaryStatus::word)),
        updated: Some(entry(&status.updated, UpdatedStatus::word)),
        applications: Some(entry(&status.applications, ApplicationsStatus::word)),
        lifecycle: Some(entry(&status.lifecycle, LifecycleStatus::word)),
    }
}

/// Returns the message of counts.
pub fn counts_to_wire(counts: DeviceCounts) -> wire::DeviceCounts {
    let words = |counts: BTreeMap<&'static str, u64>| {
        counts.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
    };
    wire::DeviceCounts {
        total: counts.total,
        summary: words(counts.summary),
        updated: words(counts.updated),
        applications: words(counts.applications),
        os_mode: words(counts.os_mode),
    }
}
