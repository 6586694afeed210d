//! Certificates for the systems around a mesh.

use std::{fs, path::Path};

use chassis::mesh::tls::IssuedCertificate;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A certificate authority for tests.
pub struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

/// Validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateValidity {
    /// Valid for as long as any test runs.
    Now,
    /// Not valid any more.
    Over,
}

impl CertificateAuthority {
    /// A new authority, trusted by no process yet.
    ///
    /// # Panics
    /// When a key cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Returns the authority's own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes a certificate of the loopback interface and its key, `certificate.pem` and `key.pem`.
    ///
    /// # Panics
    /// When the directory cannot be written to.
    pub fn issue(&self, directory: &Path) {
        let IssuedCertificate { certificate, key } = self.certificate(CertificateValidity::Now);
        fs::write(directory.join("certificate.pem"), certificate).expect("a writable directory");
        fs::write(directory.join("key.pem"), key).expect("a writable directory");
    }

    /// A certificate of the loopback interface.
    ///
    /// # Panics
    /// When there is no key for it.
    #[must_use]
    pub fn certificate(&self, validity: CertificateValidity) -> IssuedCertificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        if validity == CertificateValidity::Over {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for CertificateAuthority {
    fn default() -> Self {
        Self::new()
    }
}
