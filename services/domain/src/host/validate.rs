//! Wishes that are refused when they are written (host reference 1.20, 2.3).
//!
//! A refusal names each field in the form of the contract, so that every face shows the same.

use crate::{
    core::invalid::Invalid,
    host::{
        address::{BmcAddress, BmcFamily},
        detach,
        image::image_flaws,
        inspection,
        record::{
            Host,
            annotations::InspectRequest,
            spec::{BootMode, HostSpec, InspectionMode, RaidVolume, RaidWish},
            state::HostState,
        },
    },
};

mod lists;

/// Largest number of characters of the name of a volume.
const LONGEST_VOLUME_NAME: usize = 64;

/// RAID levels of controllers.
const HARDWARE_LEVELS: [&str; 8] = ["0", "1", "2", "5", "6", "1+0", "5+0", "6+0"];

/// RAID levels of operating systems.
const SOFTWARE_LEVELS: [&str; 3] = ["0", "1", "1+0"];

/// Largest number of software volumes.
const MOST_SOFTWARE_VOLUMES: usize = 2;

/// Length of a UUID.
const UUID_LENGTH: usize = 36;

/// Returns every rule that `wanted` breaks, in place of the host `before`.
pub fn violations(wanted: &Host, before: Option<&Host>) -> Vec<Invalid> {
    let mut found = Violations::default();
    check_name(&mut found, &wanted.meta.key.name);
    let family = check_address(&mut found, &wanted.spec);
    check_mac(&mut found, wanted, family);
    check_power(&mut found, &wanted.spec);
    check_abilities(&mut found, &wanted.spec, family);
    let image_flaws = wanted.spec.image.iter().flat_map(image_flaws);
    found.0.extend(image_flaws.map(|invalid| invalid.within("spec.image")));
    let reason = "is deprecated: use HostFirmwareSettings";
    found.add(wanted.spec.wishes_firmware, "spec.firmware", reason);
    lists::check_interfaces(&mut found, &wanted.spec);
    lists::check_data_secrets(&mut found, wanted);
    check_hints(&mut found, &wanted.spec);
    check_raid(&mut found, &wanted.spec, family);
    check_annotations(&mut found, wanted);
    if let Some(before) = before {
        check_change(&mut found, wanted, before);
    }
    found.0
}

/// Returns whether the BMC of a host may be changed: the driver is not at work with the present one.
pub fn may_change_bmc(host: &Host) -> bool {
    let is_early = matches!(host.state(), HostState::Unset | HostState::Unmanaged | HostState::Registering);
    is_early || host.spec.bmc_address.is_empty() || detach::is_detached(host)
}

/// Rules that are broken.
#[derive(Default)]
struct Violations(Vec<Invalid>);

impl Violations {
    fn add(&mut self, is_broken: bool, field: &str, reason: &str) {
        if is_broken {
            self.0.push(Invalid::new(field, reason));
        }
    }
}

/// A UUID would be mistaken for the id of a host at its driver.
fn check_name(found: &mut Violations, name: &str) {
    let is_uuid = name.len() == UUID_LENGTH
        && name.char_indices().all(|(place, character)| match place {
            8 | 13 | 18 | 23 => character == '-',
            _ => character.is_ascii_hexdigit(),
        });
    found.add(is_uuid, "metadata.name", "must not be a UUID");
}

fn check_address(found: &mut Violations, spec: &HostSpec) -> Option<BmcFamily> {
    if spec.bmc_address.is_empty() {
        return None;
    }
    match BmcAddress::parse(&spec.bmc_address) {
        Ok(address) => Some(address.family),
        Err(flaw) => {
            found.add(true, "spec.bmc.address", flaw.words());
            None
        }
    }
}

