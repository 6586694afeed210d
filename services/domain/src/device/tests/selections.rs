//! Devices that are counted, listed and resumed by selectors.

use expect_test::expect;

use super::{scene, scene::apply};
use crate::{
    core::invalid::Invalid,
    device::{
        counts::DeviceCounts,
        record::{Device, name::DeviceName},
        restore::resume,
        selector::{DeviceField, FieldSelector, LabelSelector},
    },
};

fn devices(rows: &[(&str, &str)]) -> Vec<Device> {
    let named = rows.iter().map(|(name, words)| {
        let mut scene = scene("");
        words.split_whitespace().for_each(|word| apply(&mut scene, word));
        scene.device.meta.name = DeviceName::parse(name).expect("a name");
        scene.device
    });
    named.collect()
}

#[test]
fn counts_and_filters_agree() {
    // A32.
    let devices = devices(&[
        ("a", "owner:f summary:Online updated:UpToDate mode:image"),
        ("b", "owner:f summary:Online updated:OutOfDate applications:Healthy"),
        ("c", "summary:Unknown mode:package"),
        ("d", "summary:Error mode:image"),
        ("e", ""),
    ]);
    let mut counts = DeviceCounts::default();
    devices.iter().for_each(|device| counts.add(device));
    expect![[r#"DeviceCounts { total: 5, summary: {"Error": 1, "Online": 2, "Unknown": 2}, updated: {"OutOfDate": 1, "Unknown": 3, "UpToDate": 1}, applications: {"Healthy": 1, "Unknown": 4}, os_mode: {"image": 2, "package": 1, "unknown": 2} }"#]].assert_eq(&format!("{counts:?}"));
    for (selector, names) in [
        ("metadata.owner=Fleet/f", "ab"),
        ("status.summary.status in (Online, Error)", "abd"),
        ("status.capabilities.osMode=image", "ad"),
        ("!status.capabilities.osMode", "be"),
    ] {
        let selector = FieldSelector::<DeviceField>::parse(selector).unwrap();
        let matching = devices.iter().filter(|device| selector.matches_device(device));
        let matching: String = matching.map(|device| device.meta.name.as_str()).collect();
        assert_eq!(matching, names);
    }
    devices.iter().for_each(|device| counts.remove(device));
    assert_eq!(counts, DeviceCounts::default());
}

/// Resumes the devices that both selectors choose, and returns how many were paused.
fn resume_all(devices: &mut [Device], fields: &str, labels: &str) -> Result<usize, Invalid> {
    let fields = FieldSelector::<DeviceField>::parse(fields)?;
    let labels = LabelSelector::parse(labels)?;
    let chosen = devices
        .iter_mut()
        .filter(|device| fields.matches_device(device) && labels.matches(&device.meta.labels));
    let resumed = chosen.filter_map(|device| {
        *device = resume(device)?;
        Some(())
    });
    Ok(resumed.count())
}

#[test]
fn paused_devices_are_resumed_by_selectors() {
    // A23.
    let mut devices = devices(&[
        ("a", "paused"),
        ("b", "paused label:site:north"),
        ("c", "paused label:site:north"),
        ("d", "paused label:site:north"),
        ("e", "label:site:north"),
    ]);
    for (fields, labels, resumed) in [
        ("metadata.name=a", "", Some(1)),
        ("metadata.name=missing", "", Some(0)),
        ("metadata.name=a", "", Some(0)),
        ("", "site=north", Some(3)),
        ("", "site=north", Some(0)),
        ("metadata.name>", "", None),
        ("", "site in", None),
    ] {
        assert_eq!(resume_all(&mut devices, fields, labels).ok(), resumed, "{fields} {labels}");
    }
}
