//! Statuses, events and differences, as lines.

use crate::device::{
    event::DeviceEvent,
    record::{
        Device,
        annotations::RestoreMark,
        status::{DeviceStatus, StatusEntry},
    },
};

/// Returns statuses with their texts: summary, updated status, applications, stage of life.
pub(super) fn statuses(status: &DeviceStatus) -> String {
    let entries = [
        entry("", status.summary.status.word(), &status.summary),
        entry("", status.updated.status.word(), &status.updated),
        entry("apps ", status.applications.status.word(), &status.applications),
        entry("life ", status.lifecycle.status.word(), &status.lifecycle),
    ];
    entries.join(" | ")
}

/// Returns a status with its text.
pub(super) fn entry<S>(name: &str, word: &str, entry: &StatusEntry<S>) -> String {
    let info = if entry.info.is_empty() { String::new() } else { format!(" \"{}\"", entry.info) };
    format!("{name}{word}{info}")
}

/// Returns the words of statuses alone.
pub(super) fn words(status: &DeviceStatus) -> String {
    let words = [
        status.summary.status.word(),
        status.updated.status.word(),
        status.applications.status.word(),
        status.lifecycle.status.word(),
    ];
    words.join(" ")
}

/// Returns the reasons of events; a warning begins with `W`.
pub(super) fn reasons(events: &[DeviceEvent]) -> String {
    let reasons = events.iter().map(|event| {
        let sign = if event.reason.is_warning() { "W " } else { "" };
        let fields = event.updated_fields.join(",");
        format!(" !{sign}{}{}{fields}", event.reason.word(), if fields.is_empty() { "" } else { ":" })
    });
    reasons.collect()
}

/// Returns the annotations and the reported version of a device.
pub(super) fn versions(device: &Device) -> String {
    let annotations = &device.meta.annotations;
    let mark = match annotations.restore_mark {
        None => "unmarked",
        Some(RestoreMark::AwaitingReconnect) => "awaiting",
        Some(RestoreMark::ConflictPaused) => "paused",
    };
    let rendered = annotations.rendered_version.map_or("-".to_owned(), |version| version.to_string());
    let hash = annotations.rendered_spec_hash.as_ref().map_or("-", |hash| &*hash.0);
    let template = annotations.rendered_template_version.as_ref().map_or("-", |version| &*version.0);
    let runs = &device.reported.rendered_version;
    format!("{mark} rendered={rendered} hash={hash} rendered-template={template} runs={runs}")
}
