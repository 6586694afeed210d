//! Authorities that sign certificates of agents, and revocations of these.

use std::{borrow::Cow, sync::Arc};

use domain::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        certificate::{CertificateRevocation, RevocationReason},
        record::name::DeviceName,
    },
};
use proto::fleet as wire;

use crate::{
    mesh::time,
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

/// Authority whose certificates count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityRecord {
    /// Digest of its certificate, in hexadecimal digits.
    pub id: Arc<str>,
    /// Its certificate in DER.
    pub certificate: Arc<[u8]>,
    /// End of its certificate.
    pub ends: Timestamp,
    /// Revision of the last change.
    pub revision: u64,
}

impl Resource for AuthorityRecord {
    const KIND: &'static str = "certificate_authority";

    fn key(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl WireForm for AuthorityRecord {
    type Message = wire::CertificateAuthority;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::CertificateAuthority> {
        Cow::Owned(wire::CertificateAuthority {
            id: self.id.to_string(),
            certificate: self.certificate.to_vec(),
            ends_at: Some(time::to_wire(self.ends)),
            revision: self.revision,
        })
    }

    fn from_wire(message: wire::CertificateAuthority, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self {
            id: message.id.into(),
            certificate: message.certificate.into(),
            ends: message.ends_at.map_or(Timestamp(0), time::from_wire),
            revision: message.revision,
        })
    }
}

impl MirroredKind for AuthorityRecord {}

/// Revocation of the certificates of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationRecord {
    /// The revocation.
    pub revocation: CertificateRevocation,
    /// Revision of the last change.
    pub revision: u64,
}

impl Resource for RevocationRecord {
    const KIND: &'static str = "certificate_revocation";

    fn key(&self) -> &str {
        self.revocation.name.as_str()
    }

    fn shared_key(&self) -> Arc<str> {
        self.revocation.name.shared()
    }

    fn share_key(&mut self, other: &Self) {
        self.revocation.name = other.revocation.name.clone();
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl WireForm for RevocationRecord {
    type Message = wire::CertificateRevocation;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, wire::CertificateRevocation> {
        Cow::Owned(wire::CertificateRevocation {
            name: self.revocation.name.to_string(),
            issued_until: Some(time::to_wire(self.revocation.issued_until)),
            reason: self.revocation.reason.word().to_owned(),
            ends_at: Some(time::to_wire(self.revocation.ends)),
            revision: self.revision,
        })
    }

    fn from_wire(message: wire::CertificateRevocation, (): &mut ()) -> Result<Self, Invalid> {
        let reason = RevocationReason::from_word(&message.reason).ok_or_else(|| {
            Invalid::new("reason", format!("'{}' is no reason of a revocation", message.reason))
        })?;
        let revocation = CertificateRevocation {
            name: DeviceName::parse(&message.name)?,
            issued_until: message.issued_until.map_or(Timestamp(0), time::from_wire),
            reason,
            ends: message.ends_at.map_or(Timestamp(0), time::from_wire),
        };
        Ok(Self { revocation, revision: message.revision })
    }
}

impl MirroredKind for RevocationRecord {}
