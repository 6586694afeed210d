//! Certificates, keys and authorities from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use domain::core::{
    time::Timestamp,
    workload::{CallerPolicy, WorkloadIdentity, identity_of},
};
use tokio_rustls::rustls::{
    RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use webpki::EndEntityCert;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::settings::TlsSettings;

/// Files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM file with the certificate, and those that it was signed by.
    pub certificate: PathBuf,
    /// PEM file with its key.
    pub key: PathBuf,
}

/// Content of [`CertificateFiles`].
pub(super) struct CertificateContent {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// Content of the files with which a part speaks TLS with other parts.
pub(super) struct MeshContent {
    pub own: CertificateContent,
    pub identity: WorkloadIdentity,
    pub roots: Arc<RootCertStore>,
    pub policy: CallerPolicy,
}

impl CertificateFiles {
    /// Returns the time until which the certificate is valid.
    ///
    /// # Errors
    /// When the file has no certificate that can be read.
    pub fn ends(&self) -> anyhow::Result<Timestamp> {
        let chain = certificates(&self.certificate)?;
        let parsed = X509Certificate::from_der(&chain[0]);
        let (_, own) = parsed.with_context(|| format!("cannot read {}", self.certificate.display()))?;
        Ok(Timestamp(own.validity().not_after.timestamp().saturating_mul(1000)))
    }

    pub(super) fn read(&self) -> anyhow::Result<CertificateContent> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .with_context(|| format!("cannot read a key from {}", self.key.display()))?;
        Ok(CertificateContent { chain, key })
    }
}

impl MeshContent {
    pub(super) fn read(settings: &TlsSettings) -> anyhow::Result<Self> {
        let files = CertificateFiles { certificate: settings.certificate.clone(), key: settings.key.clone() };
        let own = files.read().context("tls.certificate and tls.key")?;
        let roots = roots(&settings.ca_file).context("tls.ca_file")?;
        let identity = identity(&own.chain).context(
            "tls.certificate: has to have exactly one URI name, its identity, such as spiffe://reveille/gateway",
        )?;
        let policy = CallerPolicy::parse(&settings.callers, &identity).map_err(|entry| {
            anyhow!("tls.callers: '{entry}' is no identity such as spiffe://reveille/gateway")
        })?;
        Ok(Self { own, identity, roots, policy })
    }
}

/// Returns the paths of all files of the settings.
pub(super) fn paths(settings: &TlsSettings) -> [PathBuf; 3] {
    [settings.certificate.clone(), settings.key.clone(), settings.ca_file.clone()]
}

/// Returns the authorities in a PEM file.
pub(super) fn roots(ca_file: &Path) -> anyhow::Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(ca_file)? {
        roots.add(authority).context("not a certificate of an authority")?;
    }
    Ok(Arc::new(roots))
}

/// Returns the cryptography of every TLS connection.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Returns the URI names of a certificate; none if it cannot be read.
pub(super) fn uri_names<'a>(certificate: &'a CertificateDer<'_>) -> Vec<&'a str> {
    match EndEntityCert::try_from(certificate) {
        Ok(parsed) => parsed.valid_uri_names().collect(),
        Err(_) => Vec::new(),
    }
}

fn identity(chain: &[CertificateDer<'_>]) -> Option<WorkloadIdentity> {
    identity_of(&uri_names(chain.first()?))
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = || format!("cannot read certificates from {}", path.display());
    let found = CertificateDer::pem_file_iter(path).with_context(read)?;
    let found = found.collect::<Result<Vec<_>, _>>().with_context(read)?;
    anyhow::ensure!(!found.is_empty(), "{} holds no certificate", path.display());
    Ok(found)
}
