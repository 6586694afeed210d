//! Texts of the statuses, for people. No rule reads them.

use std::sync::Arc;

use crate::{
    core::text::text,
    device::{
        evaluation::{
            facts::StatusFacts,
            reason::{ApplicationsReason, LifecycleReason, SummaryReason, UpdatedReason},
        },
        record::{
            report::{ResourceKind, ResourceStatus},
            spec::OsTarget,
            status::{ApplicationsStatus, StatusEntry},
            version::RenderedVersion,
        },
    },
};

/// Returns the text of a summary.
pub(crate) fn summary(reason: SummaryReason, facts: &StatusFacts<'_>) -> Arc<str> {
    match reason {
        SummaryReason::AwaitingReconnect => {
            text("the database was restored, and the device has not reconnected since")
        }
        SummaryReason::ConflictPaused => conflict(facts),
        SummaryReason::Disconnected => disconnected(facts),
        SummaryReason::Rebooting => text("the device is rebooting"),
        SummaryReason::CriticalResource => resources(facts, ResourceStatus::Critical, "critical"),
        SummaryReason::ShortResource => resources(facts, ResourceStatus::Warning, "short"),
        SummaryReason::Connected => Arc::default(),
    }
}

fn conflict(facts: &StatusFacts<'_>) -> Arc<str> {
    let reported = &facts.device.reported.rendered_version;
    let known = facts.device.meta.annotations.rendered_version.unwrap_or(RenderedVersion::NONE);
    let versions = format!("the device runs version {reported}, the service knows version {known}");
    format!("{versions}; resume the device to go on").into()
}

fn disconnected(facts: &StatusFacts<'_>) -> Arc<str> {
    if facts.was_never_seen() {
        return text("the device has not connected yet");
    }
    format!("the device has not connected for more than {:?}", facts.evidence.timeout).into()
}

fn resources(facts: &StatusFacts<'_>, status: ResourceStatus, word: &str) -> Arc<str> {
    let names = facts.resources_of(status).map(|kind| match kind {
        ResourceKind::Cpu => "CPU",
        ResourceKind::Memory => "memory",
        ResourceKind::Disk => "disk",
    });
    names.map(|name| format!("{name} is {word}")).collect::<Vec<_>>().join(", ").into()
}

/// Returns the text of an updated status.
pub(crate) fn updated(reason: UpdatedReason, facts: &StatusFacts<'_>) -> Arc<str> {
    match reason {
        UpdatedReason::AwaitingReconnect => summary(SummaryReason::AwaitingReconnect, facts),
        UpdatedReason::Disconnected => disconnected(facts),
        UpdatedReason::Updating => text(facts.update_message().unwrap_or("the device is updating")),
        UpdatedReason::ConflictPaused => text("the device is paused and gets no spec"),
        UpdatedReason::SpecNotCurrent => out_of_date(facts),
        UpdatedReason::FleetNotCurrent => not_current(facts),
        UpdatedReason::OtherImage => other_image(facts),
        UpdatedReason::CatalogItemUnsupported => {
            text("the spec names an item of a catalogue, and the device takes packages only")
        }
        UpdatedReason::FleetUnreadable | UpdatedReason::FleetCurrent | UpdatedReason::SpecCurrent => {
            Arc::default()
        }
    }
}

fn out_of_date(facts: &StatusFacts<'_>) -> Arc<str> {
    const BASE: &str = "the device does not run its latest spec";
    match facts.device.update_error() {
        Some(message) => format!("{BASE}: {message}").into(),
        None => text(BASE),
    }
}

/// Returns the first reason that is known for a device that does not run the template of its fleet.
fn not_current(facts: &StatusFacts<'_>) -> Arc<str> {
    let rollout_error = &facts.device.meta.annotations.last_rollout_error;
    if !rollout_error.is_empty() {
        return Arc::clone(rollout_error);
    }
    let message = facts.device.update_error();
    text(message.unwrap_or("the device is not scheduled yet for the latest template of its fleet"))
}

fn other_image(facts: &StatusFacts<'_>) -> Arc<str> {
    let wanted = match &facts.device.spec.os {
        Some(OsTarget::Image(image)) => &**image,
        Some(OsTarget::CatalogItem { .. }) | None => "",
    };
    format!("the device runs image '{}' instead of '{wanted}'", facts.device.reported.os.image).into()
}

/// Returns the text of a status of applications that the service decided.
pub(crate) fn applications(reason: ApplicationsReason) -> Arc<str> {
    match reason {
        ApplicationsReason::Disconnected => text("the device is not connected"),
        ApplicationsReason::Rebooting => text("the device is rebooting"),
        ApplicationsReason::NoApplications | ApplicationsReason::Verdict | ApplicationsReason::Statuses => {
            Arc::default()
        }
    }
}

/// Returns the verdict of an agent, with a text where a good one lacks it.
pub(crate) fn verdict(reported: &StatusEntry<ApplicationsStatus>) -> StatusEntry<ApplicationsStatus> {
    if reported.status == ApplicationsStatus::Healthy && reported.info.is_empty() {
        return StatusEntry::new(reported.status, "all applications are healthy");
    }
    reported.clone()
}

/// Returns the text of a stage of life.
pub(crate) fn lifecycle(reason: LifecycleReason) -> Arc<str> {
    match reason {
        LifecycleReason::EndBegun => text("the device is ending its work"),
        LifecycleReason::Ended => text("the device has ended its work"),
        LifecycleReason::EndedInError => text("the device has ended its work, with an error"),
        LifecycleReason::Kept => Arc::default(),
    }
}
