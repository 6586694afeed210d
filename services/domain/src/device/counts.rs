//! Counts of devices by status, as summaries show them (device reference 1.7, 4.1).

use std::collections::BTreeMap;

use crate::device::record::Device;

/// Word for devices that do not report how their system is updated.
const NOT_REPORTED: &str = "unknown";

/// Numbers of devices by the words of their statuses. Words that no device has are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// All devices.
    pub total: u64,
    /// Devices by summary.
    pub summary: BTreeMap<&'static str, u64>,
    /// Devices by updated status.
    pub updated: BTreeMap<&'static str, u64>,
    /// Devices by status of applications.
    pub applications: BTreeMap<&'static str, u64>,
    /// Devices by the manner in which their system is updated.
    pub os_mode: BTreeMap<&'static str, u64>,
}

impl DeviceCounts {
    /// Counts a device.
    pub fn add(&mut self, device: &Device) {
        self.total += 1;
        for (counts, word) in self.each(device) {
            *counts.entry(word).or_default() += 1;
        }
    }

    /// Takes a device out that was counted with the same statuses.
    pub fn remove(&mut self, device: &Device) {
        self.total = self.total.saturating_sub(1);
        for (counts, word) in self.each(device) {
            if let Some(count) = counts.get_mut(word) {
                *count = count.saturating_sub(1);
            }
            counts.retain(|_, count| *count > 0);
        }
    }

    fn each(&mut self, device: &Device) -> [(&mut BTreeMap<&'static str, u64>, &'static str); 4] {
        let status = &device.status;
        [
            (&mut self.summary, status.summary.status.word()),
            (&mut self.updated, status.updated.status.word()),
            (&mut self.applications, status.applications.status.word()),
            (&mut self.os_mode, device.reported.os_mode.map_or(NOT_REPORTED, |mode| mode.word())),
        ]
    }
}
