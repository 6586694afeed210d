//! The authority, and the requests that it signs.

use std::{fs, os::unix::fs::PermissionsExt as _};

use chassis::{Settings, process::clock};
use domain::device::{
    certificate::{DeviceKey, check_first, issued_at},
    record::name::DeviceName,
};
use rcgen::{
    CertificateParams, CertificateSigningRequest, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PublicKeyData as _, SignatureAlgorithm,
};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

use super::{DeviceSigner, SignableRequest, open};

fn place() -> (TempDir, Settings) {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
    (directory, settings)
}

fn opened(settings: &Settings) -> DeviceSigner {
    open(settings).unwrap().expect("an authority")
}

fn request(key: &KeyPair, name: &str) -> CertificateSigningRequest {
    let mut parameters = CertificateParams::new(vec!["gateway.example".to_owned()]).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.serialize_request(key).unwrap()
}

/// Returns the name of the device of a key on a curve, whose coordinates begin with other bytes than zero.
fn name_of(key: &KeyPair) -> DeviceName {
    DeviceName::of_key(&Sha256::digest(&key.der_bytes()[1..]).into())
}

fn key(algorithm: &'static SignatureAlgorithm) -> KeyPair {
    loop {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let middle = key.der_bytes().len() / 2 + 1;
        if key.der_bytes()[1] != 0 && key.der_bytes()[middle] != 0 {
            return key;
        }
    }
}

fn verified(signer: &DeviceSigner, pem: &str, check: impl FnOnce(&X509Certificate<'_>)) {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let (_, authority) = X509Certificate::from_der(&signer.authority.certificate).unwrap();
    certificate.verify_signature(Some(authority.public_key())).unwrap();
    check(&certificate);
}

#[test]
fn certificates_have_nothing_of_a_request_but_its_key() {
    let (_directory, settings) = place();
    let signer = opened(&settings);
    for (algorithm, bits) in [(&PKCS_ECDSA_P256_SHA256, 256), (&PKCS_ECDSA_P384_SHA384, 384)] {
        let key = key(algorithm);
        let name = name_of(&key);
        let read = SignableRequest::read(&request(&key, name.as_str()).pem().unwrap()).unwrap();
        assert_eq!(read.facts.key, DeviceKey::EllipticCurve(bits));
        assert_eq!(check_first(&read.facts, &name), Ok(()));
        let now = clock::now();
        let signed = signer.sign(&read, &name, now).unwrap();
        assert_eq!(signed.issued, now);
        verified(&signer, &signed.pem, |certificate| {
            assert_eq!(certificate.subject().to_string(), format!("CN={name}"));
            assert_eq!(certificate.public_key().raw, key.subject_public_key_info());
            assert_eq!(issued_at(certificate.raw_serial()), Some(now));
            assert!(!certificate.is_ca());
            assert!(certificate.subject_alternative_name().unwrap().is_none());
            let usage = certificate.extended_key_usage().unwrap().unwrap().value;
            assert!(usage.client_auth && !usage.server_auth && !usage.any);
            let days = certificate.validity().not_after.timestamp() - now.0 / 1000;
            assert_eq!(days / 86_400, 365);
        });
    }
}

#[test]
fn requests_that_cannot_be_trusted_are_refused() {
    let key = key(&PKCS_ECDSA_P256_SHA256);
    let good = request(&key, "edge-7");
    let mut forged = good.der().to_vec();
    // A bit of the last number of the signature.
    *forged.last_mut().unwrap() ^= 1;
    let other =
        SignableRequest::read(&request(&KeyPair::generate_for(&PKCS_ED25519).unwrap(), "a").pem().unwrap());
    assert_eq!(other.unwrap().facts.key, DeviceKey::Other);
    let pem = |der: &[u8]| {
        let lines = base_64(der);
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{lines}-----END CERTIFICATE REQUEST-----\n")
    };
    assert!(SignableRequest::read(&pem(good.der())).is_ok());
    let (_directory, settings) = place();
    opened(&settings);
    let certificate = fs::read_to_string(settings.data_dir.join("device-authority.pem")).unwrap();
    for (text, reason) in [
        (pem(&forged), "its signature is not that of its key"),
        (pem(&good.der()[..40]), "is no request for a certificate in PEM"),
        ("csr".to_owned(), "is no request for a certificate in PEM"),
        (String::new(), "is no request for a certificate in PEM"),
        (certificate, "is no request for a certificate in PEM"),
        ("x".repeat(20_000), "is longer than 16384 bytes"),
    ] {
        let refused = SignableRequest::read(&text).unwrap_err();
        assert_eq!((&*refused.field, &*refused.reason), ("spec.csr", reason));
    }
}

/// Returns bytes in base 64, in one line.
fn base_64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number =
            (0..3).fold(0_usize, |number, at| number << 8 | usize::from(*group.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let symbol = char::from(SYMBOLS[number >> (18 - 6 * at) & 63]);
            text.push(if at > group.len() { '=' } else { symbol });
        }
    }
    text + "\n"
}

