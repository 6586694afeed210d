//! Events of enrolment requests (device reference 2.9).

use crate::{
    core::event::EventContent,
    device::{enrolment::EnrolmentRequest, event::DeviceEventReason},
};

/// Words for the kinds of events of an enrolment request.
pub const KINDS: [&str; 4] = [
    APPROVED,
    DeviceEventReason::Created.word(),
    DeviceEventReason::Deleted.word(),
    DeviceEventReason::Updated.word(),
];

/// Reason of the event of an approval, in the words of the contract.
const APPROVED: &str = "EnrollmentRequestApproved";

/// Returns the event of a change; `None`: the change is the service's own.
pub fn event(before: Option<&EnrolmentRequest>, after: Option<&EnrolmentRequest>) -> Option<EventContent> {
    let reason = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => DeviceEventReason::Created.word(),
        (Some(_), None) => DeviceEventReason::Deleted.word(),
        (Some(before), Some(after)) if before.approval.is_none() && after.approval.is_some() => APPROVED,
        (Some(before), Some(after)) if is_updated(before, after) => DeviceEventReason::Updated.word(),
        (Some(_), Some(_)) => return None,
    };
    Some(EventContent::of(reason).with("type", "Normal"))
}

/// Returns whether an agent has changed its request, or has renewed its certificate.
fn is_updated(before: &EnrolmentRequest, after: &EnrolmentRequest) -> bool {
    before.renewal != after.renewal || before.csr != after.csr || before.labels != after.labels
}
