//! Certificates for the systems around a mesh.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// For as long as any test runs.
    Now,
    /// Not any more.
    Over,
}

impl Authority {
    /// A new one, which nobody trusts yet.
    ///
    /// # Panics
    /// When there is no key for it.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Its own certificate.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes a certificate of the loopback interface and its key, `certificate.pem` and `key.pem`.
    ///
    /// # Panics
    /// When the directory cannot be written to.
    pub fn issue(&self, directory: &Path) {
        let Issued { certificate, key } = self.certificate(Validity::Now);
        fs::write(directory.join("certificate.pem"), certificate).expect("a writable directory");
        fs::write(directory.join("key.pem"), key).expect("a writable directory");
    }

    /// A certificate of the loopback interface.
    ///
    /// # Panics
    /// When there is no key for it.
    #[must_use]
    pub fn certificate(&self, validity: Validity) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        if validity == Validity::Over {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