#[test]
fn authority_is_kept_until_its_file_is_replaced() {
    let (_directory, settings) = place();
    let first = opened(&settings).authority;
    assert_eq!(opened(&settings).authority, first);
    let file = settings.data_dir.join("device-authority.pem");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(file).unwrap();
    assert_ne!(opened(&settings).authority.id, first.id);
}

#[test]
fn enrolment_certificate_is_kept_until_the_authority_is_replaced() {
    let (_directory, settings) = place();
    let file = settings.data_dir.join("device-enrolment.pem");
    let made = |signer: &DeviceSigner| {
        let pem = fs::read_to_string(&file).unwrap();
        verified(signer, &pem, |certificate| {
            assert_eq!(certificate.subject().to_string(), "CN=enrolment");
            assert!(certificate.extended_key_usage().unwrap().unwrap().value.client_auth);
        });
        pem
    };
    let first = made(&opened(&settings));
    assert_eq!(made(&opened(&settings)), first);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(settings.data_dir.join("device-authority.pem")).unwrap();
    assert_ne!(made(&opened(&settings)), first);
    fs::write(&file, "nothing").unwrap();
    assert!(open(&settings).is_err_and(|error| format!("{error:#}").contains("device-enrolment.pem")));
}

#[test]
fn authority_of_the_settings_has_to_be_one() {
    let (_directory, settings) = place();
    opened(&settings);
    let file = |name: &str| settings.data_dir.join(name);
    let with = |authority: &str, key: &str| {
        let mut changed = settings.clone();
        let path = |name: &str| if name.is_empty() { name.into() } else { file(name) };
        changed.devices.certificates.authority = path(authority);
        changed.devices.certificates.authority_key = path(key);
        open(&changed).map(|signer| signer.unwrap().authority.id).map_err(|error| format!("{error:#}"))
    };
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::default().self_signed(&key).unwrap();
    fs::write(file("leaf.pem"), key.serialize_pem() + &leaf.pem()).unwrap();
    let own = "device-authority.pem";
    assert_eq!(with(own, own), Ok(opened(&settings).authority.id));
    for (authority, key, reason) in [
        (own, "", "devices.certificates.authority_key: missing, although there is a certificate"),
        ("", own, "devices.certificates.authority: missing, although there is a key"),
        (own, "leaf.pem", "certificate and key do not fit"),
        ("leaf.pem", "leaf.pem", "the certificate is not that of an authority"),
        ("nothing.pem", own, "cannot read"),
    ] {
        let error = with(authority, key).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn directory_that_takes_no_file_leaves_no_authority() {
    let (_directory, mut settings) = place();
    fs::write(settings.data_dir.join("file"), "").unwrap();
    settings.data_dir = settings.data_dir.join("file");
    assert!(open(&settings).unwrap().is_none());
}
