//! Statuses of one device at one moment.

use expect_test::expect;

use super::{check, scene, scene::NOW, show};

/// Returns the statuses of a scene, and the time after which they change by themselves.
fn decide(words: &str) -> String {
    let decision = scene(words).evaluate();
    let until = decision.until.map_or("for ever".to_owned(), |until| format!("{} ms", until.0 - NOW.0));
    format!("{} ({until})", show::statuses(&decision.status))
}

fn decide_summary(words: &str) -> String {
    let status = scene(words).evaluate().status.summary;
    show::entry("", status.status.word(), &status)
}

fn decide_updated(words: &str) -> String {
    let status = scene(words).evaluate().status.updated;
    show::entry("", status.status.word(), &status)
}

fn decide_applications(words: &str) -> String {
    let status = scene(words).evaluate().status.applications;
    show::entry("", status.status.word(), &status)
}

fn decide_lifecycle(words: &str) -> String {
    let status = scene(words).evaluate().status.lifecycle;
    show::entry("", status.status.word(), &status)
}

#[test]
fn new_devices_are_decided_about() {
    let rows =
        ["unseen", "unseen rendered:1", "", "rendered:1", "rendered:1 runs:1", "seen:300", "seen:300.001"];
    check(
        &rows,
        decide,
        expect![[r#"
        unseen
            Unknown "the device has not connected yet" | UpToDate | apps Unknown "the device is not connected" | life Unknown (for ever)
        unseen rendered:1
            Unknown "the device has not connected yet" | OutOfDate "the device does not run its latest spec" | apps Unknown "the device is not connected" | life Unknown (for ever)

            Online | UpToDate | apps NoApplications | life Unknown (300001 ms)
        rendered:1
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown (300001 ms)
        rendered:1 runs:1
            Online | UpToDate | apps NoApplications | life Unknown (300001 ms)
        seen:300
            Online | UpToDate | apps NoApplications | life Unknown (1 ms)
        seen:300.001
            Unknown "the device has not connected for more than 300s" | Unknown "the device has not connected for more than 300s" | apps Unknown "the device is not connected" | life Unknown (for ever)
    "#]],
    );
}

#[test]
fn summary_takes_the_first_row_that_holds() {
    let rows = [
        // A01 to A04.
        "awaiting unseen",
        "awaiting cpu:Critical",
        "awaiting memory:Warning",
        "awaiting updating:Rebooting",
        "unseen",
        "paused seen:900 cpu:Critical updating:Rebooting",
        "seen:900 updating:Rebooting cpu:Critical",
        "updating:Rebooting cpu:Critical",
        "not-updating:Rebooting",
        "updating:ApplyingUpdate",
        "cpu:Critical memory:Warning disk:Warning",
        "cpu:Warning memory:Healthy disk:Critical",
        "cpu:Critical memory:Critical disk:Critical",
        "cpu:Warning disk:Warning",
        "cpu:Error memory:Unknown disk:Healthy",
        "healthy",
        "spec-invalid",
        "app:a:Error verdict:Error",
    ];
    check(
        &rows,
        decide_summary,
        expect![[r#"
        awaiting unseen
            AwaitingReconnect "the database was restored, and the device has not reconnected since"
        awaiting cpu:Critical
            AwaitingReconnect "the database was restored, and the device has not reconnected since"
        awaiting memory:Warning
            AwaitingReconnect "the database was restored, and the device has not reconnected since"
        awaiting updating:Rebooting
            AwaitingReconnect "the database was restored, and the device has not reconnected since"
        unseen
            Unknown "the device has not connected yet"
        paused seen:900 cpu:Critical updating:Rebooting
            ConflictPaused "the device runs version , the service knows version 0; resume the device to go on"
        seen:900 updating:Rebooting cpu:Critical
            Unknown "the device has not connected for more than 300s"
        updating:Rebooting cpu:Critical
            Rebooting "the device is rebooting"
        not-updating:Rebooting
            Online
        updating:ApplyingUpdate
            Online
        cpu:Critical memory:Warning disk:Warning
            Error "CPU is critical"
        cpu:Warning memory:Healthy disk:Critical
            Error "disk is critical"
        cpu:Critical memory:Critical disk:Critical
            Error "CPU is critical, memory is critical, disk is critical"
        cpu:Warning disk:Warning
            Degraded "CPU is short, disk is short"
        cpu:Error memory:Unknown disk:Healthy
            Online
        healthy
            Online
        spec-invalid
            Online
        app:a:Error verdict:Error
            Online
    "#]],
    );
}

#[test]
fn updated_takes_the_first_row_that_holds() {
    let rows = [
        "unseen awaiting",
        "seen:900 updated:UpToDate",
        "seen:900 updated:Updating updating:ApplyingUpdate",
        "unseen",
        "updating:ApplyingUpdate",
        "updating:Rebooting:almost_there",
        "updating:Odd:new_word",
        "rendered:2 runs:1",
        "rendered:2 runs:02",
        "rendered:2 runs:1 not-updating:Error:boom",
        "rendered:2 runs:1 not-updating:Error",
        "rendered:2 runs:1 not-updating:Canceled:boom",
        "rendered:2 runs:2 not-updating:Error:boom",
        "rendered:2 runs:2 spec-valid",
        "rendered:2 runs:2 spec-invalid",
        "paused rendered:2 runs:2",
        "paused seen:900",
        "runs:5",
    ];
    check(
        &rows,
        decide_updated,
        expect![[r#"
        unseen awaiting
            Unknown "the database was restored, and the device has not reconnected since"
        seen:900 updated:UpToDate
            Unknown "the device has not connected for more than 300s"
        seen:900 updated:Updating updating:ApplyingUpdate
            Unknown "the device has not connected for more than 300s"
        unseen
            UpToDate
        updating:ApplyingUpdate
            Updating "the device is updating"
        updating:Rebooting:almost_there
            Updating "almost there"
        updating:Odd:new_word
            Updating "new word"
        rendered:2 runs:1
            OutOfDate "the device does not run its latest spec"
        rendered:2 runs:02
            OutOfDate "the device does not run its latest spec"
        rendered:2 runs:1 not-updating:Error:boom
            OutOfDate "the device does not run its latest spec: boom"
        rendered:2 runs:1 not-updating:Error
            OutOfDate "the device does not run its latest spec"
        rendered:2 runs:1 not-updating:Canceled:boom
            OutOfDate "the device does not run its latest spec"
        rendered:2 runs:2 not-updating:Error:boom
            UpToDate
        rendered:2 runs:2 spec-valid
            UpToDate
        rendered:2 runs:2 spec-invalid
            OutOfDate "the device does not run its latest spec"
        paused rendered:2 runs:2
            OutOfDate "the device is paused and gets no spec"
        paused seen:900
            Unknown "the device has not connected for more than 300s"
        runs:5
            UpToDate
    "#]],
    );
}

#[test]
fn updated_of_managed_devices_follows_the_fleet() {
    let rows = [
        "owner:f updated:Updating",
        "owner:f fleet:f@v2 rendered-template:v2",
        "owner:f fleet:f@v2 rendered-template:v2 rendered:1 runs:1",
        "owner:f fleet:f@v2 rendered-template:v2 rendered:2 runs:1",
        "owner:f fleet:f@v2 rendered-template:v2 spec-invalid",
        "owner:f fleet:g@v2 rendered-template:v2",
        "owner:f fleet:f",
        "owner:f fleet:f rendered-template:v2",
        // A14.
        "owner:f fleet:f@v2",
        "owner:f fleet:f@v2 not-updating:Error:boom",
        "owner:f fleet:f@v2 rendered-template:v1 rollout-error:no_label not-updating:Error:boom",
    ];
    check(
        &rows,
        decide_updated,
        expect![[r#"
        owner:f updated:Updating
            Updating
        owner:f fleet:f@v2 rendered-template:v2
            UpToDate
        owner:f fleet:f@v2 rendered-template:v2 rendered:1 runs:1
            UpToDate
        owner:f fleet:f@v2 rendered-template:v2 rendered:2 runs:1
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:f@v2 rendered-template:v2 spec-invalid
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:g@v2 rendered-template:v2
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:f
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:f rendered-template:v2
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:f@v2
            OutOfDate "the device is not scheduled yet for the latest template of its fleet"
        owner:f fleet:f@v2 not-updating:Error:boom
            OutOfDate "boom"
        owner:f fleet:f@v2 rendered-template:v1 rollout-error:no_label not-updating:Error:boom
            OutOfDate "no label"
    "#]],
    );
}

#[test]
fn another_system_overrules_up_to_date() {
    let rows = [
        // A11 to A13.
        "image:a os:a mode:image",
        "image:a os:b mode:image",
        "image:a os:b mode:package",
        "image:a os:b",
        "image:a",
        "image:a mode:image",
        "os:b mode:image",
        "item:c mode:package",
        "item:c mode:image os:b",
        "item:c",
        "image:a os:b mode:image updating:Preparing",
        "image:a os:b mode:image owner:f fleet:f@v1 rendered-template:v1",
        "image:a os:b mode:image seen:900",
    ];
    check(
        &rows,
        decide_updated,
        expect![[r#"
        image:a os:a mode:image
            UpToDate
        image:a os:b mode:image
            OutOfDate "the device runs image 'b' instead of 'a'"
        image:a os:b mode:package
            OutOfDate "the device runs image 'b' instead of 'a'"
        image:a os:b
            UpToDate
        image:a
            UpToDate
        image:a mode:image
            OutOfDate "the device runs image '' instead of 'a'"
        os:b mode:image
            UpToDate
        item:c mode:package
            OutOfDate "the spec names an item of a catalogue, and the device takes packages only"
        item:c mode:image os:b
            UpToDate
        item:c
            UpToDate
        image:a os:b mode:image updating:Preparing
            Updating "the device is updating"
        image:a os:b mode:image owner:f fleet:f@v1 rendered-template:v1
            OutOfDate "the device runs image 'b' instead of 'a'"
        image:a os:b mode:image seen:900
            Unknown "the device has not connected for more than 300s"
    "#]],
    );
}

#[test]
fn applications_take_the_first_row_that_holds() {
    let rows = [
        "unseen app:a:Running verdict:Healthy",
        "seen:900 app:a:Running verdict:Healthy",
        "updating:Rebooting app:a:Running verdict:Healthy",
        "updating:Rebooting",
        "verdict:Error",
        // A10.
        "app:a:Running verdict:Degraded:busy",
        "app:a:Error verdict:Error:a_failed",
        "app:a:Running verdict:Healthy:fine",
        "app:a:Running verdict:Healthy",
        "app:a:Running app:b:Completed app:c:Stopped",
        "app:a:Running app:b:Starting",
        "app:a:Preparing",
        "app:a:Stopping",
        "app:a:Unknown",
        "app:c:Error app:b:Starting app:a:Error",
        "app:a:Running applications:Unknown",
    ];
    check(
        &rows,
        decide_applications,
        expect![[r#"
        unseen app:a:Running verdict:Healthy
            Unknown "the device is not connected"
        seen:900 app:a:Running verdict:Healthy
            Unknown "the device is not connected"
        updating:Rebooting app:a:Running verdict:Healthy
            Degraded "the device is rebooting"
        updating:Rebooting
            NoApplications
        verdict:Error
            NoApplications
        app:a:Running verdict:Degraded:busy
            Degraded "busy"
        app:a:Error verdict:Error:a_failed
            Error "a failed"
        app:a:Running verdict:Healthy:fine
            Healthy "fine"
        app:a:Running verdict:Healthy
            Healthy "all applications are healthy"
        app:a:Running app:b:Completed app:c:Stopped
            Healthy
        app:a:Running app:b:Starting
            Degraded "b degraded"
        app:a:Preparing
            Degraded "a degraded"
        app:a:Stopping
            Degraded "a degraded"
        app:a:Unknown
            Degraded "a degraded"
        app:c:Error app:b:Starting app:a:Error
            Error "a in error, c in error, b degraded"
        app:a:Running applications:Unknown
            Healthy
    "#]],
    );
}

#[test]
fn lifecycle_follows_the_condition() {
    let rows = [
        "",
        "lifecycle:Enrolled",
        // A25.
        "lifecycle:Enrolled end:Started",
        "lifecycle:Enrolled end:Completed",
        "lifecycle:Enrolled end:Error",
        "lifecycle:Enrolled end:Odd",
        "lifecycle:Decommissioning no-end:Started",
        "lifecycle:Enrolled decommissioning",
        "end:Completed seen:900 awaiting",
    ];
    check(
        &rows,
        decide_lifecycle,
        expect![[r#"

            Unknown
        lifecycle:Enrolled
            Enrolled
        lifecycle:Enrolled end:Started
            Decommissioning "the device is ending its work"
        lifecycle:Enrolled end:Completed
            Decommissioned "the device has ended its work"
        lifecycle:Enrolled end:Error
            Decommissioned "the device has ended its work, with an error"
        lifecycle:Enrolled end:Odd
            Enrolled
        lifecycle:Decommissioning no-end:Started
            Decommissioning
        lifecycle:Enrolled decommissioning
            Enrolled
        end:Completed seen:900 awaiting
            Decommissioned "the device has ended its work"
    "#]],
    );
}
