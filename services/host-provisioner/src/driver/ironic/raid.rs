//! RAID volumes: what Ironic is to build, and the cleaning steps that do (host reference 1.11, 3.3).

use domain::host::record::{
    call::PrepareCall,
    spec::{RaidVolume, RootDeviceHints},
};
use serde_json::{Map, Value, json};

use super::deployment::hint_members;

/// Change of RAID volumes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RaidChange {
    /// Whether the agent builds the volumes, and no controller.
    pub(super) is_software: bool,
    /// Volumes in Ironic's words.
    pub(super) target: Value,
    /// Cleaning steps, in order.
    pub(super) steps: Vec<Value>,
}

/// Returns the change that a preparation asks for; `None`: the volumes stay.
pub(super) fn raid_change(call: &PrepareCall) -> Option<RaidChange> {
    let target = call.target_raid.as_ref().filter(|_| call.parts.storage)?;
    let actual = call.actual_raid.as_ref();
    let hardware = target.hardware.as_deref();
    if hardware.is_some() && hardware != actual.and_then(|raid| raid.hardware.as_deref()) {
        return hardware.map(|volumes| change(volumes, false, call));
    }
    let software = target.software.as_deref();
    let known = actual.and_then(|raid| raid.software.as_deref()).unwrap_or_default();
    let is_rebuilt = actual.is_none() && software.is_some_and(|volumes| !volumes.is_empty());
    let software = software.filter(|volumes| *volumes != known || is_rebuilt);
    software.map(|volumes| change(volumes, true, call))
}

fn change(volumes: &[RaidVolume], is_software: bool, call: &PrepareCall) -> RaidChange {
    let has_root = call.hints.is_some() || volumes.iter().any(|volume| volume.is_root);
    let disks = volumes.iter().enumerate().map(|(place, volume)| {
        let is_root = volume.is_root || (place == 0 && !has_root);
        logical_disk(volume, is_software, is_root)
    });
    let mut steps = vec![step("raid", "delete_configuration")];
    if is_software && !volumes.is_empty() {
        steps.push(step("deploy", "erase_devices_metadata"));
    }
    if !volumes.is_empty() {
        steps.push(step("raid", "create_configuration"));
    }
    RaidChange { is_software, target: json!({"logical_disks": disks.collect::<Vec<_>>()}), steps }
}

fn step(interface: &str, name: &str) -> Value {
    json!({"interface": interface, "step": name})
}

fn logical_disk(volume: &RaidVolume, is_software: bool, is_root: bool) -> Value {
    let size: Option<u64> = property(volume, "sizeGibibytes").and_then(|size| size.parse().ok());
    let mut disk = Map::new();
    let mut put = |name: &str, value: Value| disk.insert(name.to_owned(), value);
    put("raid_level", (&*volume.level).into());
    put("size_gb", size.filter(|size| *size > 0).map_or_else(|| "MAX".into(), Value::from));
    if is_root {
        put("is_root_volume", true.into());
    }
    if !volume.name.is_empty() {
        put("volume_name", (&*volume.name).into());
    }
    if is_software {
        put("controller", "software".into());
    } else if let Some(controller) = property(volume, "controller") {
        put("controller", controller.into());
    }
    let number = property(volume, "numberOfPhysicalDisks").and_then(|number| number.parse::<u32>().ok());
    if let Some(number) = number {
        put("number_of_physical_disks", number.into());
    }
    if let Some(rotational) = property(volume, "rotational") {
        put("disk_type", if rotational == "true" { "hdd" } else { "ssd" }.into());
    }
    let disks = physical_disks(volume, is_software);
    if !disks.is_empty() {
        put("physical_disks", disks.into());
    }
    disk.into()
}

