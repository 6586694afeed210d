//! Writes of people, and the end of devices.

use expect_test::expect;

use super::{check, scene, show};
use crate::device::{
    decommission::decommission,
    event::events,
    record::{Device, spec::DecommissionTarget},
    write::{DeviceWish, WriteRefusal, check_status_patch, replace},
};

fn wish(words: &str) -> DeviceWish {
    let device = scene(words).device;
    DeviceWish { labels: device.meta.labels, spec: device.spec }
}

fn describe(before: &Device, after: &Device) -> String {
    let owner = after.meta.owner.as_ref().map_or("-".to_owned(), |fleet| fleet.owner());
    let labels: Vec<_> = after.meta.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let generation = after.meta.generation;
    let life = after.status.lifecycle.status.word();
    let reasons = show::reasons(&events(Some(before), Some(after)));
    format!("generation={generation} owner={owner} labels={labels:?} life={life}{reasons}")
}

#[test]
fn people_write_specs_and_labels() {
    let rows = [
        " > document:a",
        " > label:site:north",
        "document:a label:site:north summary:Online > document:a label:site:north",
        "label:site:north > ",
        // A28.
        "owner:f document:a > document:b",
        "owner:f document:a > document:a label:site:north",
        "decommissioning document:a > document:b",
        "decommissioning > label:site:north",
        " > decommissioning",
        " > label:-site:north",
        " > label:site:no/rth",
        "mode:package > image:a",
        "mode:package > item:a",
        "mode:package image:a > image:a",
        "mode:package image:a > image:b",
        "mode:package image:a > ",
        "mode:image > image:a",
    ];
    let write = |words: &str| {
        let (before, wanted) = words.split_once('>').expect("a device and a wish");
        let device = scene(before).device;
        match replace(&device, wish(wanted)) {
            Ok(after) => describe(&device, &after),
            Err(WriteRefusal::Invalid(invalid)) => format!("invalid: {invalid}"),
            Err(WriteRefusal::Conflict(conflict)) => format!("conflict: {conflict}"),
        }
    };
    check(
        &rows,
        write,
        expect![[r#"
         > document:a
            generation=2 owner=- labels=[] life=Unknown !ResourceUpdated:spec
         > label:site:north
            generation=1 owner=- labels=["site=north"] life=Unknown !ResourceUpdated:labels
        document:a label:site:north summary:Online > document:a label:site:north
            generation=1 owner=- labels=["site=north"] life=Unknown
        label:site:north > 
            generation=1 owner=- labels=[] life=Unknown !ResourceUpdated:labels
        owner:f document:a > document:b
            conflict: spec cannot be changed while a fleet owns the device
        owner:f document:a > document:a label:site:north
            generation=1 owner=Fleet/f labels=["site=north"] life=Unknown !ResourceUpdated:labels
        decommissioning document:a > document:b
            conflict: the device is being decommissioned
        decommissioning > label:site:north
            conflict: the device is being decommissioned
         > decommissioning
            invalid: spec.decommissioning: is set by the decommission call alone
         > label:-site:north
            invalid: metadata.labels: '-site' is not a key of a label: letters, digits and -_., with a letter or a digit at both ends, at most 63
         > label:site:no/rth
            invalid: metadata.labels[site]: 'no/rth' is not a value of a label: letters, digits and -_., with a letter or a digit at both ends, at most 63
        mode:package > image:a
            invalid: spec.os: cannot be set, because the device updates packages
        mode:package > item:a
            invalid: spec.os: cannot be set, because the device updates packages
        mode:package image:a > image:a
            generation=1 owner=- labels=[] life=Unknown
        mode:package image:a > image:b
            invalid: spec.os: cannot be set, because the device updates packages
        mode:package image:a > 
            generation=2 owner=- labels=[] life=Unknown !ResourceUpdated:spec
        mode:image > image:a
            generation=2 owner=- labels=[] life=Unknown !ResourceUpdated:spec
    "#]],
    );
}

#[test]
fn decommissioned_devices_leave_fleet_and_labels() {
    let rows = [
        // A24.
        "owner:f label:site:north lifecycle:Enrolled document:a",
        "lifecycle:Decommissioned",
        "decommissioning",
    ];
    let end = |words: &str| {
        let device = scene(words).device;
        match decommission(&device, DecommissionTarget::Unenroll) {
            Ok(after) => describe(&device, &after),
            Err(conflict) => format!("conflict: {conflict}"),
        }
    };
    check(
        &rows,
        end,
        expect![[r#"
        owner:f label:site:north lifecycle:Enrolled document:a
            generation=1 owner=- labels=[] life=Decommissioning !ResourceUpdated:spec,labels,owner !DeviceDecommissioned
        lifecycle:Decommissioned
            generation=1 owner=- labels=[] life=Decommissioned !ResourceUpdated:spec !DeviceDecommissioned
        decommissioning
            conflict: the device is being decommissioned
    "#]],
    );
}

#[test]
fn statuses_of_ending_devices_are_not_patched() {
    assert!(check_status_patch(&scene("").device).is_ok());
    assert!(check_status_patch(&scene("decommissioning").device).is_err());
}

#[test]
fn another_spec_leaves_a_device_online() {
    // A36.
    let mut seen = scene("summary:Online healthy rendered:1 runs:1");
    seen.device = replace(&seen.device, wish("document:b")).unwrap();
    assert_eq!(seen.evaluate().status.summary.status.word(), "Online");
}
