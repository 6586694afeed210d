//! Key and certificate of the authority: given by the settings, or made at the first start and kept.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use chassis::{Settings, kinds::certificate::AuthorityRecord, process::clock};
use domain::core::time::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::{
    DeviceSigner, enrolling,
    files::{read, write},
    moment,
};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Validity of an authority that is made. It is replaced at a start within the last of the certificates that it may sign.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(10 * 365 * DAY);

/// Most days for which a certificate is valid. An authority that is made signs for half of its life at least.
const LONGEST_DAYS: u32 = 5 * 365;

/// File of the authority that was made, in the data directory.
const AUTHORITY: &str = "device-authority.pem";

/// Opens the authority of the settings, or the one that is kept, and makes it if there is none, with a certificate for
/// agents that enrol. `None`: there is none, and the data directory takes none.
///
/// # Errors
/// When a file cannot be read, or holds no authority.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Option<DeviceSigner>> {
    let validity = validity(settings)?;
    let found = match given(settings)? {
        Some((certificate, key)) => Some((read(&certificate)?, read(&key)?)),
        None => kept(&settings.data_dir.join(AUTHORITY), validity)?,
    };
    let Some((certificate, key)) = found else { return Ok(None) };
    let signer = signer(&certificate, &key, validity).context("devices.certificates.authority")?;
    anyhow::ensure!(signer.authority.ends > clock::now(), "devices.certificates.authority: has ended");
    enrolling::keep(&signer, &settings.data_dir)?;
    Ok(Some(signer))
}

/// Returns the time for which certificates are valid.
///
/// # Errors
/// When the setting is out of bounds.
pub(crate) fn validity(settings: &Settings) -> anyhow::Result<Duration> {
    let days = settings.devices.certificates.valid_days;
    let possible = 1..=LONGEST_DAYS;
    anyhow::ensure!(
        possible.contains(&days),
        "devices.certificates.valid_days: has to be 1 to {LONGEST_DAYS}"
    );
    Ok(Duration::from_secs(u64::from(days) * DAY))
}

fn given(settings: &Settings) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
    let own = &settings.devices.certificates;
    match (own.authority.as_os_str().is_empty(), own.authority_key.as_os_str().is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some((own.authority.clone(), own.authority_key.clone()))),
        (true, false) => anyhow::bail!("devices.certificates.authority: missing, although there is a key"),
        (false, true) => {
            anyhow::bail!("devices.certificates.authority_key: missing, although there is a certificate")
        }
    }
}

/// Returns the certificate and the key of the authority that is kept in one file, so that neither is ever there alone.
fn kept(file: &Path, validity: Duration) -> anyhow::Result<Option<(String, String)>> {
    if file.exists() {
        let both = read(file)?;
        let known = signer(&both, &both, validity).with_context(|| format!("{}", file.display()))?;
        if known.authority.ends > clock::now().plus(validity) {
            return Ok(Some((both.clone(), both)));
        }
    }
    let key = KeyPair::generate()?;
    let certificate = parameters()?.self_signed(&key)?;
    if let Err(error) = write(file, &[key.serialize_pem(), certificate.pem()]) {
        // A container without a directory of its own. Everything but enrolment works.
        tracing::warn!(error = format!("{error:#}"), "no authority for the certificates of devices");
        return Ok(None);
    }
    tracing::info!(file = %file.display(), "made an authority for the certificates of devices");
    Ok(Some((certificate.pem(), key.serialize_pem())))
}

fn parameters() -> anyhow::Result<CertificateParams> {
    let now = clock::now();
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, format!("Reveille devices {}", now.0));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.not_before = moment(now.minus(super::BACKDATED))?;
    parameters.not_after = moment(now.plus(AUTHORITY_VALIDITY))?;
    Ok(parameters)
}

/// Reads an authority from its certificate and its key, in PEM.
fn signer(certificate: &str, key: &str, validity: Duration) -> anyhow::Result<DeviceSigner> {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).context("no key in PEM")?;
    let key = KeyPair::try_from(&key).context("no usable key")?;
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).context("no certificate in PEM")?;
    let (_, x509) = X509Certificate::from_der(&der).context("no certificate")?;
    anyhow::ensure!(x509.is_ca(), "the certificate is not that of an authority");
    anyhow::ensure!(x509.public_key().raw == key.subject_public_key_info(), "certificate and key do not fit");
    let ends = Timestamp(x509.validity().not_after.timestamp().saturating_mul(1000));
    let id = Sha256::digest(&der).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let authority = AuthorityRecord { id: id.into(), certificate: der.as_ref().into(), ends, revision: 0 };
    let issuer = Issuer::from_ca_cert_der(&der, key).context("no certificate of an authority")?;
    Ok(DeviceSigner { issuer, authority, validity })
}
