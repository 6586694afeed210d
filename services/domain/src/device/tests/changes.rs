//! Changes of a device and their events.

use expect_test::expect;

use super::{check, scene, show};
use crate::device::{event::events, record::Device, report::merge};

/// Writes the status document after `>` to the device before it, at the time of the first.
fn put(words: &str) -> String {
    let (before, document) = words.split_once('>').expect("a device and a document");
    let mut after = scene(before);
    let stored = after.device.clone();
    after.device = merge(&stored, scene(document).document());
    let status = after.evaluate().status;
    let device = Device { status, ..after.device };
    format!("{}{}", show::statuses(&device.status), show::reasons(&events(Some(&stored), Some(&device))))
}

/// Evaluates a stored device again.
fn evaluate(words: &str) -> String {
    let decision = scene(words).evaluate();
    format!("{}{}", show::words(&decision.status), show::reasons(&decision.events))
}

/// Compares two devices as they stand.
fn compare(words: &str) -> String {
    let (before, after) = words.split_once('>').expect("two devices");
    let reasons = show::reasons(&events(Some(&scene(before).device), Some(&scene(after).device)));
    if reasons.is_empty() { "no event".to_owned() } else { reasons.trim_start().to_owned() }
}

#[test]
fn written_status_documents_are_evaluated() {
    let rows = [
        // A05 to A09.
        "paused summary:ConflictPaused updated:OutOfDate > healthy",
        "paused rendered:3 runs:5 > healthy runs:5",
        " > cpu:Warning",
        "summary:Unknown > healthy",
        " > app:a:Error verdict:Error",
        " > app:a:Running verdict:Healthy",
        // Words that an agent cannot write.
        "summary:Online > healthy lifecycle:Enrolled summary:Error updated:OutOfDate",
        "lifecycle:Decommissioning > lifecycle:Enrolled",
        "lifecycle:Enrolled > lifecycle:Unknown",
        "rendered:1 spec-invalid:bad > runs:1 spec-valid",
        "rendered:1 > runs:1 spec-invalid:bad",
        // A verdict and an integrity that are not known leave the last ones.
        "app:a:Running verdict:Degraded:busy > app:a:Running verdict:Unknown:later",
        "app:a:Running verdict:Degraded:busy applications:Unknown > app:a:Running",
    ];
    check(
        &rows,
        put,
        expect![[r#"
        paused summary:ConflictPaused updated:OutOfDate > healthy
            ConflictPaused | OutOfDate "the device is paused and gets no spec" | apps NoApplications | life Unknown !DeviceApplicationHealthy
        paused rendered:3 runs:5 > healthy runs:5
            ConflictPaused "the device runs version 5, the service knows version 3; resume the device to go on" | OutOfDate "the device is paused and gets no spec" | apps NoApplications | life Unknown !W DeviceConflictPaused !DeviceContentOutOfDate !DeviceApplicationHealthy
         > cpu:Warning
            Degraded "CPU is short" | UpToDate | apps NoApplications | life Unknown !DeviceApplicationHealthy !W DeviceCPUWarning
        summary:Unknown > healthy
            Online | UpToDate | apps NoApplications | life Unknown !DeviceConnected !DeviceApplicationHealthy
         > app:a:Error verdict:Error
            Online | UpToDate | apps Error | life Unknown !DeviceConnected !W DeviceApplicationError
         > app:a:Running verdict:Healthy
            Online | UpToDate | apps Healthy "all applications are healthy" | life Unknown !DeviceConnected !DeviceApplicationHealthy
        summary:Online > healthy lifecycle:Enrolled summary:Error updated:OutOfDate
            Online | UpToDate | apps NoApplications | life Enrolled !DeviceApplicationHealthy
        lifecycle:Decommissioning > lifecycle:Enrolled
            Online | UpToDate | apps NoApplications | life Decommissioning !DeviceConnected !DeviceApplicationHealthy
        lifecycle:Enrolled > lifecycle:Unknown
            Online | UpToDate | apps NoApplications | life Enrolled !DeviceConnected !DeviceApplicationHealthy
        rendered:1 spec-invalid:bad > runs:1 spec-valid
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:1 > runs:1 spec-invalid:bad
            Online | UpToDate | apps NoApplications | life Unknown !DeviceConnected !DeviceApplicationHealthy
        app:a:Running verdict:Degraded:busy > app:a:Running verdict:Unknown:later
            Online | UpToDate | apps Degraded "later" | life Unknown !DeviceConnected !W DeviceApplicationDegraded
        app:a:Running verdict:Degraded:busy applications:Unknown > app:a:Running
            Online | UpToDate | apps Degraded | life Unknown !DeviceConnected !W DeviceApplicationDegraded
    "#]],
    );
}

#[test]
fn unknown_integrity_leaves_the_last_one() {
    let stored = scene("integrity:Verified").device;
    let merged = merge(&stored, scene("").document());
    assert_eq!(merged.reported.integrity, stored.reported.integrity);
}

#[test]
fn silence_makes_statuses_unknown_once() {
    let online = "summary:Online updated:UpToDate app:a:Running applications:Healthy verdict:Healthy:ok";
    let paused = "paused summary:ConflictPaused updated:Unknown applications:Unknown";
    let rows = [
        // A17.
        &format!("seen:60 {online}"),
        &format!("seen:600 {online}"),
        &format!("seen:600 {paused}"),
        &format!("seen:0 {paused}"),
        "seen:600",
        "summary:Unknown updated:Unknown applications:Unknown app:a:Running",
    ];
    check(
        &rows,
        evaluate,
        expect![[r#"
        seen:60 summary:Online updated:UpToDate app:a:Running applications:Healthy verdict:Healthy:ok
            Online UpToDate Healthy Unknown
        seen:600 summary:Online updated:UpToDate app:a:Running applications:Healthy verdict:Healthy:ok
            Unknown Unknown Unknown Unknown !W DeviceDisconnected
        seen:600 paused summary:ConflictPaused updated:Unknown applications:Unknown
            ConflictPaused Unknown Unknown Unknown
        seen:0 paused summary:ConflictPaused updated:Unknown applications:Unknown
            ConflictPaused OutOfDate NoApplications Unknown !DeviceContentOutOfDate !DeviceApplicationHealthy
        seen:600
            Unknown Unknown Unknown Unknown
        summary:Unknown updated:Unknown applications:Unknown app:a:Running
            Online UpToDate Healthy Unknown !DeviceConnected !DeviceApplicationHealthy
    "#]],
    );
}

#[test]
fn changed_statuses_are_events() {
    let rows = [
        // A15.
        "updated:UpToDate > updated:OutOfDate not-updating:Error:boom",
        "updated:UpToDate > updated:OutOfDate not-updating:Error",
        "updated:UpToDate > updated:OutOfDate",
        // A16.
        " > digest:x",
        "digest:x > digest:y",
        "digest:x > digest:x",
        "digest:x > ",
        "updated:OutOfDate > updated:UpToDate",
        "updated:Unknown > updated:UpToDate",
        "updated:UpToDate > updated:Updating",
        "summary:Online > summary:Error",
        "summary:Online > summary:Degraded",
        "summary:Online > summary:AwaitingReconnect",
        "summary:Online > summary:Rebooting",
        "summary:Rebooting > summary:Online",
        "summary:AwaitingReconnect > summary:ConflictPaused",
        "summary:Online updated:UpToDate applications:Healthy > ",
        "applications:Healthy > applications:Degraded",
        "applications:Degraded > applications:NoApplications",
    ];
    check(
        &rows,
        compare,
        expect![[r#"
            updated:UpToDate > updated:OutOfDate not-updating:Error:boom
                !W DeviceUpdateFailed
            updated:UpToDate > updated:OutOfDate not-updating:Error
                !DeviceContentOutOfDate
            updated:UpToDate > updated:OutOfDate
                !DeviceContentOutOfDate
             > digest:x
                !DeviceOSImageChanged
            digest:x > digest:y
                !DeviceOSImageChanged
            digest:x > digest:x
                no event
            digest:x > 
                no event
            updated:OutOfDate > updated:UpToDate
                !DeviceContentUpToDate
            updated:Unknown > updated:UpToDate
                no event
            updated:UpToDate > updated:Updating
                !DeviceContentUpdating
            summary:Online > summary:Error
                no event
            summary:Online > summary:Degraded
                no event
            summary:Online > summary:AwaitingReconnect
                no event
            summary:Online > summary:Rebooting
                !DeviceIsRebooting
            summary:Rebooting > summary:Online
                !DeviceConnected
            summary:AwaitingReconnect > summary:ConflictPaused
                !W DeviceConflictPaused
            summary:Online updated:UpToDate applications:Healthy > 
                !W DeviceDisconnected
            applications:Healthy > applications:Degraded
                !W DeviceApplicationDegraded
            applications:Degraded > applications:NoApplications
                !DeviceApplicationHealthy
        "#]],
    );
}

#[test]
fn changed_resources_and_specs_are_events() {
    let rows = [
        "cpu:Unknown > healthy",
        "cpu:Unknown > cpu:Error",
        "cpu:Critical memory:Warning disk:Healthy > cpu:Warning memory:Healthy disk:Unknown",
        " > cpu:Critical memory:Critical disk:Critical",
        " > spec-valid",
        "spec-valid > spec-invalid:bad",
        "spec-invalid:bad > spec-invalid:worse",
        "paused > ",
        "paused > awaiting",
        " > document:a label:a:b owner:f",
        " > decommissioning",
    ];
    check(
        &rows,
        compare,
        expect![[r#"
            cpu:Unknown > healthy
                no event
            cpu:Unknown > cpu:Error
                !DeviceCPUNormal
            cpu:Critical memory:Warning disk:Healthy > cpu:Warning memory:Healthy disk:Unknown
                !W DeviceCPUWarning !DeviceMemoryNormal !DeviceDiskNormal
             > cpu:Critical memory:Critical disk:Critical
                !W DeviceCPUCritical !W DeviceMemoryCritical !W DeviceDiskCritical
             > spec-valid
                !DeviceSpecValid
            spec-valid > spec-invalid:bad
                !W DeviceSpecInvalid
            spec-invalid:bad > spec-invalid:worse
                no event
            paused > 
                !DeviceConflictResolved
            paused > awaiting
                no event
             > document:a label:a:b owner:f
                !ResourceUpdated:spec,labels,owner
             > decommissioning
                !ResourceUpdated:spec !DeviceDecommissioned
        "#]],
    );
}

#[test]
fn creation_and_deletion_are_single_events() {
    let device = scene("healthy summary:Online").device;
    let seen = [events(None, Some(&device)), events(Some(&device), None), events(None, None)];
    assert_eq!(seen.map(|events| show::reasons(&events)), [" !ResourceCreated", " !ResourceDeleted", ""]);
}

#[test]
fn stored_events_name_kind_reason_and_fields() {
    let events = events(Some(&scene("").device), Some(&scene("label:a:b spec-invalid:bad").device));
    let contents: Vec<_> = events.iter().map(|event| format!("{:?}\n", event.content())).collect();
    expect![[r#"
        EventContent { kind: "ResourceUpdated", reason: "", text: "", details: [("type", "Normal"), ("updated_fields", "labels")], session: None }
        EventContent { kind: "DeviceSpecInvalid", reason: "", text: "bad", details: [("type", "Warning")], session: None }
    "#]].assert_eq(&contents.concat());
}
