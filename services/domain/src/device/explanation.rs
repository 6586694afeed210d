//! Explains why a device is as it is: the causes, the evidence, and the next step.
//!
//! Explanations decide nothing. A device is explained by the facts that its statuses follow from, so an explanation never
//! contradicts them; a request for enrolment is explained by its own record. The causes with their texts are one table,
//! [`DeviceReason`].

mod causes;
mod evidence;
mod reason;
mod table;
#[cfg(test)]
mod tests;

pub use evidence::DeviceEvidenceSource;
pub use reason::DeviceReason;

use self::causes::DeviceView;
use crate::{
    core::explanation::{RecordCause, RecordExplanation},
    device::{
        enrolment::EnrolmentRequest,
        evaluation::{StatusEvidence, facts::StatusFacts},
        record::Device,
    },
};

/// Explanation of a device, or of the request of one to be enrolled.
pub type DeviceExplanation = RecordExplanation<DeviceReason, DeviceEvidenceSource>;

type DeviceCause = RecordCause<DeviceReason>;

/// Evidence about a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceEvidence<'a> {
    /// Record.
    pub device: &'a Device,
    /// Evidence of the status rules.
    pub evaluated: StatusEvidence<'a>,
    /// Request by which the device was enrolled; `None`: there is none, or it was not read.
    pub enrolment: Option<&'a EnrolmentRequest>,
}

/// Explains a device. The first cause is the one to act on: the end of the device, then its contact, its spec, its
/// update, and its work.
pub fn explain_device(evidence: &DeviceEvidence<'_>) -> DeviceExplanation {
    let DeviceEvidence { device, evaluated, enrolment } = *evidence;
    let facts = StatusFacts { device, evidence: &evaluated };
    let mut causes = DeviceView { facts: &facts, enrolment }.causes().into_iter();
    let head = causes.next().unwrap_or_else(|| DeviceCause::new(as_wanted(device)));
    DeviceExplanation {
        namespace: "".into(),
        name: device.meta.name.shared(),
        head,
        others: causes.collect(),
        evidence: evidence::of_device(&facts, enrolment),
    }
}

/// Explains a request of a device without a record.
pub fn explain_request(request: &EnrolmentRequest) -> DeviceExplanation {
    let head = match &request.approval {
        None => DeviceCause::new(DeviceReason::ApprovalAwaited).since(Some(request.created)),
        Some(approval) if approval.has_device => DeviceCause::new(DeviceReason::Deleted),
        Some(approval) => DeviceCause::new(DeviceReason::RecordAwaited).since(Some(approval.approved_at)),
    };
    DeviceExplanation {
        namespace: "".into(),
        name: request.name.shared(),
        head,
        others: Vec::new(),
        evidence: evidence::of_request(request),
    }
}

fn as_wanted(device: &Device) -> DeviceReason {
    let is_wanted = device.meta.owner.is_some() || device.meta.annotations.rendered_version.is_some();
    if is_wanted { DeviceReason::AsWanted } else { DeviceReason::NothingWanted }
}
