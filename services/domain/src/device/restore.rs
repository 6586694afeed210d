//! Restored databases: devices may run newer specs than the service knows (device reference 2.7).
//!
//! Each function returns the changed device, which the caller evaluates; `None`: nothing is to be done.

use std::sync::Arc;

use crate::device::record::{
    Device, annotations::RestoreMark, status::LifecycleStatus, version::RenderedVersion,
};

/// Marks a device after a restore. The caller forgets when the agent was last seen.
pub fn mark_restored(device: &Device) -> Option<Device> {
    let is_marked = device.meta.annotations.restore_mark == Some(RestoreMark::AwaitingReconnect);
    let is_ending = device.status.lifecycle.status >= LifecycleStatus::Decommissioning;
    (!is_marked && !is_ending).then(|| with_mark(device, Some(RestoreMark::AwaitingReconnect)))
}

/// Compares the versions of agent and service when an agent of a marked device polls for the first time. `reported` is
/// the version in its words; empty: none.
pub fn reconnect(device: &Device, reported: &str) -> Option<Device> {
    if device.meta.annotations.restore_mark != Some(RestoreMark::AwaitingReconnect) {
        return None;
    }
    let known = device.meta.annotations.rendered_version.unwrap_or(RenderedVersion::NONE);
    let is_ahead = RenderedVersion::reported(reported) > known;
    let mut reconnected = with_mark(device, is_ahead.then_some(RestoreMark::ConflictPaused));
    reconnected.reported.rendered_version = match reported {
        "" => Arc::from("0"),
        reported => reported.into(),
    };
    Some(reconnected)
}

/// Lets a paused device go on. The next rendering gives it a version above the one that its agent runs.
pub fn resume(device: &Device) -> Option<Device> {
    if device.meta.annotations.restore_mark != Some(RestoreMark::ConflictPaused) {
        return None;
    }
    let mut resumed = with_mark(device, None);
    resumed.meta.annotations.rendered_spec_hash = None;
    Some(resumed)
}

fn with_mark(device: &Device, mark: Option<RestoreMark>) -> Device {
    let mut marked = device.clone();
    marked.meta.annotations.restore_mark = mark;
    marked
}
