//! The authority that signs certificates of agents.
//!
//! - `authority`: its key and certificate, given by the settings or made at the first start
//! - `enrolling`: the certificate with which agents ask to be enrolled
//! - `request`: requests for certificates, read and checked; `files`: files that only the owner of the process may read

mod authority;
mod enrolling;
mod files;
mod request;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chassis::{Fault, kinds::certificate::AuthorityRecord};
use domain::{
    core::{text::text, time::Timestamp},
    device::{
        certificate::{DeviceCertificate, serial_number},
        record::name::DeviceName,
    },
};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber, SubjectPublicKeyInfo,
};
use time::OffsetDateTime;

pub(crate) use authority::{open, validity};
pub(crate) use request::SignableRequest;

/// Time by which a certificate begins before it is made: clocks of devices are set late after a start.
const BACKDATED: Duration = Duration::from_secs(5 * 60);

/// Authority that signs certificates of agents.
pub(crate) struct DeviceSigner {
    issuer: Issuer<'static, KeyPair>,
    /// Record by which parts that check certificates know the authority.
    pub(crate) authority: AuthorityRecord,
    validity: Duration,
}

impl DeviceSigner {
    /// Signs the certificate of a device. `issued` is the time in its serial number. Nothing of the request but the key
    /// gets into it.
    ///
    /// # Errors
    /// When the key cannot be used, which does not happen after a good signature.
    pub(crate) fn sign(
        &self,
        request: &SignableRequest,
        name: &DeviceName,
        issued: Timestamp,
    ) -> Result<DeviceCertificate, Fault> {
        let key = SubjectPublicKeyInfo::from_der(&request.public_key).map_err(failed)?;
        let certificate =
            self.parameters(name.as_str(), issued)?.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(DeviceCertificate { pem: text(&certificate.pem()), issued })
    }

    fn parameters(&self, common_name: &str, issued: Timestamp) -> Result<CertificateParams, Fault> {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, common_name);
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject;
        parameters.serial_number = Some(SerialNumber::from_slice(&serial_number(issued, rand::random())));
        parameters.not_before = moment(issued.minus(BACKDATED))?;
        parameters.not_after = moment(issued.plus(self.validity).min(self.authority.ends))?;
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        parameters.use_authority_key_identifier_extension = true;
        Ok(parameters)
    }
}

/// Returns a time as certificates have it, in whole seconds.
fn moment(time: Timestamp) -> Result<OffsetDateTime, Fault> {
    OffsetDateTime::from_unix_timestamp(time.0.div_euclid(1000)).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::Internal(format!("a certificate cannot be signed: {error}"))
}
