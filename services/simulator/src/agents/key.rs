//! Key of an agent, from which the name of its device follows (device reference 3.3).

use chassis::kinds::agent::device_name;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};
use sha2::{Digest as _, Sha256};

/// Key of an agent.
pub(super) struct AgentKey {
    key: KeyPair,
    /// Name of the device.
    pub(super) name: String,
}

impl AgentKey {
    pub(super) fn new() -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        // The first byte says that both coordinates follow.
        let coordinates = key.der_bytes().get(1..).unwrap_or_default();
        let (x, y) = coordinates.split_at(coordinates.len() / 2);
        let digest = Sha256::digest([without_zeros(x), without_zeros(y)].concat());
        let name = device_name(&digest.into());
        Ok(Self { key, name })
    }

    /// Returns a request for a certificate, in PEM.
    pub(super) fn request(&self) -> anyhow::Result<String> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, &self.name);
        Ok(parameters.serialize_request(&self.key)?.pem()?)
    }

    /// Returns the key and its certificate, in PEM.
    pub(super) fn with(&self, certificate: &str) -> Vec<u8> {
        (self.key.serialize_pem() + certificate).into_bytes()
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
