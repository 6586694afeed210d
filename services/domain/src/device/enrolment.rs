//! Enrolment: how a device gets its record and its certificate (device reference 3.3).

use std::sync::Arc;

use crate::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        label::check_labels,
        record::{
            Device, DeviceLabels,
            annotations::RestoreMark,
            name::DeviceName,
            report::{DeviceIntegrity, OsMode, SystemInfo},
            status::{LifecycleStatus, StatusEntry},
        },
        write::{WriteConflict, WriteRefusal},
    },
};

/// Request of an agent to be enrolled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolmentRequest {
    /// Name of the device, made of its key.
    pub name: DeviceName,
    /// Request for a certificate, in PEM.
    pub csr: Arc<str>,
    /// Labels that the agent suggests.
    pub labels: DeviceLabels,
    /// Facts about the running system.
    pub system_info: Arc<SystemInfo>,
    /// Manner in which the system is updated; `None`: not reported.
    pub os_mode: Option<OsMode>,
    /// Version of the spec that the agent runs from an earlier enrolment, in its words; empty: none.
    pub known_rendered_version: Arc<str>,
    /// Whether the device awaits its agent after a restored database, once it is approved.
    pub awaits_reconnect: bool,
    /// Approval; `None`: nobody has approved the request yet.
    pub approval: Option<EnrolmentApproval>,
    /// Certificate in PEM, which the approval brings; empty: none.
    pub certificate: Arc<str>,
    /// Time of creation.
    pub created: Timestamp,
}

/// Approval of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolmentApproval {
    /// Labels of the device.
    pub labels: DeviceLabels,
    /// Person who approved.
    pub approved_by: Arc<str>,
    /// Time of the approval.
    pub approved_at: Timestamp,
}

/// Verdict of a person about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalWish {
    /// Whether the request is approved. There is no denial: a request that is unwanted is deleted.
    pub approved: bool,
    /// Labels of the person.
    pub labels: DeviceLabels,
    /// Whether these replace the labels that the agent suggests. They win over them in any case.
    pub replace_labels: bool,
    /// Person.
    pub approved_by: Arc<str>,
}

/// Returns a new request with the mark of a device that was enrolled before.
///
/// # Errors
/// When the device exists, or when a label may not be.
pub fn create(request: EnrolmentRequest, is_enrolled: bool) -> Result<EnrolmentRequest, Invalid> {
    if is_enrolled {
        return Err(Invalid::new("metadata.name", "the device is enrolled"));
    }
    check_labels(&request.labels)?;
    let awaits_reconnect = !matches!(&*request.known_rendered_version, "" | "0");
    Ok(EnrolmentRequest { awaits_reconnect, approval: None, ..request })
}

/// Marks a request after a restore. `None`: nothing is to be done.
pub fn mark_restored(request: &EnrolmentRequest) -> Option<EnrolmentRequest> {
    let is_due = request.approval.is_none() && !request.awaits_reconnect;
    is_due.then(|| EnrolmentRequest { awaits_reconnect: true, ..request.clone() })
}

/// Returns the approved request and the device that it makes. The caller signs the certificate and evaluates the
/// device.
///
/// # Errors
/// When the request is approved already, when the person does not approve, or when a label may not be.
pub fn approve(
    request: &EnrolmentRequest,
    wish: ApprovalWish,
    integrity: DeviceIntegrity,
    now: Timestamp,
) -> Result<(EnrolmentRequest, Device), Invalid> {
    if request.approval.is_some() {
        return Err(Invalid::new("approved", "the request is approved already"));
    }
    if !wish.approved {
        return Err(Invalid::new("approved", "must be true: a request that is unwanted is deleted"));
    }
    check_labels(&wish.labels)?;
    let mut labels = if wish.replace_labels { DeviceLabels::new() } else { request.labels.clone() };
    labels.extend(wish.labels);
    let device = enrolled(request, labels.clone(), integrity, now);
    let approval = EnrolmentApproval { labels, approved_by: wish.approved_by, approved_at: now };
    Ok((EnrolmentRequest { approval: Some(approval), ..request.clone() }, device))
}

fn enrolled(
    request: &EnrolmentRequest,
    labels: DeviceLabels,
    integrity: DeviceIntegrity,
    now: Timestamp,
) -> Device {
    let mut device = Device::new(request.name.clone(), now);
    device.meta.labels = labels;
    device.meta.annotations.restore_mark = request.awaits_reconnect.then_some(RestoreMark::AwaitingReconnect);
    device.reported.system_info = Arc::clone(&request.system_info);
    device.reported.os_mode = request.os_mode;
    device.reported.integrity = integrity;
    device.status.lifecycle = StatusEntry::bare(LifecycleStatus::Enrolled);
    device
}

/// Checks that a request may be deleted.
///
/// # Errors
/// When its device exists.
pub fn check_deletion(is_enrolled: bool) -> Result<(), WriteRefusal> {
    if is_enrolled { Err(WriteRefusal::Conflict(WriteConflict::DeviceExists)) } else { Ok(()) }
}