/// Returns the disks of a volume: names at a controller, hints for the agent.
fn physical_disks(volume: &RaidVolume, is_software: bool) -> Vec<Value> {
    let names = (0..).map(|place| format!("physicalDisks.{place:03}"));
    let disks = names.map_while(|name| Some((property(volume, &name)?, name)));
    disks
        .map(|(disk, name)| match is_software {
            true => hint_members(&disk_hints(volume, &format!("{name}."))).into(),
            false => disk.into(),
        })
        .collect()
}

fn disk_hints(volume: &RaidVolume, prefix: &str) -> RootDeviceHints {
    let mut hints = RootDeviceHints::default();
    for (name, value) in &volume.others {
        match name.strip_prefix(prefix) {
            Some("deviceName") => hints.device_name = Some(value.clone()),
            Some("hctl") => hints.hctl = Some(value.clone()),
            Some(other) => hints.others.push((other.into(), value.clone())),
            None => {}
        }
    }
    hints
}

fn property<'a>(volume: &'a RaidVolume, name: &str) -> Option<&'a str> {
    volume.others.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, slice};

    use domain::host::record::{call::PreparationParts, spec::RaidWish};
    use expect_test::expect;

    use super::*;

    fn volume(level: &str, others: &[(&str, &str)]) -> RaidVolume {
        let others = others.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        RaidVolume { level: level.into(), others, ..RaidVolume::default() }
    }

    fn call(target: RaidWish, actual: Option<RaidWish>) -> PrepareCall {
        let parts = PreparationParts { storage: true, ..PreparationParts::default() };
        PrepareCall {
            target_raid: Some(target),
            actual_raid: actual,
            hints: None,
            parts,
            unprepared: true,
            restart: false,
        }
    }

    #[test]
    fn volumes_that_differ_are_built_anew() {
        let hardware = |volumes: &[RaidVolume]| RaidWish { hardware: Some(volumes.to_vec()), software: None };
        let software = |volumes: &[RaidVolume]| RaidWish { hardware: None, software: Some(volumes.to_vec()) };
        let mirror = volume(
            "1",
            &[
                ("controller", "C"),
                ("numberOfPhysicalDisks", "2"),
                ("physicalDisks.000", "D0"),
                ("physicalDisks.001", "D1"),
                ("rotational", "false"),
                ("sizeGibibytes", "100"),
            ],
        );
        let soft = volume("1", &[("physicalDisks.000", ""), ("physicalDisks.000.deviceName", "/dev/sda")]);
        let rows = [
            call(hardware(slice::from_ref(&mirror)), None),
            call(hardware(slice::from_ref(&mirror)), Some(hardware(slice::from_ref(&mirror)))),
            call(hardware(&[]), None),
            call(software(&[soft.clone(), volume("0", &[])]), None),
            call(software(&[]), Some(software(&[soft]))),
            call(software(&[]), None),
            call(RaidWish::default(), None),
        ];
        let mut table = String::new();
        for call in rows {
            match raid_change(&call) {
                None => table.push_str("nothing\n"),
                Some(change) => {
                    let steps = change.steps.iter().map(|step| step["step"].as_str().unwrap());
                    let steps = steps.collect::<Vec<_>>().join(", ");
                    writeln!(table, "{} {steps}: {}", change.is_software, change.target).unwrap();
                }
            }
        }
        expect![[r#"
            false delete_configuration, create_configuration: {"logical_disks":[{"controller":"C","disk_type":"ssd","is_root_volume":true,"number_of_physical_disks":2,"physical_disks":["D0","D1"],"raid_level":"1","size_gb":100}]}
            nothing
            false delete_configuration: {"logical_disks":[]}
            true delete_configuration, erase_devices_metadata, create_configuration: {"logical_disks":[{"controller":"software","is_root_volume":true,"physical_disks":[{"name":"s== /dev/sda"}],"raid_level":"1","size_gb":"MAX"},{"controller":"software","raid_level":"0","size_gb":"MAX"}]}
            true delete_configuration: {"logical_disks":[]}
            nothing
            nothing
        "#]].assert_eq(&table);
    }
}
