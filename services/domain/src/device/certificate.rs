//! Certificates of agents: which requests are signed, when a certificate was made, and which ones no longer count
//! (device reference 3.3 to 3.5).
//!
//! A device is revoked up to a time and not certificate by certificate: the serial number of a certificate begins with
//! the time at which it was made. So one record for each device that is gone suffices, and a certificate that a lost
//! commit has forgotten is revoked too.

use std::{sync::Arc, time::Duration};

use crate::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        record::{
            Device,
            condition::{ConditionKind, DeviceCondition},
            name::DeviceName,
            status::LifecycleStatus,
        },
        write::WriteConflict,
    },
};

/// Fewest bits of an RSA key, below which it counts as broken.
const SHORTEST_RSA: usize = 2048;

/// Most bits of an RSA key. Checking signatures of longer ones takes long enough to keep a listener busy.
const LONGEST_RSA: usize = 4096;

/// Bits of the curves that agents and the listener have in common.
const CURVES: [usize; 2] = [256, 384];

/// Bytes of a serial number.
pub const SERIAL_LENGTH: usize = 16;

/// Public key of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKey {
    /// Point on an elliptic curve of so many bits.
    EllipticCurve(usize),
    /// RSA modulus of so many bits.
    Rsa(usize),
    /// Any other kind.
    Other,
}

/// Facts about a request for a certificate whose signature is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Public key.
    pub key: DeviceKey,
    /// Digest of the public key, of which the name of the device is made.
    pub digest: [u8; 32],
    /// Common names of the subject.
    pub common_names: Vec<Arc<str>>,
}

/// Certificate of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCertificate {
    /// The certificate in PEM.
    pub pem: Arc<str>,
    /// Time in its serial number.
    pub issued: Timestamp,
}

/// Reason why the certificates of a device do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RevocationReason {
    /// The device was deleted.
    Deleted,
    /// The device has ended its life.
    Decommissioned,
}

impl RevocationReason {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Deleted, Self::Decommissioned];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deleted => "Deleted",
            Self::Decommissioned => "Decommissioned",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Revocation of the certificates of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRevocation {
    /// Name of the device.
    pub name: DeviceName,
    /// Time up to which its certificates were made that do not count.
    pub issued_until: Timestamp,
    /// Reason.
    pub reason: RevocationReason,
    /// Time at which the last of these certificates has ended by itself.
    pub ends: Timestamp,
}

impl CertificateRevocation {
    /// Returns whether a certificate of the device counts no longer.
    pub fn revokes(&self, issued: Timestamp) -> bool {
        issued <= self.issued_until
    }
}

/// Checks the request of a device that enrols. Its name is made of its key, so that nobody can take another's name.
///
/// # Errors
/// Names the field that is wrong.
pub fn check_first(request: &CertificateRequest, name: &DeviceName) -> Result<(), Invalid> {
    check_key(request.key)?;
    if DeviceName::of_key(&request.digest) != *name {
        return Err(Invalid::new("metadata.name", format!("'{name}' is not made of the key of the request")));
    }
    check_subject(request, name)
}

/// Checks the request of an enrolled device that renews its certificate. Its key may be a new one: the connection proves
/// who asks.
///
/// # Errors
/// Names the field that is wrong.
pub fn check_next(request: &CertificateRequest, name: &DeviceName) -> Result<(), Invalid> {
    check_key(request.key)?;
    check_subject(request, name)
}

fn check_key(key: DeviceKey) -> Result<(), Invalid> {
    let refused = |reason: String| Err(Invalid::new("spec.csr.publicKey", reason));
    match key {
        DeviceKey::EllipticCurve(bits) if CURVES.contains(&bits) => Ok(()),
        DeviceKey::EllipticCurve(bits) => refused(format!("a curve of {bits} bits is not accepted")),
        DeviceKey::Rsa(bits) if (SHORTEST_RSA..=LONGEST_RSA).contains(&bits) => Ok(()),
        DeviceKey::Rsa(bits) => {
            refused(format!("an RSA key has {SHORTEST_RSA} to {LONGEST_RSA} bits, this one has {bits}"))
        }
        DeviceKey::Other => refused("must be an RSA key, or one of the curve P-256 or P-384".to_owned()),
    }
}

fn check_subject(request: &CertificateRequest, name: &DeviceName) -> Result<(), Invalid> {
    match request.common_names.as_slice() {
        [one] if **one == *name.as_str() => Ok(()),
        [] => Err(Invalid::new("spec.csr.subject", "has no common name")),
        [one] => {
            Err(Invalid::new("spec.csr.subject", format!("'{one}' is not the name of the device, '{name}'")))
        }
        [_, _, ..] => Err(Invalid::new("spec.csr.subject", "has more than one common name")),
    }
}

/// Checks that an enrolled device may renew its certificate.
///
/// # Errors
/// Once its agent has begun to end its life.
pub fn check_renewal(device: &Device) -> Result<(), WriteConflict> {
    let is_ending = device.condition(ConditionKind::Decommissioning).is_some_and(DeviceCondition::is_true);
    let has_ended = device.status.lifecycle.status == LifecycleStatus::Decommissioned;
    if is_ending || has_ended { Err(WriteConflict::Decommissioning) } else { Ok(()) }
}

/// Returns the time for the serial number of a new certificate: later than everything that is revoked, and than the
/// certificates before, also if the clock was set back.
pub fn issue_time(
    now: Timestamp,
    latest: Option<Timestamp>,
    revocation: Option<&CertificateRevocation>,
) -> Timestamp {
    let revoked = revocation.map(|revocation| revocation.issued_until);
    let earlier = latest.max(revoked).map_or(Timestamp(0), |earlier| earlier.plus(Duration::from_millis(1)));
    now.max(earlier)
}

/// Returns the revocation of every certificate of a device so far. `longest` is the longest validity of one.
pub fn revoke(
    name: &DeviceName,
    latest: Option<Timestamp>,
    reason: RevocationReason,
    now: Timestamp,
    longest: Duration,
) -> CertificateRevocation {
    let issued_until = latest.map_or(now, |latest| latest.max(now));
    CertificateRevocation { name: name.clone(), issued_until, reason, ends: issued_until.plus(longest) }
}

/// Returns a serial number: the time in milliseconds, then random bytes.
pub fn serial_number(issued: Timestamp, random: [u8; 8]) -> [u8; SERIAL_LENGTH] {
    let time = issued.0.max(0).to_be_bytes();
    let mut serial = [0; SERIAL_LENGTH];
    serial[..8].copy_from_slice(&time);
    serial[8..].copy_from_slice(&random);
    // Encodings of numbers drop leading zeros, so the first byte marks the beginning. It is no part of any time.
    serial[0] = 1;
    serial
}

/// Returns the time in a serial number; `None`: no certificate of ours has it.
pub fn issued_at(serial: &[u8]) -> Option<Timestamp> {
    let serial: &[u8; SERIAL_LENGTH] = serial.try_into().ok()?;
    let (marked, _) = serial.split_first_chunk::<8>()?;
    let mut time = *marked;
    let is_ours = std::mem::take(&mut time[0]) == 1;
    is_ours.then(|| Timestamp(i64::from_be_bytes(time)))
}
