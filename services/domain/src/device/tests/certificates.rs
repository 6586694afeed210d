//! Certificates of agents.

use std::time::Duration;

use expect_test::expect;

use super::{check, scene, scene::NOW};
use crate::{
    core::time::Timestamp,
    device::{
        certificate::{
            CertificateRequest, DeviceKey, RevocationReason, SERIAL_LENGTH, check_first, check_next,
            check_renewal, issue_time, issued_at, revoke, serial_number,
        },
        record::name::DeviceName,
    },
};

const DIGEST: [u8; 32] = [7; 32];

fn ask(words: &str) -> (CertificateRequest, DeviceName) {
    let own = DeviceName::of_key(&DIGEST);
    let mut request = CertificateRequest {
        key: DeviceKey::EllipticCurve(256),
        digest: DIGEST,
        common_names: vec![own.shared()],
    };
    let mut name = own;
    for word in words.split_whitespace() {
        let (kind, value) = word.split_once(':').unwrap_or((word, ""));
        let bits = || value.parse().expect("a number of bits");
        match kind {
            "curve" => request.key = DeviceKey::EllipticCurve(bits()),
            "rsa" => request.key = DeviceKey::Rsa(bits()),
            "other" => request.key = DeviceKey::Other,
            "key" => request.digest = [bits() as u8; 32],
            "nameless" => request.common_names.clear(),
            "also" => request.common_names.push(value.into()),
            "subject" => request.common_names = vec![value.into()],
            "for" => name = DeviceName::parse(value).expect("a name"),
            other => panic!("no word of the test: {other}"),
        }
    }
    (request, name)
}

#[test]
fn requests_that_lie_are_refused() {
    let rows = [
        "",
        "curve:384",
        "curve:224",
        "curve:521",
        "rsa:2048",
        "rsa:4096",
        "rsa:1024",
        "rsa:8192",
        "other",
        "key:8",
        "for:edge-7",
        "subject:edge-7",
        "subject:edge-7 for:edge-7",
        "nameless",
        "also:edge-7",
    ];
    let verdict = |words: &str| {
        let (request, name) = ask(words);
        let [first, next] = [check_first, check_next].map(|check| match check(&request, &name) {
            Ok(()) => "signed".to_owned(),
            Err(invalid) => invalid.to_string(),
        });
        format!("enrols: {first}; renews: {next}")
    };
    check(
        &rows,
        verdict,
        expect![[r#"

            enrols: signed; renews: signed
        curve:384
            enrols: signed; renews: signed
        curve:224
            enrols: spec.csr.publicKey: a curve of 224 bits is not accepted; renews: spec.csr.publicKey: a curve of 224 bits is not accepted
        curve:521
            enrols: spec.csr.publicKey: a curve of 521 bits is not accepted; renews: spec.csr.publicKey: a curve of 521 bits is not accepted
        rsa:2048
            enrols: signed; renews: signed
        rsa:4096
            enrols: signed; renews: signed
        rsa:1024
            enrols: spec.csr.publicKey: an RSA key has 2048 to 4096 bits, this one has 1024; renews: spec.csr.publicKey: an RSA key has 2048 to 4096 bits, this one has 1024
        rsa:8192
            enrols: spec.csr.publicKey: an RSA key has 2048 to 4096 bits, this one has 8192; renews: spec.csr.publicKey: an RSA key has 2048 to 4096 bits, this one has 8192
        other
            enrols: spec.csr.publicKey: must be an RSA key, or one of the curve P-256 or P-384; renews: spec.csr.publicKey: must be an RSA key, or one of the curve P-256 or P-384
        key:8
            enrols: metadata.name: '0s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3g' is not made of the key of the request; renews: signed
        for:edge-7
            enrols: metadata.name: 'edge-7' is not made of the key of the request; renews: spec.csr.subject: '0s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3g' is not the name of the device, 'edge-7'
        subject:edge-7
            enrols: spec.csr.subject: 'edge-7' is not the name of the device, '0s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3g'; renews: spec.csr.subject: 'edge-7' is not the name of the device, '0s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3ge1o70s3g'
        subject:edge-7 for:edge-7
            enrols: metadata.name: 'edge-7' is not made of the key of the request; renews: signed
        nameless
            enrols: spec.csr.subject: has no common name; renews: spec.csr.subject: has no common name
        also:edge-7
            enrols: spec.csr.subject: has more than one common name; renews: spec.csr.subject: has more than one common name
    "#]],
    );
}

#[test]
fn certificates_are_not_renewed_at_the_end() {
    let rows = [
        "lifecycle:Enrolled",
        "decommissioning",
        "lifecycle:Decommissioning",
        "end:Started",
        "lifecycle:Decommissioned",
    ];
    check(
        &rows,
        |words| format!("{:?}", check_renewal(&scene(words).device)),
        expect![[r#"
        lifecycle:Enrolled
            Ok(())
        decommissioning
            Ok(())
        lifecycle:Decommissioning
            Ok(())
        end:Started
            Err(Decommissioning)
        lifecycle:Decommissioned
            Err(Decommissioning)
    "#]],
    );
}

#[test]
fn serial_numbers_tell_when_they_were_made() {
    for time in [0, 1, NOW.0, 4_102_444_800_000, (1 << 56) - 1] {
        let serial = serial_number(Timestamp(time), [0xff; 8]);
        assert_eq!(issued_at(&serial), Some(Timestamp(time)));
        // A positive number of exactly that length in its encoding.
        assert_eq!(serial[0], 1);
    }
    for foreign in [&[][..], &[1; 8], &[2; SERIAL_LENGTH], &[0; SERIAL_LENGTH], &[1; 20]] {
        assert_eq!(issued_at(foreign), None, "{foreign:?}");
    }
}

#[test]
fn certificates_after_a_revocation_count() {
    let name = DeviceName::of_key(&DIGEST);
    let later = NOW.plus(Duration::from_secs(60));
    for latest in [None, Some(NOW), Some(later)] {
        let revocation = revoke(&name, latest, RevocationReason::Deleted, NOW, Duration::from_secs(600));
        assert!(revocation.revokes(NOW) && latest.is_none_or(|latest| revocation.revokes(latest)));
        let next = issue_time(NOW, None, Some(&revocation));
        assert!(!revocation.revokes(next), "a clock that stands still, or was set back");
        assert_eq!(revocation.ends, revocation.issued_until.plus(Duration::from_secs(600)));
    }
    assert_eq!(issue_time(NOW, None, None), NOW);
    assert_eq!(issue_time(NOW, Some(later), None), Timestamp(later.0 + 1));
}
