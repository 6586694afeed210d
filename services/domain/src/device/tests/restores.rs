//! Restored databases, rendering, and polls.

use expect_test::expect;

use super::{check, scene, scene::NOW, show};
use crate::device::{
    event::events,
    poll,
    record::{Device, annotations::SpecHash},
    render::{RenderDecision, render},
    restore::{mark_restored, reconnect, resume},
};

/// Returns the changed device after its evaluation, with the events of the change.
fn shown(before: &Device, after: Option<Device>, last_seen: bool) -> String {
    let Some(device) = after else { return "nothing".to_owned() };
    let mut changed = scene(if last_seen { "" } else { "unseen" });
    changed.device = device;
    let status = changed.evaluate().status;
    let device = Device { status, ..changed.device };
    let reasons = show::reasons(&events(Some(before), Some(&device)));
    format!("{} | {}{reasons}", show::statuses(&device.status), show::versions(&device))
}

#[test]
fn restored_devices_await_their_agents() {
    let rows = [
        // A18.
        "lifecycle:Enrolled rendered:4 runs:4 summary:Online updated:UpToDate healthy",
        "lifecycle:Decommissioned",
        "lifecycle:Decommissioning",
        "awaiting",
        "paused rendered:4 runs:7",
        "",
    ];
    let mark = |words: &str| {
        let device = scene(words).device;
        shown(&device, mark_restored(&device), false)
    };
    check(
        &rows,
        mark,
        expect![[r#"
            lifecycle:Enrolled rendered:4 runs:4 summary:Online updated:UpToDate healthy
                AwaitingReconnect "the database was restored, and the device has not reconnected since" | Unknown "the database was restored, and the device has not reconnected since" | apps Unknown "the device is not connected" | life Enrolled | awaiting rendered=4 hash=- rendered-template=- runs=4
            lifecycle:Decommissioned
                nothing
            lifecycle:Decommissioning
                nothing
            awaiting
                nothing
            paused rendered:4 runs:7
                AwaitingReconnect "the database was restored, and the device has not reconnected since" | Unknown "the database was restored, and the device has not reconnected since" | apps Unknown "the device is not connected" | life Unknown | awaiting rendered=4 hash=- rendered-template=- runs=7

                AwaitingReconnect "the database was restored, and the device has not reconnected since" | Unknown "the database was restored, and the device has not reconnected since" | apps Unknown "the device is not connected" | life Unknown | awaiting rendered=- hash=- rendered-template=- runs=
        "#]],
    );
}

#[test]
fn first_poll_after_a_restore_compares_versions() {
    let rows = [
        // A19 to A22.
        "awaiting rendered:5 > 3",
        "awaiting rendered:3 hash:h > 5",
        "awaiting rendered:3 >",
        "rendered:3 > 5",
        "paused rendered:3 > 5",
        "awaiting rendered:3 > 3",
        "awaiting rendered:3 > odd",
        "awaiting rendered:3 > -5",
        "awaiting rendered:3 > 99999999999999999999",
        "awaiting rendered:3 > 18446744073709551615",
        "awaiting > 5",
        "awaiting >",
    ];
    let poll = |words: &str| {
        let (before, reported) = words.split_once('>').expect("a device and a version");
        let device = scene(before).device;
        shown(&device, reconnect(&device, reported.trim()), true)
    };
    check(
        &rows,
        poll,
        expect![[r#"
        awaiting rendered:5 > 3
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=5 hash=- rendered-template=- runs=3 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3 hash:h > 5
            ConflictPaused "the device runs version 5, the service knows version 3; resume the device to go on" | OutOfDate "the device is paused and gets no spec" | apps NoApplications | life Unknown | paused rendered=3 hash=h rendered-template=- runs=5 !W DeviceConflictPaused !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3 >
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=0 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:3 > 5
            nothing
        paused rendered:3 > 5
            nothing
        awaiting rendered:3 > 3
            Online | UpToDate | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=3 !DeviceConnected !DeviceApplicationHealthy
        awaiting rendered:3 > odd
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=odd !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3 > -5
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=-5 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3 > 99999999999999999999
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=99999999999999999999 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3 > 18446744073709551615
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=18446744073709551615 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting > 5
            ConflictPaused "the device runs version 5, the service knows version 0; resume the device to go on" | OutOfDate "the device is paused and gets no spec" | apps NoApplications | life Unknown | paused rendered=- hash=- rendered-template=- runs=5 !W DeviceConflictPaused !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting >
            Online | UpToDate | apps NoApplications | life Unknown | unmarked rendered=- hash=- rendered-template=- runs=0 !DeviceConnected !DeviceApplicationHealthy
    "#]],
    );
}

#[test]
fn resumed_devices_are_rendered_past_their_agents() {
    let rows = ["paused rendered:3 runs:5 hash:h", "awaiting rendered:3", "rendered:3"];
    let resumed = |words: &str| {
        let device = scene(words).device;
        let Some(resumed) = resume(&device) else { return "nothing".to_owned() };
        format!("{} then {}", shown(&device, Some(resumed.clone()), true), rendered(&resumed, Ok("h")))
    };
    check(
        &rows,
        resumed,
        expect![[r#"
        paused rendered:3 runs:5 hash:h
            Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=3 hash=- rendered-template=- runs=5 !DeviceConflictResolved !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy then rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=6 hash=h rendered-template=- runs=5 !DeviceSpecValid !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting rendered:3
            nothing
        rendered:3
            nothing
    "#]],
    );
}

fn rendered(device: &Device, result: Result<&str, &str>) -> String {
    let result = result.map(|hash| SpecHash(hash.into())).map_err(Into::into);
    match render(device, result, NOW) {
        RenderDecision::Suspended => "suspended".to_owned(),
        RenderDecision::Unchanged(after) => format!("unchanged: {}", shown(device, Some(*after), true)),
        RenderDecision::Rendered(after) => format!("rendered: {}", shown(device, Some(*after), true)),
        RenderDecision::Failed(after) => format!("failed: {}", shown(device, Some(*after), true)),
    }
}

#[test]
fn rendered_specs_get_new_versions() {
    let rows = [
        // A35, A37.
        " > ok:a",
        "rendered:1 hash:a spec-valid runs:1 > ok:a",
        "rendered:1 hash:a spec-valid runs:1 > ok:b",
        "rendered:1 hash:a spec-valid runs:1 summary:Online updated:UpToDate > no_such_image",
        "rendered:1 hash:a spec-invalid:bad runs:1 > ok:a",
        "rendered:1 hash:a template:v2 rendered-template:v1 spec-valid > ok:a",
        "rendered:1 hash:a template:v2 rendered-template:v1 spec-valid > ok:b",
        "rendered:3 runs:8 hash:a > ok:b",
        "rendered:3 runs:odd hash:a > ok:b",
        "awaiting hash:a > ok:b",
        "paused hash:a > ok:b",
    ];
    let decide = |words: &str| {
        let (before, result) = words.split_once('>').expect("a device and a result");
        let result = result.trim();
        rendered(&scene(before).device, result.strip_prefix("ok:").ok_or(result))
    };
    check(
        &rows,
        decide,
        expect![[r#"
         > ok:a
            rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=1 hash=a rendered-template=- runs= !DeviceSpecValid !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:1 hash:a spec-valid runs:1 > ok:a
            unchanged: Online | UpToDate | apps NoApplications | life Unknown | unmarked rendered=1 hash=a rendered-template=- runs=1 !DeviceConnected !DeviceApplicationHealthy
        rendered:1 hash:a spec-valid runs:1 > ok:b
            rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=2 hash=b rendered-template=- runs=1 !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:1 hash:a spec-valid runs:1 summary:Online updated:UpToDate > no_such_image
            failed: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=1 hash=a rendered-template=- runs=1 !W DeviceSpecInvalid !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:1 hash:a spec-invalid:bad runs:1 > ok:a
            unchanged: Online | UpToDate | apps NoApplications | life Unknown | unmarked rendered=1 hash=a rendered-template=- runs=1 !DeviceSpecValid !DeviceConnected !DeviceApplicationHealthy
        rendered:1 hash:a template:v2 rendered-template:v1 spec-valid > ok:a
            unchanged: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=1 hash=a rendered-template=v2 runs= !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:1 hash:a template:v2 rendered-template:v1 spec-valid > ok:b
            rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=2 hash=b rendered-template=v2 runs= !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:3 runs:8 hash:a > ok:b
            rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=9 hash=b rendered-template=- runs=8 !DeviceSpecValid !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        rendered:3 runs:odd hash:a > ok:b
            rendered: Online | OutOfDate "the device does not run its latest spec" | apps NoApplications | life Unknown | unmarked rendered=4 hash=b rendered-template=- runs=odd !DeviceSpecValid !DeviceConnected !DeviceContentOutOfDate !DeviceApplicationHealthy
        awaiting hash:a > ok:b
            suspended
        paused hash:a > ok:b
            suspended
    "#]],
    );
}

#[test]
fn polls_are_answered_by_version() {
    let rows = [
        // A35.
        " > 1",
        "rendered:1 >",
        "rendered:1 > 1",
        "rendered:2 > 1",
        "rendered:2 > 02",
        "rendered:2 > 3",
        "paused rendered:3 runs:5 > 5",
        "paused rendered:3 runs:5 > 6",
        "paused rendered:3 runs:5 > 4",
        "paused rendered:3 runs:5 > odd",
    ];
    let decide = |words: &str| {
        let (device, known) = words.split_once('>').expect("a device and a version");
        let known = Some(known.trim()).filter(|known| !known.is_empty());
        format!("{:?}", poll::answer(&scene(device).device, known))
    };
    check(
        &rows,
        decide,
        expect![[r#"
         > 1
            NothingRendered
        rendered:1 >
            Deliver
        rendered:1 > 1
            Wait
        rendered:2 > 1
            Deliver
        rendered:2 > 02
            Deliver
        rendered:2 > 3
            Deliver
        paused rendered:3 runs:5 > 5
            Wait
        paused rendered:3 runs:5 > 6
            Wait
        paused rendered:3 runs:5 > 4
            Deliver
        paused rendered:3 runs:5 > odd
            Deliver
    "#]],
    );
}
