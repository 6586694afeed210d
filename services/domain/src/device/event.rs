//! Events of a device (device reference 2.9).
//!
//! [`events`] compares the record before and after a change, so that each change has its events wherever it is made.

use std::sync::Arc;

mod reason;

pub use self::reason::{DeviceEventReason, ResourceLevel};
use crate::{
    core::{condition::ConditionStatus, event::EventContent},
    device::record::{
        Device,
        annotations::RestoreMark,
        condition::{ConditionKind, DeviceCondition},
        report::{ResourceKind, ResourceStatus},
        status::{ApplicationsStatus, SummaryStatus, UpdatedStatus},
    },
};

/// Event of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceEvent {
    /// Reason, by which clients select.
    pub reason: DeviceEventReason,
    /// Text for people; empty: the reason says it all.
    pub text: Arc<str>,
    /// Parts of the record that a person changed: `spec`, `labels`, `owner`.
    pub updated_fields: Vec<&'static str>,
}

impl DeviceEvent {
    fn new(reason: DeviceEventReason, text: &Arc<str>) -> Self {
        Self { reason, text: Arc::clone(text), updated_fields: Vec::new() }
    }

    /// Content of the event as it is stored.
    pub fn content(&self) -> EventContent {
        EventContent::of(self.reason.word())
            .saying(&self.text)
            .with("type", if self.reason.is_warning() { "Warning" } else { "Normal" })
            .with("updated_fields", self.updated_fields.join(","))
    }
}

/// Returns the events of a change. Several reasons to report a disconnection are one event.
pub fn events(before: Option<&Device>, after: Option<&Device>) -> Vec<DeviceEvent> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(_)) => return vec![DeviceEvent::new(DeviceEventReason::Created, &Arc::default())],
        (Some(_), None) => return vec![DeviceEvent::new(DeviceEventReason::Deleted, &Arc::default())],
        (None, None) => return Vec::new(),
    };
    let mut found: Vec<_> = updated_fields(before, after).into_iter().collect();
    found.extend(life_events(before, after));
    found.extend(condition_events(before, after));
    found.extend(summary_event(before, after));
    found.extend(updated_event(before, after));
    found.extend(applications_event(before, after));
    found.extend(resource_events(before, after));
    found.extend(image_event(before, after));
    merge_disconnections(found, is_restored(before, after))
}

/// The restore of a database is one event of the system, and not one of each device.
fn is_restored(before: &Device, after: &Device) -> bool {
    let awaiting = Some(RestoreMark::AwaitingReconnect);
    before.meta.annotations.restore_mark != awaiting && after.meta.annotations.restore_mark == awaiting
}

fn merge_disconnections(mut found: Vec<DeviceEvent>, is_restored: bool) -> Vec<DeviceEvent> {
    let mut is_reported = is_restored;
    found.retain(|event| {
        let is_disconnection = event.reason == DeviceEventReason::Disconnected;
        let is_repeated = is_disconnection && is_reported;
        is_reported |= is_disconnection;
        !is_repeated
    });
    found
}

fn updated_fields(before: &Device, after: &Device) -> Option<DeviceEvent> {
    let fields = [
        ("spec", before.spec != after.spec),
        ("labels", before.meta.labels != after.meta.labels),
        ("owner", before.meta.owner != after.meta.owner),
    ];
    let changed: Vec<_> = fields.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect();
    let event = DeviceEvent::new(DeviceEventReason::Updated, &Arc::default());
    (!changed.is_empty()).then_some(DeviceEvent { updated_fields: changed, ..event })
}

fn life_events(before: &Device, after: &Device) -> impl Iterator<Item = DeviceEvent> {
    let was_paused = before.meta.annotations.restore_mark == Some(RestoreMark::ConflictPaused);
    let is_resumed = was_paused && after.meta.annotations.restore_mark.is_none();
    let is_ended = before.spec.decommissioning.is_none() && after.spec.decommissioning.is_some();
    let reasons =
        [(is_resumed, DeviceEventReason::ConflictResolved), (is_ended, DeviceEventReason::Decommissioned)];
    let reasons = reasons.into_iter().filter(|(holds, _)| *holds);
    reasons.map(|(_, reason)| DeviceEvent::new(reason, &Arc::default()))
}

fn condition_events(before: &Device, after: &Device) -> impl Iterator<Item = DeviceEvent> {
    [ConditionKind::SpecValid, ConditionKind::MultipleOwners].into_iter().filter_map(|kind| {
        let is = after.condition(kind)?;
        let reason = condition_reason(before.condition(kind), is)?;
        Some(DeviceEvent::new(reason, &is.message))
    })
}

