//! Enrolment: how a device gets its record and its certificate (device reference 3.3).

pub mod event;

use std::sync::Arc;

use crate::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        certificate::{CertificateRevocation, DeviceCertificate, RevocationReason},
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
    /// Latest certificate, of which the approval brings the first.
    pub certificate: Option<DeviceCertificate>,
    /// Latest renewal of the certificate; `None`: it was not renewed.
    pub renewal: Option<CertificateRenewal>,
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
    /// Whether the device was created. The approval is on record before, so that a crash between leaves none behind, and
    /// the agent gets its certificate after, because a device that is unknown makes it enrol anew.
    pub has_device: bool,
}

/// Renewal of the certificate of a device, which its agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRenewal {
    /// Name that the agent gave it.
    pub name: Arc<str>,
    /// Request for a certificate, in PEM.
    pub csr: Arc<str>,
    /// Time of the renewal.
    pub at: Timestamp,
}

/// Work that an enrolment makes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EnrolmentDuty {
    /// The device of an approved request is to be created.
    CreateDevice,
    /// The device has ended its life, and its certificates are to be revoked.
    Revoke,
    /// The device was deleted: its certificates are to be revoked, and then its request is to be deleted.
    Forget,
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
    Ok(EnrolmentRequest { awaits_reconnect, approval: None, certificate: None, renewal: None, ..request })
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
    let device = enrolled_device(request, labels.clone(), integrity, now);
    let approval =
        EnrolmentApproval { labels, approved_by: wish.approved_by, approved_at: now, has_device: false };
    Ok((EnrolmentRequest { approval: Some(approval), ..request.clone() }, device))
}

/// Returns the device that the approval of a request makes.
pub fn enrolled_device(
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

/// Returns the work that an enrolment makes due. `device`: its record; `None`: there is none.
pub fn duty(
    request: &EnrolmentRequest,
    device: Option<&Device>,
    revocation: Option<&CertificateRevocation>,
) -> Option<EnrolmentDuty> {
    let approval = request.approval.as_ref()?;
    let Some(device) = device else {
        return Some(if approval.has_device { EnrolmentDuty::Forget } else { EnrolmentDuty::CreateDevice });
    };
    if !approval.has_device {
        return Some(EnrolmentDuty::CreateDevice);
    }
    let issued = request.certificate.as_ref()?.issued;
    let is_revoked = revocation.is_some_and(|revocation| revocation.revokes(issued));
    let has_ended = device.status.lifecycle.status == LifecycleStatus::Decommissioned;
    (has_ended && !is_revoked).then_some(EnrolmentDuty::Revoke)
}

impl EnrolmentDuty {
    /// Reason of the revocation that the work includes; `None`: nothing is revoked.
    pub fn revocation(self) -> Option<RevocationReason> {
        match self {
            Self::CreateDevice => None,
            Self::Revoke => Some(RevocationReason::Decommissioned),
            Self::Forget => Some(RevocationReason::Deleted),
        }
    }
}
