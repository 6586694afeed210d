//! Callers at the port of agents: the device for which a certificate speaks, or the reason why it speaks for none (device
//! reference 3.4).
//!
//! The chain of a certificate, its validity, and the key of its owner were verified with the connection. A connection may
//! last, so everything that changes meanwhile is decided with each request.

use std::sync::Arc;

use crate::{
    core::time::Timestamp,
    device::{
        certificate::{CertificateRevocation, RevocationReason, issued_at},
        record::name::DeviceName,
    },
};

/// Common name of certificates with which agents ask to be enrolled. No enrolled device has this name: theirs are made of
/// keys, and longer.
pub const ENROLMENT_NAME: &str = "enrolment";

/// Facts about a certificate that an authority of ours has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCertificate {
    /// Common names of the subject.
    pub common_names: Vec<Arc<str>>,
    /// Serial number.
    pub serial: Vec<u8>,
    /// End.
    pub ends: Timestamp,
}

/// Knowledge about the revocation of the certificates of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevocationEvidence<'a> {
    /// The revocations have not been read yet.
    Unknown,
    /// No certificate of the device is revoked.
    None,
    /// Certificates of the device are revoked.
    Revoked(&'a CertificateRevocation),
}

/// Caller that a certificate proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentIdentity {
    /// Agent that asks to be enrolled.
    Enrolling,
    /// Agent of an enrolled device.
    Device(DeviceName),
}

/// Reason why a caller is nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentRefusal {
    /// The caller presented no certificate.
    #[error(
        "the request needs the certificate of a device, or the one with which agents ask to be enrolled, and came without"
    )]
    NoCertificate,
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// The certificate ended while the connection lasted.
    #[error("the certificate has ended")]
    Ended,
    /// The subject is no device.
    #[error("the certificate does not have exactly one common name, the name of a device")]
    NoName,
    /// The authority signed the certificate, but not as one of a device.
    #[error("the certificate for '{0}' has a serial number that no certificate of a device has")]
    ForeignSerial(DeviceName),
    /// The device is gone.
    #[error("Device of name \"{0}\" not found: it was deleted, and this certificate is revoked")]
    Deleted(DeviceName),
    /// The device has ended its life.
    #[error("the certificate of device '{0}' is revoked: the device was decommissioned")]
    Decommissioned(DeviceName),
    /// Revocations are not known yet, so no certificate counts.
    #[error("it is not known yet which certificates are revoked")]
    RevocationsUnknown,
}

/// Reason why a known caller may not do this operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentDenial {
    /// The device is another one.
    #[error("the certificate is that of device '{own}', which may not speak for device '{other}'")]
    OtherDevice {
        /// Device of the certificate.
        own: DeviceName,
        /// Device that the request is about.
        other: String,
    },
    /// The caller is not enrolled.
    #[error("the certificate is the one with which agents ask to be enrolled, and speaks for no device")]
    NotEnrolled,
    /// The caller is enrolled.
    #[error(
        "the certificate is that of device '{0}', and requests to be enrolled need the certificate for these"
    )]
    Enrolled(DeviceName),
}

/// Returns the caller that a certificate proves. `revocation` is about the device that the first common name names.
///
/// # Errors
/// The reason why the certificate does not count.
pub fn identify(
    certificate: &AgentCertificate,
    revocation: RevocationEvidence<'_>,
    now: Timestamp,
) -> Result<AgentIdentity, AgentRefusal> {
    if certificate.ends < now {
        return Err(AgentRefusal::Ended);
    }
    let [name] = certificate.common_names.as_slice() else { return Err(AgentRefusal::NoName) };
    if **name == *ENROLMENT_NAME {
        // An operator may have made it with the authority, so its serial number is any.
        return Ok(AgentIdentity::Enrolling);
    }
    let name = DeviceName::parse(name).map_err(|_| AgentRefusal::NoName)?;
    let Some(issued) = issued_at(&certificate.serial) else { return Err(AgentRefusal::ForeignSerial(name)) };
    match revocation {
        RevocationEvidence::Unknown => Err(AgentRefusal::RevocationsUnknown),
        RevocationEvidence::Revoked(revocation) if revocation.revokes(issued) => {
            Err(match revocation.reason {
                RevocationReason::Deleted => AgentRefusal::Deleted(name),
                RevocationReason::Decommissioned => AgentRefusal::Decommissioned(name),
            })
        }
        RevocationEvidence::Revoked(_) | RevocationEvidence::None => Ok(AgentIdentity::Device(name)),
    }
}

impl AgentIdentity {
    /// Returns the device of the caller.
    ///
    /// # Errors
    /// When the caller has none.
    pub fn device(&self) -> Result<&DeviceName, AgentDenial> {
        match self {
            Self::Device(own) => Ok(own),
            Self::Enrolling => Err(AgentDenial::NotEnrolled),
        }
    }

    /// Checks that the caller may speak for the device `name`: it is its own.
    ///
    /// # Errors
    /// Names both devices.
    pub fn check_device(&self, name: &str) -> Result<(), AgentDenial> {
        let own = self.device()?;
        if own.as_str() == name {
            return Ok(());
        }
        Err(AgentDenial::OtherDevice { own: own.clone(), other: name.to_owned() })
    }

    /// Checks that the caller may ask to be enrolled.
    ///
    /// # Errors
    /// Names the device of the caller.
    pub fn check_enrolling(&self) -> Result<(), AgentDenial> {
        match self {
            Self::Enrolling => Ok(()),
            Self::Device(own) => Err(AgentDenial::Enrolled(own.clone())),
        }
    }
}
