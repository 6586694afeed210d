//! Requests of agents to be enrolled.

use std::{borrow::Cow, sync::Arc};

use domain::{
    core::{invalid::Invalid, text::text, time::Timestamp},
    device::{
        certificate::DeviceCertificate,
        enrolment::{CertificateRenewal, EnrolmentApproval, EnrolmentRequest},
        record::name::DeviceName,
    },
};
use proto::fleet as wire;

use super::{
    Interner,
    device::{
        record::{labels, labels_to_wire},
        report,
    },
};
use crate::{
    mesh::time,
    store::resource::{Resource, WireForm},
};

/// Record of a request to be enrolled.
#[derive(Debug, Clone, PartialEq)]
pub struct EnrolmentRecord {
    /// The request.
    pub request: EnrolmentRequest,
    /// Revision of the last change.
    revision: u64,
    /// Revision of the latest change that has events; 0: there is none.
    last_event: u64,
}

impl EnrolmentRecord {
    /// Makes a record of `request`.
    pub fn of(request: EnrolmentRequest) -> Self {
        Self { request, revision: 0, last_event: 0 }
    }

    /// Returns the record after a change of its request.
    #[must_use]
    pub fn changed(&self, request: EnrolmentRequest) -> Self {
        Self { request, revision: self.revision, last_event: self.last_event }
    }

    /// Returns the request for an answer. A certificate is shown once the device is created: an agent whose device is
    /// unknown would enrol anew.
    pub fn shown(&self) -> wire::EnrolmentRequest {
        let mut message = self.to_wire().into_owned();
        if !message.approval.as_ref().is_some_and(|approval| approval.has_device) {
            message.certificate.clear();
            message.issued_at = None;
        }
        message
    }
}

impl Resource for EnrolmentRecord {
    const KIND: &'static str = "enrolment_request";

    fn key(&self) -> &str {
        self.request.name.as_str()
    }

    fn shared_key(&self) -> Arc<str> {
        self.request.name.shared()
    }

    fn share_key(&mut self, other: &Self) {
        self.request.name = other.request.name.clone();
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }

    fn weight(&self) -> usize {
        let renewal = self.request.renewal.as_ref().map_or(0, |renewal| renewal.csr.len());
        let certificate = self.request.certificate.as_ref().map_or(0, |certificate| certificate.pem.len());
        size_of::<Self>() + self.request.csr.len() + renewal + certificate
    }
}

impl WireForm for EnrolmentRecord {
    type Message = wire::EnrolmentRequest;
    type Pool = Interner;

    fn to_wire(&self) -> Cow<'_, wire::EnrolmentRequest> {
        let request = &self.request;
        let certificate = request.certificate.as_ref();
        Cow::Owned(wire::EnrolmentRequest {
            name: request.name.to_string(),
            csr: request.csr.to_string(),
            labels: labels_to_wire(&request.labels),
            system_info: Some(report::system_info_to_wire(&request.system_info)),
            os_mode: request.os_mode.map_or("", |mode| mode.word()).to_owned(),
            known_rendered_version: request.known_rendered_version.to_string(),
            awaits_reconnect: request.awaits_reconnect,
            approval: request.approval.as_ref().map(approval_to_wire),
            certificate: certificate.map_or_else(String::new, |certificate| certificate.pem.to_string()),
            created_at: Some(time::to_wire(request.created)),
            issued_at: certificate.map(|certificate| time::to_wire(certificate.issued)),
            renewal: request.renewal.as_ref().map(renewal_to_wire),
            revision: self.revision,
            last_event: self.last_event,
        })
    }

    fn from_wire(message: wire::EnrolmentRequest, texts: &mut Interner) -> Result<Self, Invalid> {
        let (revision, last_event) = (message.revision, message.last_event);
        Ok(Self { request: from_wire(message, texts)?, revision, last_event })
    }
}

/// Reads a request.
///
/// # Errors
/// Names the field that no request can have.
pub fn from_wire(message: wire::EnrolmentRequest, texts: &mut Interner) -> Result<EnrolmentRequest, Invalid> {
    let pem = message.certificate;
    let issued = message.issued_at.map_or(Timestamp(0), time::from_wire);
    let certificate = (!pem.is_empty()).then(|| DeviceCertificate { pem: text(&pem), issued });
    let approval = message.approval.map(|approval| EnrolmentApproval {
        labels: labels(approval.labels, texts),
        approved_by: texts.share(&approval.approved_by),
        approved_at: approval.approved_at.map_or(Timestamp(0), time::from_wire),
        has_device: approval.has_device,
    });
    let renewal = message.renewal.map(|renewal| CertificateRenewal {
        name: text(&renewal.name),
        csr: text(&renewal.csr),
        at: renewal.renewed_at.map_or(Timestamp(0), time::from_wire),
    });
    Ok(EnrolmentRequest {
        name: DeviceName::parse(&message.name)?,
        csr: text(&message.csr),
        labels: labels(message.labels, texts),
        system_info: Arc::new(report::system_info_from_wire(message.system_info.unwrap_or_default(), texts)),
        os_mode: report::os_mode_from_wire(&message.os_mode)?,
        known_rendered_version: texts.share(&message.known_rendered_version),
        awaits_reconnect: message.awaits_reconnect,
        approval,
        certificate,
        renewal,
        created: message.created_at.map_or(Timestamp(0), time::from_wire),
    })
}

fn approval_to_wire(approval: &EnrolmentApproval) -> wire::EnrolmentApproval {
    wire::EnrolmentApproval {
        labels: labels_to_wire(&approval.labels),
        approved_by: approval.approved_by.to_string(),
        approved_at: Some(time::to_wire(approval.approved_at)),
        has_device: approval.has_device,
    }
}

fn renewal_to_wire(renewal: &CertificateRenewal) -> wire::CertificateRenewal {
    wire::CertificateRenewal {
        name: renewal.name.to_string(),
        csr: renewal.csr.to_string(),
        renewed_at: Some(time::to_wire(renewal.at)),
    }
}
