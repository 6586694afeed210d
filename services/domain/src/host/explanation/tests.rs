//! Table tests of the explanations of hosts. The scenes are those of the tests of the decisions: a row is decided, and
//! the host that follows is explained.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::host::{
    record::spec::HostImage,
    step,
    tests::scene::{MOMENT, scene},
};

fn decided(words: &str) -> Host {
    let mut scene = scene(words);
    let Host { spec, status, progress, .. } = &mut scene.host;
    let registered = progress.registered.as_mut().and_then(|facts| facts.image.as_mut());
    let attempted = status.last_attempt.as_mut().and_then(|system| system.image.as_mut());
    let images = [spec.image.as_mut(), status.provisioning.image.as_mut(), attempted, registered];
    images.into_iter().flatten().for_each(complete);
    let mut host = step(&scene.host, &scene.seen, &scene.policy, MOMENT).host;
    host.meta.key = crate::host::record::HostKey { namespace: "metal".into(), name: "h1".into() };
    host
}

/// Gives the image `good` the address that the words of a scene cannot have.
fn complete(image: &mut HostImage) {
    if &*image.url == "good" {
        (image.url, image.checksum) = ("http://images/good".into(), "c".into());
    }
}

fn check(rows: &[&str], expected: Expect) {
    let mut table = String::new();
    for words in rows {
        write!(table, "{words} -> {}", explain_host(&decided(words)).test_row()).unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn hosts_that_need_nothing_are_as_wanted() {
    check(
        &[
            "in:provisioned has:good image:good online on",
            "in:available",
            "in:externally-provisioned external",
            "in:externally-provisioned external session:over online",
            "in:provisioned has:good image:good online on ailing",
        ],
        expect![[r#"
            in:provisioned has:good image:good online on -> as_wanted: host_as_wanted
                h1 is as wanted since 1970-01-01T02:46:40Z.
                Nothing is to be done. | kubectl get bmh h1 --namespace metal --output yaml
            in:available -> as_wanted: host_available
                h1 is ready to be provisioned since 1970-01-01T02:46:40Z, and no image is wanted.
                Set an image in its spec once it is to run one. | kubectl get bmh h1 --namespace metal --output yaml
            in:externally-provisioned external -> as_wanted: host_externally_provisioned
                h1 was installed by other means, and its power is as wanted since 1970-01-01T02:46:40Z.
                Nothing is to be done. | kubectl get bmh h1 --namespace metal --output yaml
            in:externally-provisioned external session:over online -> as_wanted: host_power_left_by_session
                h1 keeps since 1970-01-01T02:46:40Z the power that the last session on its node gave it, against its spec.
                Change the spec of the host if its power is to follow the spec again. | kubectl get bmh h1 --namespace metal --output yaml
            in:provisioned has:good image:good online on ailing -> as_wanted: host_as_wanted < host_hardware_critical
                h1 is as wanted since 1970-01-01T02:46:40Z.
                Nothing is to be done. | kubectl get bmh h1 --namespace metal --output yaml
        "#]],
    );
}

#[test]
fn people_and_sessions_hold_hosts() {
    check(
        &[
            "in:unmanaged no-address no-secret-name",
            "in:available paused",
            "in:available session",
            "in:provisioned has:good image:good op:detached detached",
            "in:provisioned has:good image:good op:detached detached:delay del",
            "in:provisioned has:good image:good online hold:k",
        ],
        expect![[r#"
            in:unmanaged no-address no-secret-name -> held: host_bmc_unmanaged
                h1 is not managed since 1970-01-01T02:46:40Z: its BMC is not given.
                Set the address of its BMC and the secret with its login in the spec. | kubectl edit bmh h1 --namespace metal
            in:available paused -> held: host_paused
                h1 is paused by an annotation since 1970-01-01T02:46:40Z, so nothing is done about it.
                Remove the annotation once the host may go on. | kubectl annotate bmh h1 --namespace metal baremetalhost.metal3.io/paused-
            in:available session -> waiting: host_node_in_use
                h1 is left since 1970-01-01T02:46:40Z to the session that acts on its node.
                Nothing is to be done: the host goes on once the session is over. | reveille get sessions --status running
            in:provisioned has:good image:good op:detached detached -> held: host_detached
                h1 is detached since 1970-01-01T02:46:40Z: its backend has let go of it.
                Remove the annotation once the host is to be managed again. | kubectl annotate bmh h1 --namespace metal baremetalhost.metal3.io/detached-
            in:provisioned has:good image:good op:detached detached:delay del -> held: host_deletion_held
                h1 is to be deleted and is held by its detachment since 1970-01-01T02:46:40Z.
                Remove the annotation so that the deletion goes on. | kubectl annotate bmh h1 --namespace metal baremetalhost.metal3.io/detached-
            in:provisioned has:good image:good online hold:k -> held: host_held_off
                h1 is held off by an annotation since 1970-01-01T02:46:40Z.
                Its author removes the annotation, which begins with reboot.metal3.io/, once the host may be on. | kubectl get bmh h1 --namespace metal --output yaml
        "#]],
    );
}

#[test]
fn logins_are_told_apart() {
    check(
        &[
            "in:registering unregistered secret:missing",
            "in:registering unregistered secret:incomplete",
            "in:registering unregistered secret:unreadable",
            "in:registering unregistered register=?",
            "in:registering unregistered register=failed",
            "in:available secret:2 register=failed",
            "in:available error:registration register=?",
        ],
        expect![[r#"
            in:registering unregistered secret:missing -> held: host_credentials_missing
                h1 lacks the secret with the login of its BMC since 1970-01-01T02:46:40Z: login.
                Create the secret that the spec names, in the namespace of the host. | kubectl get secrets --namespace metal
            in:registering unregistered secret:incomplete -> held: host_credentials_incomplete
                h1 has no complete login for its BMC since 1970-01-01T02:46:40Z: the secret with the login of the BMC lacks the user name or the password.
                Complete the secret, or the address and the name of the secret in the spec. | kubectl edit bmh h1 --namespace metal
            in:registering unregistered secret:unreadable -> waiting: host_credentials_unreadable
                h1 has a login for its BMC that could not be read since 1970-01-01T02:46:40Z: the secret with the login of the BMC could not be read.
                Check the store of secrets; the work then goes on by itself. | reveille status
            in:registering unregistered register=? -> progressing: host_registering
                h1 is being registered since 1970-01-01T02:46:40Z.
                Wait: its backend proves the login at the BMC. | reveille explain host h1 --namespace metal
            in:registering unregistered register=failed -> failed: host_login_unproven
                The registration of h1 fails, and its BMC has never accepted this login: broken.
                Correct the login in the secret, or the address of the BMC; the host is then tried again at once. | kubectl edit bmh h1 --namespace metal
            in:available secret:2 register=failed -> failed: host_login_unproven
                The registration of h1 fails, and its BMC has never accepted this login: broken.
                Correct the login in the secret, or the address of the BMC; the host is then tried again at once. | kubectl edit bmh h1 --namespace metal
            in:available error:registration register=? -> failed: host_registration_failed < host_registering
                The registration of h1 fails, although its login has worked before: old.
                Check that the BMC and the backend answer, and remove the obstacle that the words name. | reveille timeline host metal/h1
        "#]],
    );
}

#[test]
fn backends_hold_hosts_up() {
    check(
        &[
            "in:available not-ready",
            "in:inspecting no-hardware inspect=unreachable",
            "in:inspecting no-hardware inspect=busy",
            "in:available power",
            "in:available wants-ramdisk ramdisk:failed",
            "in:inspecting no-hardware no-slot",
        ],
        expect![[r#"
            in:available not-ready -> waiting: host_backend_not_ready
                h1 waits since 1970-01-01T02:46:40Z for its backend, which is not ready.
                Start the backend, or mend it; the work then goes on by itself. | reveille status
            in:inspecting no-hardware inspect=unreachable -> waiting: host_backend_unreachable
                h1 is held up by its backend, which could not be asked since 1970-01-01T02:46:40Z: refused.
                Mend what the words name; the work then goes on by itself. | reveille status
            in:inspecting no-hardware inspect=busy -> waiting: host_backend_busy
                h1 waits for its backend, which is busy with it since 1970-01-01T02:46:40Z: locked.
                Wait: it is asked again by itself. | reveille explain host h1 --namespace metal
            in:available power -> waiting: host_power_reading_awaited
                h1 waits since 1970-01-01T02:46:40Z for a reading of its power from after the last change.
                Wait: the power is read again by itself. Otherwise check its BMC. | reveille explain host h1 --namespace metal
            in:available wants-ramdisk ramdisk:failed -> failed: host_registration_failed
                The registration of h1 fails, although its login has worked before: no image.
                Check that the BMC and the backend answer, and remove the obstacle that the words name. | reveille timeline host metal/h1
            in:inspecting no-hardware no-slot -> waiting: host_slot_awaited
                h1 waits since 1970-01-01T02:46:40Z for its turn: as many hosts are worked on as the backends can take.
                Nothing is to be done: its turn comes when another host is finished. | reveille explain host h1 --namespace metal
        "#]],
    );
}

#[test]
fn operations_run_and_fail() {
    check(
        &[
            "in:inspecting no-hardware inspect=running",
            "in:inspecting no-hardware inspect=failed",
            "in:preparing prepare=running",
            "in:preparing prepare=failed",
            "in:provisioning image:good provision=running",
            "in:provisioning image:good provision=failed",
            "in:provisioning image:good deploy-data:bad",
            "in:provisioning image:bad provision=failed",
            "in:deprovisioning deprovision=running",
            "in:deprovisioning deprovision=failed",
            "in:available online image:good fails:3 limit:3 attempted:good",
            "in:available online power-on=?",
            "in:available online power-on=failed",
            "in:deleting del delete=running",
        ],
        expect![[r#"
            in:inspecting no-hardware inspect=running -> progressing: host_inspecting
                h1 is being inspected since 1970-01-01T02:46:40Z.
                Wait: its inventory is collected, which takes minutes. | reveille explain host h1 --namespace metal
            in:inspecting no-hardware inspect=failed -> failed: host_inspection_failed
                The inspection of h1 fails: broken.
                Check its boot network and its console, and remove the obstacle that the words name. | reveille timeline host metal/h1
            in:preparing prepare=running -> progressing: host_preparing
                h1 is being prepared since 1970-01-01T02:46:40Z.
                Wait: RAID volumes and firmware are applied. | reveille explain host h1 --namespace metal
            in:preparing prepare=failed -> failed: host_preparation_failed
                The preparation of h1 fails: broken.
                Correct the wish for RAID or firmware that the words name. | reveille timeline host metal/h1
            in:provisioning image:good provision=running -> progressing: host_provisioning
                h1 is being provisioned since 1970-01-01T02:46:40Z.
                Wait: its image is written. | reveille explain host h1 --namespace metal
            in:provisioning image:good provision=failed -> failed: host_provisioning_failed
                The provisioning of h1 fails: broken.
                Check the address and the checksum of the image, and remove the obstacle that the words name. | reveille timeline host metal/h1
            in:provisioning image:good deploy-data:bad -> held: host_deploy_data_unreadable
                h1 has data for its system that cannot be read since 1970-01-01T02:46:40Z: no user data.
                Create or correct the secret that the words name. | kubectl get secrets --namespace metal
            in:provisioning image:bad provision=failed -> failed: host_provisioning_failed < host_image_unusable
                The provisioning of h1 fails: broken.
                Check the address and the checksum of the image, and remove the obstacle that the words name. | reveille timeline host metal/h1
            in:deprovisioning deprovision=running -> progressing: host_deprovisioning
                h1 is being deprovisioned since 1970-01-01T02:46:40Z.
                Wait: its image is removed and its disks are cleaned. | reveille explain host h1 --namespace metal
            in:deprovisioning deprovision=failed -> failed: host_deprovisioning_failed
                The deprovisioning of h1 fails: broken.
                Remove the obstacle that the words name; it is tried again by itself. | reveille timeline host metal/h1
            in:available online image:good fails:3 limit:3 attempted:good -> held: host_provisioning_given_up
                h1 was given up since 1970-01-01T02:46:40Z: provisioning failed 3 times, which is as often as it may.
                Correct the image in its spec, which begins anew. | reveille timeline host metal/h1
            in:available online power-on=? -> progressing: host_power_controller_awaited
                h1 is about to be switched by the power controller since 1970-01-01T02:46:40Z.
                Wait: the call begins within seconds. Otherwise check that the power controller runs. | reveille explain host h1 --namespace metal
            in:available online power-on=failed -> failed: host_power_failed
                The power of h1 cannot be switched: broken.
                Check its BMC and its power supply, and remove the obstacle that the words name. | reveille timeline host metal/h1
            in:deleting del delete=running -> progressing: host_deleting
                h1 is being deleted since 1970-01-01T02:46:40Z.
                Wait: its backend forgets it. | reveille explain host h1 --namespace metal
        "#]],
    );
}

#[test]
fn failures_are_as_old_as_the_first_in_a_row() {
    use crate::host::record::history::{AttemptLog, AttemptRecord};
    let attempt = |operation, start: i64, end| AttemptRecord { operation, start: Timestamp(start), end };
    let ended = |at: i64, end| Some((Timestamp(at), end));
    let mut host = decided("in:registering unregistered register=failed");
    host.progress.attempts = AttemptLog::of(vec![
        attempt(OperationKind::Register, 1, ended(2, AttemptEnd::Failed)),
        attempt(OperationKind::Register, 3, ended(4, AttemptEnd::Done)),
        attempt(OperationKind::Register, 5, ended(6, AttemptEnd::Failed)),
        attempt(OperationKind::Inspect, 7, ended(8, AttemptEnd::Done)),
        attempt(OperationKind::Register, 9, ended(10, AttemptEnd::Replaced)),
        attempt(OperationKind::Register, 11, ended(12, AttemptEnd::Failed)),
        attempt(OperationKind::Register, 13, None),
    ]);
    assert_eq!(explain_host(&host).head.since, Some(Timestamp(6)));
}

#[test]
fn evidence_has_its_source_and_its_age() {
    let host = decided("in:registering unregistered register=failed");
    let items = explain_host(&host).evidence;
    let lines = items.iter().map(|item| {
        let at = item.observed_at.map_or("-".to_owned(), |at| at.0.to_string());
        format!("{:?} {} {at}: {}\n", item.source, item.verdict.word(), item.content)
    });
    expect![[r#"
        Record present 10000000: state registering, status error, power off, failures in a row: 1
        Record present -: wanted: no image, power off
        Decision present 10000000: BackingOff
        Credentials absent -: secret 'login' was tried and has not worked yet
        Backend absent 9999000: the host is not registered
        Hardware unknown 10000000: health not known
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn every_cause_has_a_sentence_and_a_step() {
    for reason in HostReason::ALL {
        let explanation = HostExplanation {
            namespace: "m".into(),
            name: "h1".into(),
            head: HostCause::new(reason),
            others: Vec::new(),
            evidence: Vec::new(),
        };
        let step = explanation.next_step();
        for text in [&explanation.sentence(&explanation.head), &step.text, &step.command] {
            assert!(!text.is_empty() && !text.contains(['{', '}']), "{reason:?}: {text}");
        }
    }
}

#[test]
fn words_of_causes_are_unique() {
    let words: std::collections::BTreeSet<_> = HostReason::ALL.map(|reason| reason.row().word).into();
    assert_eq!(words.len(), HostReason::ALL.len());
}

#[test]
fn commands_never_carry_what_a_shell_would_read() {
    let mut host = decided("in:available");
    host.meta.key.name = "h1; rm -rf /".into();
    assert_eq!(explain_host(&host).next_step().command, "");
}
