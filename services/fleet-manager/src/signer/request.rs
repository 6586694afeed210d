//! Requests for certificates.

use domain::{
    core::invalid::Invalid,
    device::certificate::{CertificateRequest, DeviceKey},
};
use sha2::{Digest as _, Sha256};
use x509_parser::{
    certification_request::X509CertificationRequest, pem::parse_x509_pem, prelude::FromDer as _,
    public_key::PublicKey, x509::SubjectPublicKeyInfo,
};

/// Field of the request in refusals.
const FIELD: &str = "spec.csr";

/// Longest request in PEM, in bytes: one with the longest key has two thousand.
const LONGEST: usize = 16 << 10;

/// Word in the first line of a request in PEM.
const LABEL: &str = "CERTIFICATE REQUEST";

/// Request for a certificate whose signature is good.
#[derive(Debug)]
pub(crate) struct SignableRequest {
    /// Facts by which it is judged.
    pub(crate) facts: CertificateRequest,
    /// Public key with its kind, in DER.
    pub(super) public_key: Vec<u8>,
}

impl SignableRequest {
    /// Reads a request in PEM. Its signature proves that its author has the key.
    ///
    /// # Errors
    /// When it cannot be read, or its signature is not that of its key.
    pub(crate) fn read(pem: &str) -> Result<Self, Invalid> {
        if pem.len() > LONGEST {
            return Err(Invalid::new(FIELD, format!("is longer than {LONGEST} bytes")));
        }
        let unreadable = || Invalid::new(FIELD, "is no request for a certificate in PEM");
        let (_, block) = parse_x509_pem(pem.as_bytes()).map_err(|_| unreadable())?;
        if !block.label.ends_with(LABEL) {
            return Err(unreadable());
        }
        let (_, request) = X509CertificationRequest::from_der(&block.contents).map_err(|_| unreadable())?;
        let facts = facts(&request)?;
        request
            .verify_signature()
            .map_err(|_| Invalid::new(FIELD, "its signature is not that of its key"))?;
        let public_key = request.certification_request_info.subject_pki.raw.to_vec();
        Ok(Self { facts, public_key })
    }
}

fn facts(request: &X509CertificationRequest<'_>) -> Result<CertificateRequest, Invalid> {
    let subject = &request.certification_request_info.subject;
    let names = subject.iter_common_name().map(|name| name.as_str().map(Into::into));
    let common_names = names.collect::<Result<Vec<_>, _>>();
    let common_names = common_names.map_err(|_| Invalid::new("spec.csr.subject", "is no text"))?;
    let (key, digest) = key(&request.certification_request_info.subject_pki);
    Ok(CertificateRequest { key, digest, common_names })
}

/// Returns the kind of a key, and the digest of it of which names are made: of the coordinates of a point one after
/// another, or of a modulus, each without leading zeros.
fn key(info: &SubjectPublicKeyInfo<'_>) -> (DeviceKey, [u8; 32]) {
    match info.parsed() {
        Ok(PublicKey::EC(point)) => {
            // The first byte says that both coordinates follow.
            let coordinates = point.data().strip_prefix(&[4]).unwrap_or_default();
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            (DeviceKey::EllipticCurve(x.len() * 8), digest(&[x, y]))
        }
        Ok(PublicKey::RSA(key)) => {
            let modulus = without_zeros(key.modulus);
            (DeviceKey::Rsa(modulus.len() * 8), digest(&[modulus]))
        }
        Ok(
            PublicKey::DSA(_)
            | PublicKey::GostR3410(_)
            | PublicKey::GostR3410_2012(_)
            | PublicKey::Unknown(_),
        )
        | Err(_) => (DeviceKey::Other, [0; 32]),
    }
}

fn digest(numbers: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    numbers.iter().for_each(|number| digest.update(without_zeros(number)));
    digest.finalize().into()
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