fn condition_reason(was: Option<&DeviceCondition>, is: &DeviceCondition) -> Option<DeviceEventReason> {
    if was.is_some_and(|was| was.status == is.status) {
        return None;
    }
    let was_true = was.is_some_and(DeviceCondition::is_true);
    match (is.kind, is.status) {
        (ConditionKind::SpecValid, ConditionStatus::True) => Some(DeviceEventReason::SpecValid),
        (ConditionKind::SpecValid, ConditionStatus::False) => Some(DeviceEventReason::SpecInvalid),
        (ConditionKind::MultipleOwners, ConditionStatus::True) => {
            Some(DeviceEventReason::MultipleOwnersDetected)
        }
        (ConditionKind::MultipleOwners, ConditionStatus::False) if was_true => {
            Some(DeviceEventReason::MultipleOwnersResolved)
        }
        (ConditionKind::MultipleOwners, ConditionStatus::False)
        | (ConditionKind::SpecValid | ConditionKind::MultipleOwners, ConditionStatus::Unknown)
        | (ConditionKind::Updating | ConditionKind::Decommissioning, _) => None,
    }
}

fn summary_event(before: &Device, after: &Device) -> Option<DeviceEvent> {
    let summary = &after.status.summary;
    if before.status.summary.status == summary.status {
        return None;
    }
    let reason = match summary.status {
        SummaryStatus::Unknown => DeviceEventReason::Disconnected,
        SummaryStatus::Online => DeviceEventReason::Connected,
        SummaryStatus::Rebooting => DeviceEventReason::IsRebooting,
        SummaryStatus::ConflictPaused => DeviceEventReason::ConflictPaused,
        SummaryStatus::Error
        | SummaryStatus::Degraded
        | SummaryStatus::PoweredOff
        | SummaryStatus::AwaitingReconnect => return None,
    };
    Some(DeviceEvent::new(reason, &summary.info))
}

fn updated_event(before: &Device, after: &Device) -> Option<DeviceEvent> {
    let was = before.status.updated.status;
    let updated = &after.status.updated;
    if was == updated.status {
        return None;
    }
    let reason = match updated.status {
        UpdatedStatus::Updating => DeviceEventReason::ContentUpdating,
        UpdatedStatus::OutOfDate if after.update_error().is_some() => DeviceEventReason::UpdateFailed,
        UpdatedStatus::OutOfDate => DeviceEventReason::ContentOutOfDate,
        UpdatedStatus::UpToDate if was == UpdatedStatus::Unknown => return None,
        UpdatedStatus::UpToDate => DeviceEventReason::ContentUpToDate,
        UpdatedStatus::Unknown => DeviceEventReason::Disconnected,
    };
    Some(DeviceEvent::new(reason, &updated.info))
}

fn applications_event(before: &Device, after: &Device) -> Option<DeviceEvent> {
    let applications = &after.status.applications;
    if before.status.applications.status == applications.status {
        return None;
    }
    let reason = match applications.status {
        ApplicationsStatus::Error => DeviceEventReason::ApplicationError,
        ApplicationsStatus::Degraded => DeviceEventReason::ApplicationDegraded,
        ApplicationsStatus::Healthy | ApplicationsStatus::NoApplications => {
            DeviceEventReason::ApplicationHealthy
        }
        ApplicationsStatus::Unknown => DeviceEventReason::Disconnected,
    };
    Some(DeviceEvent::new(reason, &applications.info))
}

fn resource_events(before: &Device, after: &Device) -> impl Iterator<Item = DeviceEvent> {
    let pairs = before.reported.resources.each().into_iter().zip(after.reported.resources.each());
    pairs.filter_map(|((kind, was), (_, is))| resource_event(kind, was, is))
}

fn resource_event(kind: ResourceKind, was: ResourceStatus, is: ResourceStatus) -> Option<DeviceEvent> {
    if was == is {
        return None;
    }
    let level = match is {
        ResourceStatus::Critical => ResourceLevel::Critical,
        ResourceStatus::Warning => ResourceLevel::Warning,
        ResourceStatus::Healthy if was == ResourceStatus::Unknown => return None,
        ResourceStatus::Healthy | ResourceStatus::Error | ResourceStatus::Unknown => ResourceLevel::Normal,
    };
    Some(DeviceEvent::new(DeviceEventReason::Resource(kind, level), &Arc::default()))
}

fn image_event(before: &Device, after: &Device) -> Option<DeviceEvent> {
    let digest = &after.reported.os.image_digest;
    let is_other = before.reported.os.image_digest != *digest;
    let event = DeviceEvent::new(DeviceEventReason::OsImageChanged, &after.reported.os.image);
    (is_other && !digest.is_empty()).then_some(event)
}
