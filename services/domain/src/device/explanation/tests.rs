//! Table tests of the explanations of devices. The scenes are those of the tests of the statuses.

use std::{collections::BTreeSet, fmt::Write as _};

use expect_test::{Expect, expect};

use super::*;
use crate::{
    core::{explanation::RecordReason, time::Timestamp},
    device::{
        certificate::DeviceCertificate,
        enrolment::EnrolmentApproval,
        record::name::DeviceName,
        tests::scene::{Scene, scene},
    },
};

fn explained(scene: &Scene, enrolment: Option<&EnrolmentRequest>) -> DeviceExplanation {
    explain_device(&DeviceEvidence { device: &scene.device, evaluated: scene.evidence(), enrolment })
}

fn request() -> EnrolmentRequest {
    EnrolmentRequest {
        name: DeviceName::parse("d1").unwrap(),
        csr: "".into(),
        labels: Default::default(),
        system_info: Default::default(),
        os_mode: None,
        known_rendered_version: "".into(),
        awaits_reconnect: false,
        approval: None,
        certificate: None,
        renewal: None,
        created: Timestamp(1_000),
    }
}

fn approved(has_device: bool) -> EnrolmentRequest {
    let approval = EnrolmentApproval {
        labels: Default::default(),
        approved_by: "alice".into(),
        approved_at: Timestamp(2_000),
        has_device,
    };
    EnrolmentRequest { approval: Some(approval), ..request() }
}

