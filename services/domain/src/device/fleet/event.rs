//! Events of fleets.

use crate::{
    core::event::EventContent,
    device::{event::DeviceEventReason, fleet::record::Fleet},
};

/// Words for the kinds of events of a fleet.
pub const KINDS: [&str; 3] =
    [DeviceEventReason::Created.word(), DeviceEventReason::Deleted.word(), DeviceEventReason::Updated.word()];

/// Returns the event of a change. A new version of the template is a change of the spec.
pub fn event(before: Option<&Fleet>, after: Option<&Fleet>) -> Option<EventContent> {
    let (reason, updated_fields) = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => (DeviceEventReason::Created, String::new()),
        (Some(_), None) => (DeviceEventReason::Deleted, String::new()),
        (Some(before), Some(after)) => (DeviceEventReason::Updated, updated_fields(before, after)?),
    };
    let event = EventContent::of(reason.word()).with("type", "Normal");
    Some(event.with("updated_fields", updated_fields))
}

fn updated_fields(before: &Fleet, after: &Fleet) -> Option<String> {
    let fields = [("spec", before.spec != after.spec), ("labels", before.labels != after.labels)];
    let changed: Vec<_> = fields.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect();
    (!changed.is_empty()).then(|| changed.join(","))
}
