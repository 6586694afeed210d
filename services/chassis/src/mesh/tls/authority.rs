//! Certificates that Reveille makes itself.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::SystemTime,
};

use anyhow::Context as _;
use chrono::{DateTime, Datelike as _, Days, NaiveDate, Utc};
use domain::core::workload::WorkloadIdentity;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType,
};

/// Authority that signs certificates as long as it exists: its key is nowhere but in memory.
pub struct CertificateIssuer {
    issuer: CertifiedIssuer<'static, KeyPair>,
    days: u32,
}

/// Certificate and its key, as PEM.
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The key of the certificate.
    pub key: String,
}

impl CertificateIssuer {
    /// Makes an authority whose certificates, and its own, are valid for so many days.
    ///
    /// # Errors
    /// When a key cannot be made, or the time is beyond all calendars.
    pub fn new(days: u32) -> anyhow::Result<Self> {
        let mut params = parameters(Vec::new(), days)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "Reveille authority");
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?, days })
    }

    /// Returns the certificate of the authority, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Signs a certificate with `identity` for machines with `names`.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn issue(&self, identity: &WorkloadIdentity, names: &[String]) -> anyhow::Result<IssuedCertificate> {
        let mut params = parameters(names.to_vec(), self.days)?;
        params.subject_alt_names.push(SanType::URI(identity.as_str().try_into()?));
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Makes a certificate for machines with `names` that is its own authority and does not end.
///
/// # Errors
/// When a name cannot stand in a certificate.
pub fn self_signed(names: Vec<String>) -> anyhow::Result<IssuedCertificate> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "Reveille");
    let certificate = params.self_signed(&key)?;
    Ok(IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Replaces a file that only its owner may read, as a whole: readers see the old content or the new.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    replace(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_extension("next");
    if next.exists() {
        // A leftover of an interrupted write may have other permissions.
        fs::remove_file(&next)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
    file.write_all(text.as_bytes())?;
    fs::rename(next, path)
}

fn parameters(names: Vec<String>, days: u32) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    let today = DateTime::<Utc>::from(SystemTime::now()).date_naive();
    // A clock that is behind ours by a day still takes the certificate.
    let first = today.checked_sub_days(Days::new(1)).context("no such day")?;
    let last = today.checked_add_days(Days::new(days.into())).context("no such day")?;
    params.not_before = rcgen::date_time_ymd(first.year(), month(first)?, day(first)?);
    params.not_after = rcgen::date_time_ymd(last.year(), month(last)?, day(last)?);
    Ok(params)
}

fn month(date: NaiveDate) -> anyhow::Result<u8> {
    Ok(u8::try_from(date.month())?)
}

fn day(date: NaiveDate) -> anyhow::Result<u8> {
    Ok(u8::try_from(date.day())?)
}
