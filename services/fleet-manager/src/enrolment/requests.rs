//! Calls of people and agents about requests.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::enrolment::EnrolmentRecord,
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::{
    core::{event::Actor, invalid::Invalid},
    device::{
        certificate::{DeviceCertificate, RevocationReason, check_first, check_next, check_renewal},
        enrolment::{
            ApprovalWish, CertificateRenewal, EnrolmentRequest, approve, check_deletion, create,
            enrolled_device,
        },
        record::{
            report::{DeviceIntegrity, IntegrityStatus},
            status::StatusEntry,
        },
        write::{WriteConflict, WriteRefusal},
    },
};

use super::EnrolmentManager;
use crate::signer::{DeviceSigner, SignableRequest};

/// Kind of resource in faults.
const REQUEST: &str = EnrolmentRecord::KIND;

/// Kind of a renewal in faults.
const RENEWAL: &str = "certificate_renewal";

/// Most characters of the name of a renewal.
const LONGEST_NAME: usize = 253;

impl EnrolmentManager {
    /// Returns the request of that name, with every write that was acknowledged before.
    ///
    /// # Errors
    /// When there is none, or the database does not answer.
    pub(super) async fn read(&self, name: &str) -> Result<Arc<EnrolmentRecord>, Fault> {
        self.requests.fresh().await?;
        self.stored(name)
    }

    fn stored(&self, name: &str) -> Result<Arc<EnrolmentRecord>, Fault> {
        self.requests.view().get(name).ok_or_else(|| Fault::not_found(REQUEST, name))
    }

