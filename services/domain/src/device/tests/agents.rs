//! Callers at the port of agents.

use std::time::Duration;

use expect_test::expect;

use super::{check, scene::NOW};
use crate::{
    core::time::Timestamp,
    device::{
        agent::{AgentCertificate, AgentIdentity, ENROLMENT_NAME, RevocationEvidence, identify},
        certificate::{CertificateRevocation, RevocationReason, serial_number},
        record::name::DeviceName,
    },
};

/// Time at which the certificates of the rows were made.
const ISSUED: Timestamp = Timestamp(500_000_000);

fn revocation(reason: RevocationReason, issued_until: Timestamp) -> CertificateRevocation {
    let name = DeviceName::parse("d1").expect("a name");
    CertificateRevocation { name, issued_until, reason, ends: NOW }
}

fn caller(words: &str) -> Result<AgentIdentity, String> {
    let mut certificate = AgentCertificate {
        common_names: vec!["d1".into()],
        serial: serial_number(ISSUED, [7; 8]).to_vec(),
        ends: NOW,
    };
    let mut revoked = None;
    let mut is_known = true;
    for word in words.split_whitespace() {
        let until = Timestamp(if word.ends_with("before") { ISSUED.0 - 1 } else { ISSUED.0 });
        match word {
            "enrolment" => certificate.common_names = vec![ENROLMENT_NAME.into()],
            "nameless" => certificate.common_names.clear(),
            "unnamed" => certificate.common_names = vec!["Not a name".into()],
            "also" => certificate.common_names.push("d2".into()),
            "foreign" => certificate.serial = vec![4, 2],
            "ended" => certificate.ends = NOW.minus(Duration::from_millis(1)),
            "deleted" | "deleted-before" => revoked = Some(revocation(RevocationReason::Deleted, until)),
            "over" | "over-before" => revoked = Some(revocation(RevocationReason::Decommissioned, until)),
            "unknown" => is_known = false,
            other => panic!("no word of the test: {other}"),
        }
    }
    let evidence = match &revoked {
        Some(revocation) => RevocationEvidence::Revoked(revocation),
        None if is_known => RevocationEvidence::None,
        None => RevocationEvidence::Unknown,
    };
    identify(&certificate, evidence, NOW).map_err(|refusal| refusal.to_string())
}

fn show(words: &str) -> String {
    let caller = match caller(words) {
        Ok(caller) => caller,
        Err(refusal) => return format!("nobody: {refusal}"),
    };
    let verdict = |denial: Option<String>| denial.unwrap_or_else(|| "yes".to_owned());
    let own = verdict(caller.check_device("d1").err().map(|denial| denial.to_string()));
    let other = verdict(caller.check_device("d2").err().map(|denial| denial.to_string()));
    let enrolling = verdict(caller.check_enrolling().err().map(|denial| denial.to_string()));
    format!("{caller:?}\n    d1: {own}\n    d2: {other}\n    enrols: {enrolling}")
}

#[test]
fn certificates_speak_for_one_device_and_for_as_long_as_they_count() {
    let rows = [
        "",
        "enrolment",
        "enrolment foreign unknown",
        "nameless",
        "unnamed",
        "also",
        "foreign",
        "ended",
        "enrolment ended",
        "deleted",
        "deleted-before",
        "over",
        "over-before",
        "unknown",
    ];
    check(
        &rows,
        show,
        expect![[r#"

                Device(DeviceName("d1"))
                d1: yes
                d2: the certificate is that of device 'd1', which may not speak for device 'd2'
                enrols: the certificate is that of device 'd1', and requests to be enrolled need the certificate for these
            enrolment
                Enrolling
                d1: the certificate is the one with which agents ask to be enrolled, and speaks for no device
                d2: the certificate is the one with which agents ask to be enrolled, and speaks for no device
                enrols: yes
            enrolment foreign unknown
                Enrolling
                d1: the certificate is the one with which agents ask to be enrolled, and speaks for no device
                d2: the certificate is the one with which agents ask to be enrolled, and speaks for no device
                enrols: yes
            nameless
                nobody: the certificate does not have exactly one common name, the name of a device
            unnamed
                nobody: the certificate does not have exactly one common name, the name of a device
            also
                nobody: the certificate does not have exactly one common name, the name of a device
            foreign
                nobody: the certificate for 'd1' has a serial number that no certificate of a device has
            ended
                nobody: the certificate has ended
            enrolment ended
                nobody: the certificate has ended
            deleted
                nobody: Device of name "d1" not found: it was deleted, and this certificate is revoked
            deleted-before
                Device(DeviceName("d1"))
                d1: yes
                d2: the certificate is that of device 'd1', which may not speak for device 'd2'
                enrols: the certificate is that of device 'd1', and requests to be enrolled need the certificate for these
            over
                nobody: the certificate of device 'd1' is revoked: the device was decommissioned
            over-before
                Device(DeviceName("d1"))
                d1: yes
                d2: the certificate is that of device 'd1', which may not speak for device 'd2'
                enrols: the certificate is that of device 'd1', and requests to be enrolled need the certificate for these
            unknown
                nobody: it is not known yet which certificates are revoked
        "#]],
    );
}
