//! Enrolment of devices.

use std::time::Duration;

use expect_test::expect;

use super::{check, scene, scene::NOW, show};
use crate::device::{
    certificate::{DeviceCertificate, RevocationReason, revoke},
    enrolment::{
        ApprovalWish, CertificateRenewal, EnrolmentRequest, approve, check_deletion, create, duty,
        event::event, mark_restored,
    },
    record::{
        Device,
        report::{DeviceIntegrity, OsMode},
    },
    selector::{EnrolmentField, FieldSelector},
};

/// Returns a request with the labels of a scene, whose agent knows the version that the scene runs.
fn request(words: &str) -> EnrolmentRequest {
    let device = scene(words).device;
    EnrolmentRequest {
        name: device.meta.name,
        csr: "csr".into(),
        labels: device.meta.labels,
        system_info: device.reported.system_info,
        os_mode: Some(OsMode::Image),
        known_rendered_version: device.reported.rendered_version,
        awaits_reconnect: false,
        approval: None,
        certificate: None,
        renewal: None,
        created: NOW,
    }
}

fn person(words: &str) -> ApprovalWish {
    let labels =
        scene(words.trim_start().trim_start_matches("replace").trim_start_matches("deny")).device.meta.labels;
    ApprovalWish {
        approved: !words.contains("deny"),
        labels,
        replace_labels: words.contains("replace"),
        approved_by: "me".into(),
    }
}

