//! The certificate with which agents ask to be enrolled. It is handed to machines that nobody knows yet, so it opens
//! nothing but the requests that a person approves.

use std::path::Path;

use anyhow::Context as _;
use chassis::process::clock;
use domain::{core::time::Timestamp, device::agent::ENROLMENT_NAME};
use rcgen::KeyPair;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::{
    DeviceSigner,
    files::{read, write},
};

/// File of the certificate and its key, in the data directory.
const ENROLLING: &str = "device-enrolment.pem";

/// Keeps a certificate for agents that enrol in `directory`. A new one is made within the last half of its life, and when
/// the authority was replaced; earlier ones count until they end.
///
/// # Errors
/// When the file holds no certificate.
pub(super) fn keep(signer: &DeviceSigner, directory: &Path) -> anyhow::Result<()> {
    let file = directory.join(ENROLLING);
    if file.exists() && is_good(signer, &file).with_context(|| file.display().to_string())? {
        return Ok(());
    }
    let key = KeyPair::generate()?;
    let certificate = signer.parameters(ENROLMENT_NAME, clock::now())?.signed_by(&key, &signer.issuer)?;
    match write(&file, &[key.serialize_pem(), certificate.pem()]) {
        Ok(()) => tracing::info!(file = %file.display(), "made a certificate with which agents enrol"),
        // A container without a directory of its own. The operator makes one with the authority.
        Err(error) => tracing::info!(error = format!("{error:#}"), "no certificate with which agents enrol"),
    }
    Ok(())
}

fn is_good(signer: &DeviceSigner, file: &Path) -> anyhow::Result<bool> {
    let der = CertificateDer::from_pem_slice(read(file)?.as_bytes()).context("no certificate in PEM")?;
    let (_, x509) = X509Certificate::from_der(&der).context("no certificate")?;
    let (_, authority) = X509Certificate::from_der(&signer.authority.certificate).context("no authority")?;
    let ends = Timestamp(x509.validity().not_after.timestamp().saturating_mul(1000));
    let is_signed = x509.verify_signature(Some(authority.public_key())).is_ok();
    Ok(is_signed && ends > clock::now().plus(signer.validity / 2))
}
