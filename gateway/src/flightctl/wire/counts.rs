//! Numbers of devices by their statuses.

use std::collections::BTreeMap;

use proto::device::{Device, DeviceCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::UNKNOWN;

/// Key of the devices whose agent does not report how the system is updated.
const NOT_REPORTED: &str = "unknown";

/// Numbers of devices by their statuses. Statuses that no device has are missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DevicesSummary {
    /// All devices.
    pub total: u64,
    /// Devices by the status of their applications.
    pub application_status: BTreeMap<String, u64>,
    /// Devices by their summary.
    pub summary_status: BTreeMap<String, u64>,
    /// Devices by whether they run their spec.
    pub update_status: BTreeMap<String, u64>,
    /// Devices by their abilities.
    pub capabilities: CapabilityCounts,
}

/// Numbers of devices by their abilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapabilityCounts {
    /// Devices by the manner in which their system is updated; `unknown`: not reported.
    pub os_mode: BTreeMap<String, u64>,
}

impl DevicesSummary {
    pub(crate) fn of_counts(counts: DeviceCounts) -> Self {
        let DeviceCounts { total, summary, updated, applications, os_mode } = counts;
        Self {
            total,
            application_status: applications,
            summary_status: summary,
            update_status: updated,
            capabilities: CapabilityCounts { os_mode },
        }
    }

    /// Adds a device.
    pub(crate) fn add(&mut self, device: &Device) {
        let status = device.status.as_ref();
        let word = |entry: Option<&proto::device::StatusEntry>| {
            let word = entry.map(|entry| entry.status.as_str()).filter(|word| !word.is_empty());
            word.unwrap_or(UNKNOWN).to_owned()
        };
        let os_mode = device.reported.as_ref().map(|report| report.os_mode.as_str());
        let os_mode = os_mode.filter(|mode| !mode.is_empty()).unwrap_or(NOT_REPORTED);
        self.total += 1;
        let summary = word(status.and_then(|status| status.summary.as_ref()));
        let updated = word(status.and_then(|status| status.updated.as_ref()));
        let applications = word(status.and_then(|status| status.applications.as_ref()));
        *self.summary_status.entry(summary).or_default() += 1;
        *self.update_status.entry(updated).or_default() += 1;
        *self.application_status.entry(applications).or_default() += 1;
        *self.capabilities.os_mode.entry(os_mode.to_owned()).or_default() += 1;
    }
}
