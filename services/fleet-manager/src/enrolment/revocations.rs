//! Certificates that no longer count, and authorities that have ended.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::certificate::{AuthorityRecord, RevocationRecord},
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::{
    core::time::Timestamp,
    device::{
        certificate::{CertificateRevocation, RevocationReason, issue_time, revoke},
        enrolment::EnrolmentRequest,
        record::name::DeviceName,
    },
};

use super::EnrolmentManager;

impl EnrolmentManager {
    /// Revokes every certificate of a device so far.
    ///
    /// # Errors
    /// The write failed, or its outcome is unknown.
    pub(super) async fn revoke(
        &self,
        request: &EnrolmentRequest,
        reason: RevocationReason,
    ) -> Result<(), Fault> {
        let name = request.name.clone();
        let latest = request.certificate.as_ref().map(|certificate| certificate.issued);
        let longest = self.validity;
        let note = move |draft: &mut Draft<'_, RevocationRecord>| {
            let known = draft.get(name.as_str());
            let is_known = known.is_some_and(|known| {
                known.revocation.reason == reason
                    && latest.is_none_or(|latest| known.revocation.revokes(latest))
            });
            if !is_known {
                let revocation = revoke(&name, latest, reason, clock::now(), longest);
                draft.put(RevocationRecord { revocation, revision: 0 });
            }
            Ok(())
        };
        self.revocations.write(note).await?;
        tracing::info!(device = %request.name, reason = reason.word(), "certificates revoked");
        Ok(())
    }

    /// Returns the revocation of a device; `None`: none of its certificates is revoked.
    pub(super) fn revocation(&self, name: &str) -> Option<CertificateRevocation> {
        self.revocations.view().get(name).map(|record| record.revocation.clone())
    }

    /// Returns the time for the serial number of the next certificate of a device.
    ///
    /// # Errors
    /// The database does not answer: another replica may have revoked certificates.
    pub(super) async fn issue_time(
        &self,
        name: &DeviceName,
        latest: Option<Timestamp>,
    ) -> Result<Timestamp, Fault> {
        self.revocations.fresh().await?;
        Ok(issue_time(clock::now(), latest, self.revocation(name.as_str()).as_ref()))
    }

    /// Puts the authority of this replica on record.
    ///
    /// # Errors
    /// The write failed, or its outcome is unknown.
    pub(super) async fn record_authority(&self) -> Result<(), Fault> {
        let Some(signer) = &self.signer else { return Ok(()) };
        let authority = signer.authority.clone();
        let record = move |draft: &mut Draft<'_, AuthorityRecord>| {
            if !draft.has_row(authority.key()) {
                draft.put(authority);
            }
            Ok(())
        };
        self.authorities.write(record).await.map(|((), _revision)| ())
    }

    /// Forgets authorities and revocations whose certificates have all ended by themselves.
    ///
    /// # Errors
    /// A write failed, or its outcome is unknown.
    pub(super) async fn prune(&self) -> Result<(), Fault> {
        let now = clock::now();
        self.authorities
            .write(move |draft: &mut Draft<'_, AuthorityRecord>| {
                let ended = draft.select(|authority| authority.ends < now);
                ended.iter().for_each(|authority| draft.delete(authority.key()));
                Ok(())
            })
            .await?;
        let forget = move |draft: &mut Draft<'_, RevocationRecord>| {
            let ended: Vec<Arc<_>> = draft.select(|record| record.revocation.ends < now);
            ended.iter().for_each(|record| draft.delete(record.key()));
            Ok(())
        };
        self.revocations.write(forget).await.map(|((), _revision)| ())
    }
}