fn check_mac(found: &mut Violations, host: &Host, family: Option<BmcFamily>) {
    const FIELD: &str = "spec.bootMACAddress";
    if let Some(mac) = &host.spec.boot_mac {
        found.add(!is_mac(mac), FIELD, "is not six pairs of hexadecimal digits with colons between");
        return;
    }
    found.add(family == Some(BmcFamily::Libvirt), FIELD, "is required for a virtual machine");
    let is_managed = host.spec.names_a_bmc();
    let is_uninspected = is_managed && inspection::is_disabled(host);
    found.add(is_uninspected, FIELD, "is required where the host is not inspected");
}

fn is_mac(text: &str) -> bool {
    let is_pair = |pair: &str| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_pair)
}

fn check_power(found: &mut Violations, spec: &HostSpec) {
    let is_off = spec.disable_power_off && !spec.online;
    found.add(is_off, "spec.online", "cannot be false for a host that may never be off");
}

/// Checks the abilities of the BMC. An address that cannot be read has its own refusal.
fn check_abilities(found: &mut Violations, spec: &HostSpec, family: Option<BmcFamily>) {
    if family.is_none_or(BmcFamily::is_redfish) {
        return;
    }
    let is_secure = spec.boot_mode == Some(BootMode::UefiSecureBoot);
    found.add(is_secure, "spec.bootMode", "the BMC does not support secure boot");
    let is_fast = spec.inspection == Some(InspectionMode::Fast);
    found.add(is_fast, "spec.inspectionMode", "the BMC cannot report an inventory");
}

fn check_hints(found: &mut Violations, spec: &HostSpec) {
    let Some(name) = spec.root_device_hints.as_ref().and_then(|hints| hints.device_name.as_ref()) else {
        return;
    };
    let device = name.strip_prefix("/dev/disk/by-path/").or_else(|| name.strip_prefix("/dev/"));
    let is_device = device.is_some_and(|device| !device.is_empty() && !device.contains('/'));
    let reason = "is neither /dev/ with a name nor /dev/disk/by-path/ with one";
    found.add(!is_device, "spec.rootDeviceHints.deviceName", reason);
}

fn check_raid(found: &mut Violations, spec: &HostSpec, family: Option<BmcFamily>) {
    let Some(raid) = &spec.raid else { return };
    let count = |volumes: &Option<Vec<RaidVolume>>| volumes.as_ref().map_or(0, Vec::len);
    let (hardware, software) = (count(&raid.hardware), count(&raid.software));
    let reason = "hardware and software volumes exclude each other";
    found.add(hardware > 0 && software > 0, "spec.raid", reason);
    let has_none = hardware > 0 && family.is_some_and(|family| !family.is_redfish());
    found.add(has_none, "spec.raid.hardwareRAIDVolumes", "the BMC does not support RAID");
    found.add(
        software > MOST_SOFTWARE_VOLUMES,
        "spec.raid.softwareRAIDVolumes",
        "may have two volumes at most",
    );
    check_volumes(found, raid);
    check_root_volumes(found, raid, spec.root_device_hints.is_some());
}

fn check_volumes(found: &mut Violations, raid: &RaidWish) {
    for (place, volume) in raid.hardware.iter().flatten().enumerate() {
        let path = format!("spec.raid.hardwareRAIDVolumes[{place}]");
        let is_known = HARDWARE_LEVELS.contains(&&*volume.level);
        found.add(!is_known, &format!("{path}.level"), "is no RAID level of a controller");
        let is_long = volume.name.chars().count() > LONGEST_VOLUME_NAME;
        found.add(is_long, &format!("{path}.name"), "has more than 64 characters");
        check_disks(found, &path, volume);
    }
    for (place, volume) in raid.software.iter().flatten().enumerate() {
        let is_known = SOFTWARE_LEVELS.contains(&&*volume.level);
        let field = format!("spec.raid.softwareRAIDVolumes[{place}].level");
        found.add(!is_known, &field, "is no RAID level of software");
    }
}