fn check(rows: &[&str], expected: Expect) {
    let mut table = String::new();
    for words in rows {
        write!(table, "{words} -> {}", explained(&scene(words), None).test_row()).unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn requests_are_explained_before_there_is_a_record() {
    let rows = [request(), approved(false), approved(true)];
    let table: String = rows.iter().map(|request| explain_request(request).test_row()).collect();
    expect![[r#"
        held: device_approval_awaited
            d1 waits since 1970-01-01T00:00:01Z for the approval of its enrolment.
            Approve the request if the device is known; delete it otherwise. | curl -X PUT "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/enrollmentrequests/d1/approval" -H 'Content-Type: application/json' -d '{"approved": true}'
        progressing: device_record_awaited
            d1 is being enrolled since 1970-01-01T00:00:02Z, by an approved request.
            Wait: its record follows within seconds. Otherwise check that the fleet manager runs. | reveille explain device d1
        progressing: device_deleted
            d1 was deleted, and its request for enrolment goes.
            Nothing is to be done. | reveille timeline device d1
    "#]].assert_eq(&table);
}

#[test]
fn contact_comes_before_the_work() {
    check(
        &[
            "",
            "unseen",
            "seen:299",
            "seen:301",
            "seen:301 rendered:2 runs:1 not-updating:Error:no_disk",
            "unseen awaiting",
            "paused rendered:2 runs:7",
        ],
        expect![[r#"
             -> as_wanted: device_nothing_wanted
                d1 has neither a fleet nor a spec of its own, so nothing is wanted of it.
                Give it a label that a fleet selects, or a spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            unseen -> waiting: device_never_seen
                The agent of d1 was never seen, although the device has a record since 1970-01-12T13:46:40Z.
                Start the agent on the device, and check that it reaches the listener for agents with its certificate. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            seen:299 -> as_wanted: device_nothing_wanted
                d1 has neither a fleet nor a spec of its own, so nothing is wanted of it.
                Give it a label that a fleet selects, or a spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            seen:301 -> waiting: device_disconnected
                d1 is disconnected: its agent was not seen since 1970-01-12T13:41:39Z.
                Check the power, the network and the agent of the device. | reveille timeline device d1
            seen:301 rendered:2 runs:1 not-updating:Error:no_disk -> waiting: device_disconnected < device_update_failed
                d1 is disconnected: its agent was not seen since 1970-01-12T13:41:39Z.
                Check the power, the network and the agent of the device. | reveille timeline device d1
            unseen awaiting -> waiting: device_reconnect_awaited
                d1 was not seen since the database was restored.
                Wait until its agent polls. If it does not, check the power and the network of the device. | reveille explain device d1
            paused rendered:2 runs:7 -> held: device_conflict_paused
                d1 is paused: it runs a newer version than the restored database knows: it runs 7, the latest is 2.
                Check that its spec is the wanted one, then resume it. | curl -X POST "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/deviceactions/resume" -H 'Content-Type: application/json' -d '{"fieldSelector": "metadata.name=d1"}'
        "#]],
    );
    let enrolled = approved(true);
    let certificate = Some(DeviceCertificate { pem: "".into(), issued: Timestamp(3_000) });
    let certified = EnrolmentRequest { certificate, ..approved(true) };
    for (request, reason) in
        [(&enrolled, DeviceReason::CertificateAwaited), (&certified, DeviceReason::NeverSeen)]
    {
        assert_eq!(explained(&scene("unseen"), Some(request)).head.reason, reason);
    }
}

#[test]
fn updates_tell_how_far_they_are() {
    check(
        &[
            "rendered:2 runs:2",
            "rendered:2 runs:1",
            "rendered:2 runs:1 updating:Preparing:half_way",
            "rendered:2 runs:1 updating:Rebooting",
            "rendered:2 runs:1 updating:RollingBack:no_disk",
            "rendered:2 runs:1 updating:Retrying:no_disk",
            "rendered:2 runs:1 not-updating:Error:no_disk",
            "rendered:2 runs:1 not-updating:Canceled",
            "rendered:2 runs:2 not-updating:Error:no_disk",
            "rendered:2 runs:2 spec-invalid:no_such_image",
            "rendered:2 runs:2 image:a os:b mode:image",
            "rendered:2 runs:2 item:a mode:package",
        ],
        expect![[r#"
            rendered:2 runs:2 -> as_wanted: device_as_wanted
                d1 is as wanted.
                Nothing is to be done. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            rendered:2 runs:1 -> waiting: device_spec_not_taken
                d1 has not taken its latest spec: it runs 1, the latest is 2.
                Wait until its agent polls. If it does not, read the log of the agent. | reveille timeline device d1
            rendered:2 runs:1 updating:Preparing:half_way -> progressing: device_updating
                d1 is being updated since 1970-01-12T13:46:40Z: half way.
                Wait: its agent is at work. | reveille explain device d1
            rendered:2 runs:1 updating:Rebooting -> progressing: device_rebooting
                d1 is rebooting for an update since 1970-01-12T13:46:40Z.
                Wait until its agent is back. | reveille explain device d1
            rendered:2 runs:1 updating:RollingBack:no_disk -> failed: device_update_rolling_back
                d1 rolls its update back since 1970-01-12T13:46:40Z: no disk.
                Correct the spec, or the template of its fleet. | reveille timeline device d1
            rendered:2 runs:1 updating:Retrying:no_disk -> progressing: device_update_retrying
                d1 tries its update again since 1970-01-12T13:46:40Z: no disk.
                Read what failed in the words of its agent; the update is tried again by itself. | reveille timeline device d1
            rendered:2 runs:1 not-updating:Error:no_disk -> failed: device_update_failed
                The update of d1 failed, seen at 1970-01-12T13:46:40Z: no disk.
                Correct the spec, or the template of its fleet, by the words of the agent. | reveille timeline device d1
            rendered:2 runs:1 not-updating:Canceled -> progressing: device_update_canceled
                The update of d1 was canceled, seen at 1970-01-12T13:46:40Z.
                Wait: a newer one follows. | reveille explain device d1
            rendered:2 runs:2 not-updating:Error:no_disk -> as_wanted: device_as_wanted
                d1 is as wanted.
                Nothing is to be done. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            rendered:2 runs:2 spec-invalid:no_such_image -> held: device_spec_invalid
                d1 has a spec that cannot be rendered since 1970-01-12T13:46:40Z: no such image.
                Correct the spec, or the template of its fleet. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            rendered:2 runs:2 image:a os:b mode:image -> held: device_other_image
                d1 runs another image than its spec names: 'b'.
                Find who changed its system, or correct the image in the spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            rendered:2 runs:2 item:a mode:package -> held: device_catalog_item_unsupported
                d1 takes packages only, and its spec names an item of a catalogue.
                Name an image in the spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
        "#]],
    );
}

#[test]
fn fleets_tell_what_their_devices_wait_for() {
    check(
        &[
            "owner:f rendered:2 runs:2",
            "owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:2 runs:2",
            "owner:f fleet:f@v2 template:v1 rendered-template:v1 rendered:2 runs:2",
            "owner:f fleet:f@v2 template:v2 rendered-template:v1 rendered:2 runs:2",
            "owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:3 runs:2",
            "owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:3 runs:2 not-updating:Error:no_disk",
            "owner:f fleet:f@v2 template:v1 rendered-template:v1 rendered:2 runs:2 rollout-error:no_label_site",
            "owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:2 runs:2 several:f,g",
        ],
        expect![[r#"
            owner:f rendered:2 runs:2 -> waiting: device_fleet_unread
                d1 belongs to a fleet that could not be read.
                Check that the fleet exists and that the fleet manager runs. | reveille status
            owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:2 runs:2 -> as_wanted: device_as_wanted
                d1 is as wanted.
                Nothing is to be done. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            owner:f fleet:f@v2 template:v1 rendered-template:v1 rendered:2 runs:2 -> waiting: device_rollout_awaited
                d1 waits for the latest template of its fleet: version v2.
                Wait: it is rolled out by itself. Otherwise check that the fleet manager runs. | reveille explain device d1
            owner:f fleet:f@v2 template:v2 rendered-template:v1 rendered:2 runs:2 -> progressing: device_rendering_awaited
                d1 waits for the latest template of its fleet to be rendered: version v2.
                Wait: it follows within seconds. Otherwise check that the fleet manager runs. | reveille explain device d1
            owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:3 runs:2 -> waiting: device_spec_not_taken
                d1 has not taken its latest spec: it runs 2, the latest is 3.
                Wait until its agent polls. If it does not, read the log of the agent. | reveille timeline device d1
            owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:3 runs:2 not-updating:Error:no_disk -> failed: device_update_failed
                The update of d1 failed, seen at 1970-01-12T13:46:40Z: no disk.
                Correct the spec, or the template of its fleet, by the words of the agent. | reveille timeline device d1
            owner:f fleet:f@v2 template:v1 rendered-template:v1 rendered:2 runs:2 rollout-error:no_label_site -> held: device_template_unfit
                The template of its fleet does not fit d1: no label site.
                Correct the template, or give the device the label that it lacks. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:2 runs:2 several:f,g -> held: device_several_fleets
                d1 is selected by more than one fleet since 1970-01-12T13:46:40Z: f,g.
                Change the labels of the device or the selectors of the fleets, so that one fleet selects it. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
        "#]],
    );
}

#[test]
fn work_and_resources_are_explained() {
    check(
        &[
            "app:a:Running app:b:Error",
            "app:a:Running app:b:Starting",
            "app:a:Error verdict:Healthy:all_well",
            "app:a:Running verdict:Error:a_crashes",
            "cpu:Critical memory:Warning disk:Critical",
            "integrity:Failed",
            "app:b:Error cpu:Critical rendered:2 runs:1",
        ],
        expect![[r#"
            app:a:Running app:b:Error -> failed: device_application_failed
                d1 has an application that has failed: b in error.
                Read the log of the application on the device, then correct its spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            app:a:Running app:b:Starting -> waiting: device_application_degraded
                d1 has an application that is not fully at work: b degraded.
                Wait a little; then read the log of the application on the device. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            app:a:Error verdict:Healthy:all_well -> as_wanted: device_nothing_wanted
                d1 has neither a fleet nor a spec of its own, so nothing is wanted of it.
                Give it a label that a fleet selects, or a spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            app:a:Running verdict:Error:a_crashes -> failed: device_application_failed
                d1 has an application that has failed: a crashes.
                Read the log of the application on the device, then correct its spec. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            cpu:Critical memory:Warning disk:Critical -> held: device_resource_critical < device_resource_short
                d1 is critically short of a resource: CPU, Disk.
                Free the resource, or give the device less work. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            integrity:Failed -> held: device_integrity_failed
                The integrity of d1 could not be proved.
                Check the device before it is trusted again. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            app:b:Error cpu:Critical rendered:2 runs:1 -> waiting: device_spec_not_taken < device_application_failed < device_resource_critical
                d1 has not taken its latest spec: it runs 1, the latest is 2.
                Wait until its agent polls. If it does not, read the log of the agent. | reveille timeline device d1
        "#]],
    );
}

#[test]
fn ends_are_explained() {
    check(
        &[
            "decommissioning",
            "decommissioning seen:301",
            "decommissioning end:Started",
            "decommissioning end:Completed seen:301",
            "decommissioning end:Error",
        ],
        expect![[r#"
            decommissioning -> waiting: device_end_requested
                d1 is to end its life, and its agent has not begun to.
                Wait until its agent polls, or delete the device. | reveille explain device d1
            decommissioning seen:301 -> waiting: device_end_requested < device_disconnected
                d1 is to end its life, and its agent has not begun to.
                Wait until its agent polls, or delete the device. | reveille explain device d1
            decommissioning end:Started -> progressing: device_end_begun
                d1 is ending its work since 1970-01-12T13:46:40Z.
                Wait until its agent has ended. | reveille explain device d1
            decommissioning end:Completed seen:301 -> as_wanted: device_ended
                d1 has ended its work, seen at 1970-01-12T13:46:40Z.
                Delete the device once it is no longer needed. | curl "${REVEILLE_URL:-http://127.0.0.1:7700}/flightctl/api/v1/devices/d1"
            decommissioning end:Error -> failed: device_ended_in_error
                d1 has ended its work with an error, seen at 1970-01-12T13:46:40Z.
                Check the device for what is left of its work, then delete it. | reveille timeline device d1
        "#]],
    );
}

#[test]
fn evidence_has_its_source_and_its_age() {
    let words =
        "owner:f fleet:f@v2 template:v2 rendered-template:v2 rendered:3 runs:2 not-updating:Error:no_disk";
    let items = explained(&scene(words), Some(&approved(true))).evidence;
    let lines = items.iter().map(|item| {
        let at = item.observed_at.map_or("-".to_owned(), |at| at.0.to_string());
        format!("{:?} {} {at}: {}\n", item.source, item.verdict.word(), item.content)
    });
    expect![[r#"
        Decision present -: summary Online (connected), updated OutOfDate (fleet_not_current), applications NoApplications (no_applications), lifecycle Unknown
        Record present -: rendered version 3, of template v2
        Contact present 1000000000: the agent was seen; silent for 300s it counts as gone
        Fleet present -: fleet 'f' owns the device, its template: v2
        Report present -: runs version 2
        Report present 1000000000: Updating: False, Error, no disk
        Enrolment present 1000: the agent requested its enrolment
        Enrolment present 2000: 'alice' approved the request
        Enrolment absent -: no certificate was issued
    "#]].assert_eq(&lines.collect::<String>());
}

#[test]
fn every_cause_has_a_sentence_and_a_step() {
    for reason in DeviceReason::ALL {
        let explanation = DeviceExplanation {
            namespace: "".into(),
            name: "d1".into(),
            head: DeviceCause::new(reason),
            others: Vec::new(),
            evidence: Vec::new(),
        };
        let step = explanation.next_step();
        for text in [&explanation.sentence(&explanation.head), &step.text, &step.command] {
            let is_filled =
                ["{name}", "{since}", "{at}", "{words}"].iter().all(|place| !text.contains(place));
            assert!(!text.is_empty() && is_filled, "{reason:?}: {text}");
        }
    }
}

#[test]
fn words_of_causes_are_unique() {
    let words: BTreeSet<_> = DeviceReason::ALL.map(|reason| reason.row().word).into();
    assert_eq!(words.len(), DeviceReason::ALL.len());
}