    /// Stores the request of an agent in place of an earlier one.
    ///
    /// # Errors
    /// When the request lies, when its device is enrolled, or when the registry or the database does not answer.
    pub(super) async fn submit(&self, request: EnrolmentRequest) -> Result<Arc<EnrolmentRecord>, Fault> {
        check_first(&SignableRequest::read(&request.csr)?.facts, &request.name)?;
        let name = request.name.shared();
        let is_enrolled = self.is_enrolled(&name).await?;
        let request = create(EnrolmentRequest { created: clock::now(), ..request }, is_enrolled)?;
        let known = self.requests.view().get(&name);
        if let Some(known) = known.as_ref().filter(|known| known.request.approval.is_some()) {
            // Its device was deleted. The certificate must not count for the next device of that name.
            self.revoke(&known.request, RevocationReason::Deleted).await?;
        }
        let revision = known.map_or(0, |known| known.revision());
        let store = move |draft: &mut Draft<'_, EnrolmentRecord>| {
            let known = draft.get(request.name.as_str());
            if known.as_ref().map_or(0, |known| known.revision()) != revision {
                return Err(conflict(request.name.as_str()));
            }
            draft.put(resubmitted(known.as_deref(), request));
            Ok(())
        };
        self.requests.write_by(Actor::Client, store).await?;
        self.stored(&name)
    }

    /// Approves a request, signs its certificate and creates its device.
    ///
    /// # Errors
    /// When a rule forbids it, or when the registry or the database does not answer. If the approval is on record by
    /// then, it is completed later.
    pub(super) async fn approve(
        &self,
        name: &str,
        wish: ApprovalWish,
    ) -> Result<Arc<EnrolmentRecord>, Fault> {
        let record = self.read(name).await?;
        approve(&record.request, wish.clone(), DeviceIntegrity::default(), clock::now())?;
        if self.registry.get(name).await?.is_some() {
            return Err(Invalid::new("metadata.name", "the device is enrolled").into());
        }
        let request = SignableRequest::read(&record.request.csr)?;
        let issued = self.issue_time(&record.request.name, None).await?;
        let certificate = self.signer()?.sign(&request, &record.request.name, issued)?;
        let rule = move |request: &EnrolmentRequest| {
            let (approved, _) = approve(request, wish, DeviceIntegrity::default(), clock::now())?;
            Ok(EnrolmentRequest { certificate: Some(certificate), ..approved })
        };
        let approved = self.change(&record, Actor::Client, rule).await?;
        self.create_device(&approved).await?;
        self.stored(name)
    }

    /// Creates the device of an approved request at the registry, and notes that.
    ///
    /// # Errors
    /// The registry or the database does not answer.
    pub(super) async fn create_device(&self, record: &EnrolmentRecord) -> Result<(), Fault> {
        let Some(approval) = &record.request.approval else { return Ok(()) };
        let device = enrolled_device(&record.request, approval.labels.clone(), integrity(), clock::now());
        self.registry.enrol(&device).await?;
        let (name, approved_at) = (record.shared_key(), approval.approved_at);
        let note = move |draft: &mut Draft<'_, EnrolmentRecord>| {
            let Some(known) = draft.get(&name) else { return Ok(()) };
            let mut request = known.request.clone();
            if let Some(approval) = request.approval.as_mut()
                && approval.approved_at == approved_at
                && !approval.has_device
            {
                approval.has_device = true;
                draft.put(known.changed(request));
            }
            Ok(())
        };
        self.requests.write(note).await.map(|((), _revision)| ())
    }

    /// Renews the certificate of an enrolled device. A repeated renewal changes nothing.
    ///
    /// # Errors
    /// When the request lies, when the device does not exist or ends its life, or when the registry or the database does
    /// not answer.
    pub(super) async fn renew(
        &self,
        name: &str,
        renewal: CertificateRenewal,
    ) -> Result<Arc<EnrolmentRecord>, Fault> {
        if renewal.name.is_empty() || renewal.name.len() > LONGEST_NAME {
            return Err(
                Invalid::new("metadata.name", format!("has to have 1 to {LONGEST_NAME} bytes")).into()
            );
        }
        let record = self.read(name).await?;
        if let Some(known) = record.request.renewal.as_ref().filter(|known| known.name == renewal.name) {
            let is_repeated = known.csr == renewal.csr;
            let kind = RENEWAL.to_owned();
            let other = Fault::AlreadyExists { kind, name: renewal.name.to_string() };
            return if is_repeated { Ok(record) } else { Err(other) };
        }
        let device = self.registry.get(name).await?.ok_or_else(|| Fault::not_found("device", name))?;
        check_renewal(&device).map_err(|conflict| locked(name, conflict))?;
        let request = SignableRequest::read(&renewal.csr)?;
        check_next(&request.facts, &record.request.name)?;
        let latest = record.request.certificate.as_ref().map(|certificate| certificate.issued);
        let issued = self.issue_time(&record.request.name, latest).await?;
        let certificate: DeviceCertificate = self.signer()?.sign(&request, &record.request.name, issued)?;
        let rule = move |request: &EnrolmentRequest| {
            let (renewal, certificate) = (Some(renewal), Some(certificate));
            Ok(EnrolmentRequest { renewal, certificate, ..request.clone() })
        };
        self.change(&record, Actor::Client, rule).await
    }

    /// Deletes a request.
    ///
    /// # Errors
    /// When there is none, when its device exists, or when the registry or the database does not answer.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Fault> {
        let record = self.read(name).await?;
        check_deletion(self.is_enrolled(name).await?).map_err(|refusal| refused(name, refusal))?;
        if record.request.certificate.is_some() {
            self.revoke(&record.request, RevocationReason::Deleted).await?;
        }
        let (key, revision) = (record.shared_key(), record.revision());
        let delete = move |draft: &mut Draft<'_, EnrolmentRecord>| {
            let known = draft.get(&key).ok_or_else(|| Fault::not_found(REQUEST, &key))?;
            if known.revision() != revision {
                return Err(conflict(&key));
            }
            draft.delete(&key);
            Ok(())
        };
        self.requests.write_by(Actor::Client, delete).await.map(|((), _revision)| ())
    }

    fn signer(&self) -> Result<&DeviceSigner, Fault> {
        let missing = || Fault::unavailable("device authority", "devices.certificates.authority is not set");
        self.signer.as_deref().ok_or_else(missing)
    }

    /// Returns whether a device exists, or is about to.
    async fn is_enrolled(&self, name: &str) -> Result<bool, Fault> {
        self.requests.fresh().await?;
        let known = self.requests.view().get(name);
        let approval = known.as_ref().and_then(|record| record.request.approval.as_ref());
        if approval.is_some_and(|approval| !approval.has_device) {
            return Ok(true);
        }
        Ok(self.registry.get(name).await?.is_some())
    }

    /// Changes a request by a rule, unless it has changed since it was read; returns it as stored.
    async fn change(
        &self,
        record: &EnrolmentRecord,
        author: Actor,
        rule: impl FnOnce(&EnrolmentRequest) -> Result<EnrolmentRequest, Fault> + Send + 'static,
    ) -> Result<Arc<EnrolmentRecord>, Fault> {
        let (name, revision) = (record.shared_key(), record.revision());
        let key = Arc::clone(&name);
        let change = move |draft: &mut Draft<'_, EnrolmentRecord>| {
            let known = draft.get(&key).ok_or_else(|| Fault::not_found(REQUEST, &key))?;
            if known.revision() != revision {
                return Err(conflict(&key));
            }
            draft.put(known.changed(rule(&known.request)?));
            Ok(())
        };
        self.requests.write_by(author, change).await?;
        self.stored(&name)
    }
}

/// Returns the record of a request in place of an earlier one of its device, which may carry the mark of a restore.
fn resubmitted(known: Option<&EnrolmentRecord>, request: EnrolmentRequest) -> EnrolmentRecord {
    let Some(known) = known else { return EnrolmentRecord::of(request) };
    let is_marked = known.request.approval.is_none() && known.request.awaits_reconnect;
    let awaits_reconnect = request.awaits_reconnect || is_marked;
    known.changed(EnrolmentRequest { awaits_reconnect, created: known.request.created, ..request })
}

/// Returns the integrity of a device whose identity no trusted platform module proves.
fn integrity() -> DeviceIntegrity {
    DeviceIntegrity { overall: StatusEntry::bare(IntegrityStatus::Unsupported), ..DeviceIntegrity::default() }
}

fn conflict(name: &str) -> Fault {
    Fault::Conflict { kind: REQUEST.to_owned(), name: name.to_owned() }
}

fn refused(name: &str, refusal: WriteRefusal) -> Fault {
    match refusal {
        WriteRefusal::Invalid(invalid) => Fault::Invalid(invalid),
        WriteRefusal::Conflict(conflict) => locked(name, conflict),
    }
}

fn locked(name: &str, conflict: WriteConflict) -> Fault {
    Fault::Locked { kind: REQUEST.to_owned(), name: name.to_owned(), reason: conflict.to_string() }
}