#[test]
fn approved_requests_make_devices() {
    let rows = [
        // A29.
        "runs:5 >",
        "runs:0 >",
        " >",
        // A30.
        "label:a:1 label:b:1 > label:c:2",
        "label:a:1 label:b:1 > replace label:c:2",
        "label:a:1 > label:a:2",
        "label:a:1 >",
        "label:a:1 > replace",
        " > deny",
        " > label:-a:1",
    ];
    let approved = |words: &str| {
        let (agent, wish) = words.split_once('>').expect("a request and a wish");
        let request = create(request(agent), false).expect("a request that is taken");
        let (approved, device) = match approve(&request, person(wish), DeviceIntegrity::default(), NOW) {
            Ok(approved) => approved,
            Err(invalid) => return invalid.to_string(),
        };
        // A31.
        assert!(approve(&approved, person(wish), DeviceIntegrity::default(), NOW).is_err());
        assert_eq!(approved.approval.map(|approval| approval.labels), Some(device.meta.labels.clone()));
        let mut evaluated = scene("unseen");
        evaluated.device = device;
        let status = evaluated.evaluate().status;
        let device = Device { status, ..evaluated.device };
        format!("{} {:?}", show::words(&device.status), device.meta.labels)
    };
    check(
        &rows,
        approved,
        expect![[r#"
        runs:5 >
            AwaitingReconnect Unknown Unknown Enrolled {}
        runs:0 >
            Unknown UpToDate Unknown Enrolled {}
         >
            Unknown UpToDate Unknown Enrolled {}
        label:a:1 label:b:1 > label:c:2
            Unknown UpToDate Unknown Enrolled {"a": "1", "b": "1", "c": "2"}
        label:a:1 label:b:1 > replace label:c:2
            Unknown UpToDate Unknown Enrolled {"c": "2"}
        label:a:1 > label:a:2
            Unknown UpToDate Unknown Enrolled {"a": "2"}
        label:a:1 >
            Unknown UpToDate Unknown Enrolled {"a": "1"}
        label:a:1 > replace
            Unknown UpToDate Unknown Enrolled {}
         > deny
            approved: must be true: a request that is unwanted is deleted
         > label:-a:1
            metadata.labels: '-a' is not a key of a label: letters, digits and -_., with a letter or a digit at both ends, at most 63
    "#]],
    );
}

#[test]
fn enrolled_devices_keep_their_requests() {
    assert_eq!(create(request(""), true).unwrap_err().field, "metadata.name");
    assert_eq!(create(request("label:-a:1"), false).unwrap_err().field, "metadata.labels");
    // A31.
    assert!(check_deletion(true).is_err());
    assert!(check_deletion(false).is_ok());
}

#[test]
fn restores_mark_requests_that_nobody_approved() {
    let pending = create(request(""), false).unwrap();
    let marked = mark_restored(&pending).unwrap();
    assert!(marked.awaits_reconnect);
    assert_eq!(mark_restored(&marked), None);
    let (approved, _) = approve(&pending, person(""), DeviceIntegrity::default(), NOW).unwrap();
    assert_eq!(mark_restored(&approved), None);
}

#[test]
fn requests_are_selected_by_approval() {
    let pending = create(request(""), false).unwrap();
    let (mut approved, _) = approve(&pending, person(""), DeviceIntegrity::default(), NOW).unwrap();
    approved.certificate = Some(DeviceCertificate { pem: "pem".into(), issued: NOW });
    for (selector, expected) in [
        ("status.approval.approved=false", [true, false]),
        ("status.approval.approved=true", [false, true]),
        ("status.certificate", [false, true]),
        ("metadata.name=d1,!metadata.owner", [true, true]),
    ] {
        let selector = FieldSelector::<EnrolmentField>::parse(selector).unwrap();
        assert_eq!([&pending, &approved].map(|request| selector.matches_request(request)), expected);
    }
}

#[test]
fn approvals_make_work_until_they_are_carried_out() {
    let rows = [
        "pending > absent",
        "pending > lifecycle:Enrolled",
        "approved > absent",
        "approved > lifecycle:Unknown",
        "done > absent",
        "done > lifecycle:Enrolled",
        "done > lifecycle:Decommissioning",
        "done > lifecycle:Decommissioned",
        "done revoked > lifecycle:Decommissioned",
        "done renewed revoked > lifecycle:Decommissioned",
    ];
    let due = |words: &str| {
        let (stage, device) = words.split_once('>').expect("a stage and a device");
        let mut request = create(request(""), false).expect("a request that is taken");
        if !stage.contains("pending") {
            (request, _) =
                approve(&request, person(""), DeviceIntegrity::default(), NOW).expect("an approval");
            request.certificate = Some(DeviceCertificate { pem: "pem".into(), issued: NOW });
        }
        if let Some(approval) = request.approval.as_mut() {
            approval.has_device = stage.contains("done");
        }
        let revocation =
            revoke(&request.name, Some(NOW), RevocationReason::Decommissioned, NOW, Duration::ZERO);
        if stage.contains("renewed") {
            let issued = NOW.plus(Duration::from_millis(1));
            request.certificate = Some(DeviceCertificate { pem: "next".into(), issued });
        }
        let device = (!device.contains("absent")).then(|| scene(device).device);
        format!(
            "{:?}",
            duty(&request, device.as_ref(), Some(&revocation).filter(|_| stage.contains("revoked")))
        )
    };
    check(
        &rows,
        due,
        expect![[r#"
        pending > absent
            None
        pending > lifecycle:Enrolled
            None
        approved > absent
            Some(CreateDevice)
        approved > lifecycle:Unknown
            Some(CreateDevice)
        done > absent
            Some(Forget)
        done > lifecycle:Enrolled
            None
        done > lifecycle:Decommissioning
            None
        done > lifecycle:Decommissioned
            Some(Revoke)
        done revoked > lifecycle:Decommissioned
            None
        done renewed revoked > lifecycle:Decommissioned
            Some(Revoke)
    "#]],
    );
}

#[test]
fn changes_of_requests_are_events() {
    let pending = create(request(""), false).unwrap();
    let (approved, _) = approve(&pending, person(""), DeviceIntegrity::default(), NOW).unwrap();
    let mut done = approved.clone();
    done.approval.as_mut().unwrap().has_device = true;
    let renewal = CertificateRenewal { name: "r1".into(), csr: "next".into(), at: NOW };
    let renewed = EnrolmentRequest { renewal: Some(renewal), ..done.clone() };
    let kind = |before, after| event(before, after).map(|event| event.kind);
    assert_eq!(kind(None, Some(&pending)), Some("ResourceCreated"));
    assert_eq!(kind(Some(&pending), Some(&approved)), Some("EnrollmentRequestApproved"));
    assert_eq!(kind(Some(&approved), Some(&done)), None);
    assert_eq!(kind(Some(&done), Some(&renewed)), Some("ResourceUpdated"));
    assert_eq!(kind(Some(&renewed), None), Some("ResourceDeleted"));
}