fn check_disks(found: &mut Violations, path: &str, volume: &RaidVolume) {
    let value = |name: &str| volume.others.iter().find(|(known, _)| **known == *name).map(|(_, value)| value);
    let disks = volume.others.iter().filter(|(name, _)| name.starts_with("physicalDisks.")).count();
    let is_lost = disks > 0 && value("controller").is_none();
    found.add(is_lost, &format!("{path}.controller"), "is required with physicalDisks");
    let number = value("numberOfPhysicalDisks").map(|number| &**number);
    let is_other = disks > 0 && number.is_some_and(|number| number != disks.to_string());
    let field = format!("{path}.numberOfPhysicalDisks");
    found.add(is_other, &field, "differs from the number of physicalDisks");
}

fn check_root_volumes(found: &mut Violations, raid: &RaidWish, has_hints: bool) {
    let roots = raid.software.iter().flatten().enumerate().filter(|(_, volume)| volume.is_root);
    for (number, (place, volume)) in roots.enumerate() {
        let field = format!("spec.raid.softwareRAIDVolumes[{place}].rootVolume");
        found.add(number > 0, &field, "one volume at most is the root");
        found.add(has_hints, &field, "excludes rootDeviceHints");
        found.add(&*volume.level != "1", &field, "requires RAID level 1");
    }
}

fn check_annotations(found: &mut Violations, host: &Host) {
    let annotations = &host.meta.annotations;
    let is_unreadable = annotations.reboots.iter().any(|request| request.is_unreadable);
    let field = "metadata.annotations[reboot.metal3.io]";
    let reason = "is neither empty nor a JSON object with force and a mode, which is soft or hard";
    found.add(is_unreadable, field, reason);
    let field = "metadata.annotations[inspect.metal3.io]";
    found.add(annotations.is_inspect_unreadable, field, "is neither empty nor the word disabled");
    let is_again = annotations.inspect == Some(InspectRequest::Again);
    let is_contrary = is_again && host.spec.inspection == Some(InspectionMode::Disabled);
    found.add(is_contrary, field, "contradicts spec.inspectionMode, which is disabled");
    let is_needless = annotations.hardware_details.is_some() && !inspection::is_disabled(host);
    let field = "metadata.annotations[inspect.metal3.io/hardwaredetails]";
    found.add(is_needless, field, "requires that inspection is disabled");
    let is_bad = matches!(annotations.status, Some(Err(_)));
    let reason = "has a member or a word that is not known";
    found.add(is_bad, "metadata.annotations[baremetalhost.metal3.io/status]", reason);
    let is_bad = matches!(annotations.hardware_details, Some(Err(_)));
    found.add(is_bad, field, "is no inventory in JSON, or has a member that is not known");
}

