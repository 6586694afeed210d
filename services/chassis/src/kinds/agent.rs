//! Certificates of agents, checked by copies of the authorities and of the revocations.

use std::{collections::BTreeMap, sync::Arc};

pub use domain::device::agent::{AgentDenial, AgentIdentity, AgentRefusal};
use domain::{
    core::time::Timestamp,
    device::{
        agent::{AgentCertificate, RevocationEvidence, identify},
        record::name::DeviceName,
    },
};
use parking_lot::Mutex;
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::certificate::{AuthorityRecord, RevocationRecord};
use crate::{
    Channel, Context,
    mesh::tls::{CertificateFiles, ClientAuthorities, ClientCertificate, ServerTls},
    observe::mirror::{Change, Mirror},
    process::clock,
};

/// Checks of the certificates of agents. Clones share the copies of authorities and revocations. While the fleet manager
/// is away they stay as they were.
#[derive(Clone)]
pub struct AgentCertificates {
    authorities: ClientAuthorities,
    revocations: Mirror<RevocationRecord>,
}

impl AgentCertificates {
    /// Begins to mirror authorities and revocations of the fleet manager.
    pub fn start(context: &Context, fleet_manager: Channel) -> Self {
        let authorities = ClientAuthorities::default();
        let (counting, known) = (authorities.clone(), Mutex::new(BTreeMap::new()));
        // The task of a mirror keeps it alive.
        let _mirror =
            Mirror::start(context, fleet_manager.clone(), move |changes: &[Change<AuthorityRecord>]| {
                let mut known = known.lock();
                for change in changes {
                    match &change.current {
                        Some(authority) => known.insert(Arc::clone(&authority.id), Arc::clone(authority)),
                        None => known.remove(change.key()),
                    };
                }
                counting.replace(known.values().map(|authority| &*authority.certificate));
            });
        Self { authorities, revocations: Mirror::start(context, fleet_manager, |_| {}) }
    }

    /// Returns the TLS of a port of agents, which takes certificates of the authorities as they are at each handshake.
    ///
    /// # Errors
    /// When the files of the port's own certificate cannot be used.
    pub fn listener(&self, files: &CertificateFiles) -> anyhow::Result<ServerTls> {
        ServerTls::for_clients(files, &self.authorities)
    }

    /// Returns the caller whose connection has that certificate.
    ///
    /// # Errors
    /// The reason why the certificate does not count.
    pub fn identify(&self, certificate: Option<&ClientCertificate>) -> Result<AgentIdentity, AgentRefusal> {
        let certificate = certificate.ok_or(AgentRefusal::NoCertificate)?;
        let facts = facts(certificate.der()).ok_or(AgentRefusal::Unreadable)?;
        let revoked = facts.common_names.first().and_then(|name| self.revocations.get(name));
        let evidence = match &revoked {
            Some(record) => RevocationEvidence::Revoked(&record.revocation),
            None if self.revocations.is_complete() => RevocationEvidence::None,
            None => RevocationEvidence::Unknown,
        };
        identify(&facts, evidence, clock::now())
    }
}

/// Returns the name of the device whose public key has that digest.
pub fn device_name(digest: &[u8; 32]) -> String {
    DeviceName::of_key(digest).to_string()
}

fn facts(der: &[u8]) -> Option<AgentCertificate> {
    let (_, x509) = X509Certificate::from_der(der).ok()?;
    let names = x509.subject().iter_common_name().map(|name| name.as_str().map(Into::into));
    Some(AgentCertificate {
        common_names: names.collect::<Result<_, _>>().ok()?,
        serial: x509.raw_serial().to_vec(),
        ends: Timestamp(x509.validity().not_after.timestamp().saturating_mul(1000)),
    })
}
