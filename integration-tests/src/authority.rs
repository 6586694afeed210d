//! Certificates for the systems around a mesh.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

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
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        fs::write(directory.join("certificate.pem"), certificate.pem()).expect("a writable directory");
        fs::write(directory.join("key.pem"), key.serialize_pem()).expect("a writable directory");
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