fn check_change(found: &mut Violations, wanted: &Host, before: &Host) {
    let is_moved = wanted.spec.bmc_address != before.spec.bmc_address && !may_change_bmc(before);
    let reason = "can be changed while the host is registering or detached only";
    found.add(is_moved, "spec.bmc.address", reason);
    let known = before.spec.boot_mac.as_ref();
    let is_same = |mac: &str| wanted.spec.boot_mac.as_ref().is_some_and(|now| now.eq_ignore_ascii_case(mac));
    let is_other = known.is_some_and(|mac| !is_same(mac)) && !may_change_bmc(before);
    found.add(is_other, "spec.bootMACAddress", "cannot be changed once it is set");
    let is_switched = wanted.spec.externally_provisioned && !before.spec.externally_provisioned;
    let reason = "can be switched on while the host is available only";
    let is_early = !before.state().is_available() && !may_change_bmc(before);
    found.add(is_switched && is_early, "spec.externallyProvisioned", reason);
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;
    use crate::host::record::{
        annotations::{DetachMark, RebootRequest, UnreadableText},
        spec::{DataSecret, HostImage, InterfaceWish, RootDeviceHints},
    };

    fn host(words: &str) -> Host {
        let mut host = Host::default();
        host.meta.key.name = "h1".into();
        host.meta.key.namespace = "m".into();
        host.spec.online = true;
        for word in words.split_whitespace() {
            change(&mut host, word);
        }
        host
    }

    fn change(host: &mut Host, word: &str) {
        let (word, value) = word.split_once('=').unwrap_or((word, ""));
        let spec = &mut host.spec;
        match word {
            "name" => host.meta.key.name = value.into(),
            "bmc" => spec.bmc_address = value.into(),
            "mac" => spec.boot_mac = Some(value.into()),
            "off" => spec.online = false,
            "never-off" => spec.disable_power_off = true,
            "secure" => spec.boot_mode = Some(BootMode::UefiSecureBoot),
            "fast" => spec.inspection = Some(InspectionMode::Fast),
            "uninspected" => spec.inspection = Some(InspectionMode::Disabled),
            "not-inspected" => host.meta.annotations.inspect = Some(InspectRequest::Disabled),
            "image" => spec.image = Some(HostImage { url: value.into(), ..HostImage::default() }),
            "hint" => {
                let device_name = Some(value.into());
                spec.root_device_hints = Some(RootDeviceHints { device_name, ..RootDeviceHints::default() });
            }
            "hardware" => volumes(spec).hardware.get_or_insert_default().push(volume(value, false)),
            "software" => volumes(spec).software.get_or_insert_default().push(volume(value, false)),
            "root" => volumes(spec).software.get_or_insert_default().push(volume(value, true)),
            "disk" => {
                let disk = ("physicalDisks.000".into(), value.into());
                volumes(spec).hardware.get_or_insert_default()[0].others.push(disk);
            }
            "disks" => {
                let number = ("numberOfPhysicalDisks".into(), value.into());
                volumes(spec).hardware.get_or_insert_default()[0].others.push(number);
            }
            "reboot" => {
                let request = RebootRequest { is_unreadable: true, ..RebootRequest::default() };
                host.meta.annotations.reboots.push(request);
            }
            "inspect-again" => host.meta.annotations.inspect = Some(InspectRequest::Again),
            "inspect-word" => host.meta.annotations.is_inspect_unreadable = true,
            "firmware" => spec.wishes_firmware = true,
            "interface" => {
                let (name, mac) = value.split_once('/').unwrap_or((value, ""));
                let wish = InterfaceWish { name: name.into(), mac: mac.into(), switch: None };
                spec.interfaces.push(wish);
            }
            "switch" => spec.interfaces[0].switch = Some(value.into()),
            "secret-of" => spec.data_secrets.push(DataSecret { member: "userData", namespace: value.into() }),
            "details" => host.meta.annotations.hardware_details = Some(Err(UnreadableText)),
            "external" => spec.externally_provisioned = true,
            "detached" => host.meta.annotations.detached = Some(DetachMark::default()),
            state => {
                let state = HostState::from_word(state).expect("a word of the tests");
                host.status.provisioning.state = state;
            }
        }
    }

    fn volumes(spec: &mut HostSpec) -> &mut RaidWish {
        spec.raid.get_or_insert_default()
    }

    fn volume(level: &str, is_root: bool) -> RaidVolume {
        RaidVolume { level: level.into(), is_root, ..RaidVolume::default() }
    }

    fn refusals(rows: &[(&str, Option<&str>)]) -> String {
        let mut table = String::new();
        for (wanted, before) in rows {
            let found = violations(&host(wanted), before.map(host).as_ref());
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            let found = if found.is_empty() { "-".to_owned() } else { found.join("; ") };
            let before = before.map_or(String::new(), |before| format!("{before} -> "));
            writeln!(table, "{before}{wanted}: {found}").unwrap();
        }
        table
    }

    #[test]
    fn new_hosts_are_refused_by_every_field_that_breaks_a_rule() {
        let rows = [
            "",
            "name=123e4567-e89b-12d3-a456-426614174000",
            "bmc=redfish://bmc/redfish/v1/Systems/1 mac=00:5c:52:31:00:01",
            "bmc=ilo4://bmc",
            "bmc=libvirt://bmc",
            "bmc=redfish://bmc uninspected",
            "bmc=redfish://bmc not-inspected",
            "bmc=redfish://bmc mac=00:5c:52:31:00",
            "never-off off",
            "bmc=ipmi://bmc secure fast",
            "bmc=redfish://bmc secure fast",
            "image=file:///a",
            "image=http://a/b",
            "hint=/dev/sda",
            "hint=/dev/disk/by-path/pci-1",
            "hint=sda",
            "bmc=ipmi://bmc hardware=1",
            "hardware=1 software=1",
            "hardware=7",
            "hardware=1 disk=a disks=2",
            "software=5",
            "software=1 software=1 software=1",
            "root=1 root=0 hint=/dev/sda",
            "reboot",
            "details",
            "firmware",
            "inspect-word",
            "inspect-again",
            "inspect-again uninspected mac=00:5c:52:31:00:01",
            "interface=eth0 interface=/00:5c:52:31:00:01 switch=00:5c:52:31:00:02",
            "interface= interface=eth0/00:5c:52:31:00:01 interface=a:b interface=/00:5c",
            "interface=eth0 interface=ETH0 interface=/aa:00:00:00:00:01 interface=/AA:00:00:00:00:01",
            "interface=eth0 switch=x",
            "secret-of= secret-of=m secret-of=n",
        ];
        expect![[r#"
            : -
            name=123e4567-e89b-12d3-a456-426614174000: metadata.name: must not be a UUID
            bmc=redfish://bmc/redfish/v1/Systems/1 mac=00:5c:52:31:00:01: -
            bmc=ilo4://bmc: spec.bmc.address: the protocol of the BMC address is not known
            bmc=libvirt://bmc: spec.bootMACAddress: is required for a virtual machine
            bmc=redfish://bmc uninspected: spec.bootMACAddress: is required where the host is not inspected
            bmc=redfish://bmc not-inspected: spec.bootMACAddress: is required where the host is not inspected
            bmc=redfish://bmc mac=00:5c:52:31:00: spec.bootMACAddress: is not six pairs of hexadecimal digits with colons between
            never-off off: spec.online: cannot be false for a host that may never be off
            bmc=ipmi://bmc secure fast: spec.bootMode: the BMC does not support secure boot; spec.inspectionMode: the BMC cannot report an inventory
            bmc=redfish://bmc secure fast: -
            image=file:///a: spec.image.url: 'file:///a' is not an address that begins with http://, https://, ftp://, gopher://, oci://; spec.image.checksum: is required unless the image is an OCI image or a live ISO
            image=http://a/b: spec.image.checksum: is required unless the image is an OCI image or a live ISO
            hint=/dev/sda: -
            hint=/dev/disk/by-path/pci-1: -
            hint=sda: spec.rootDeviceHints.deviceName: is neither /dev/ with a name nor /dev/disk/by-path/ with one
            bmc=ipmi://bmc hardware=1: spec.raid.hardwareRAIDVolumes: the BMC does not support RAID
            hardware=1 software=1: spec.raid: hardware and software volumes exclude each other
            hardware=7: spec.raid.hardwareRAIDVolumes[0].level: is no RAID level of a controller
            hardware=1 disk=a disks=2: spec.raid.hardwareRAIDVolumes[0].controller: is required with physicalDisks; spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks: differs from the number of physicalDisks
            software=5: spec.raid.softwareRAIDVolumes[0].level: is no RAID level of software
            software=1 software=1 software=1: spec.raid.softwareRAIDVolumes: may have two volumes at most
            root=1 root=0 hint=/dev/sda: spec.raid.softwareRAIDVolumes[0].rootVolume: excludes rootDeviceHints; spec.raid.softwareRAIDVolumes[1].rootVolume: one volume at most is the root; spec.raid.softwareRAIDVolumes[1].rootVolume: excludes rootDeviceHints; spec.raid.softwareRAIDVolumes[1].rootVolume: requires RAID level 1
            reboot: metadata.annotations[reboot.metal3.io]: is neither empty nor a JSON object with force and a mode, which is soft or hard
            details: metadata.annotations[inspect.metal3.io/hardwaredetails]: requires that inspection is disabled; metadata.annotations[inspect.metal3.io/hardwaredetails]: is no inventory in JSON, or has a member that is not known
            firmware: spec.firmware: is deprecated: use HostFirmwareSettings
            inspect-word: metadata.annotations[inspect.metal3.io]: is neither empty nor the word disabled
            inspect-again: -
            inspect-again uninspected mac=00:5c:52:31:00:01: metadata.annotations[inspect.metal3.io]: contradicts spec.inspectionMode, which is disabled
            interface=eth0 interface=/00:5c:52:31:00:01 switch=00:5c:52:31:00:02: -
            interface= interface=eth0/00:5c:52:31:00:01 interface=a:b interface=/00:5c: spec.networkInterfaces[0]: has to have exactly one of name and macAddress; spec.networkInterfaces[1]: has to have exactly one of name and macAddress; spec.networkInterfaces[2].name: may have letters, digits, '.', '_' and '-' only; spec.networkInterfaces[3].macAddress: is not six pairs of hexadecimal digits with colons between
            interface=eth0 interface=ETH0 interface=/aa:00:00:00:00:01 interface=/AA:00:00:00:00:01: spec.networkInterfaces[1]: names an interface a second time; spec.networkInterfaces[3]: names an interface a second time
            interface=eth0 switch=x: spec.networkInterfaces[0].switchPort.switchID: is not six pairs of hexadecimal digits with colons between
            secret-of= secret-of=m secret-of=n: spec.userData.namespace: has to be the namespace of the host
        "#]].assert_eq(&refusals(&rows.map(|row| (row, None))));
    }

    #[test]
    fn fields_that_are_fixed_are_kept() {
        let rows = [
            ("available bmc=redfish://b", Some("available bmc=redfish://a")),
            ("registering bmc=redfish://b", Some("registering bmc=redfish://a")),
            ("detached available bmc=redfish://b", Some("detached available bmc=redfish://a")),
            ("available bmc=redfish://b", Some("available")),
            (
                "available bmc=ipmi://a mac=00:00:00:00:00:02",
                Some("available bmc=ipmi://a mac=00:00:00:00:00:01"),
            ),
            (
                "available bmc=ipmi://a mac=00:00:00:00:00:AB",
                Some("available bmc=ipmi://a mac=00:00:00:00:00:ab"),
            ),
            ("available bmc=ipmi://a mac=00:00:00:00:00:02", Some("available bmc=ipmi://a")),
            ("available bmc=ipmi://a", Some("available bmc=ipmi://a mac=00:00:00:00:00:01")),
            ("available external", Some("available")),
            ("provisioned bmc=ipmi://a external", Some("provisioned bmc=ipmi://a")),
        ];
        expect![[r#"
            available bmc=redfish://a -> available bmc=redfish://b: spec.bmc.address: can be changed while the host is registering or detached only
            registering bmc=redfish://a -> registering bmc=redfish://b: -
            detached available bmc=redfish://a -> detached available bmc=redfish://b: -
            available -> available bmc=redfish://b: -
            available bmc=ipmi://a mac=00:00:00:00:00:01 -> available bmc=ipmi://a mac=00:00:00:00:00:02: spec.bootMACAddress: cannot be changed once it is set
            available bmc=ipmi://a mac=00:00:00:00:00:ab -> available bmc=ipmi://a mac=00:00:00:00:00:AB: -
            available bmc=ipmi://a -> available bmc=ipmi://a mac=00:00:00:00:00:02: -
            available bmc=ipmi://a mac=00:00:00:00:00:01 -> available bmc=ipmi://a: spec.bootMACAddress: cannot be changed once it is set
            available -> available external: -
            provisioned bmc=ipmi://a -> provisioned bmc=ipmi://a external: spec.externallyProvisioned: can be switched on while the host is available only
        "#]].assert_eq(&refusals(&rows));
    }
}
