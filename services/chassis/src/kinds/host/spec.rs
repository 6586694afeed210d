//! Wishes for hosts: images, hints and RAID volumes both ways, and the part of the spec that rules read.

use std::sync::Arc;

use domain::{
    core::invalid::Invalid,
    host::record::spec::{
        BootMode, DataSecret, HostImage, HostSpec, InspectionMode, InterfaceWish, RaidVolume, RaidWish,
        RootDeviceHints,
    },
};
use proto::host as wire;

use super::value::{owned, shared, text_or_none, word_or_none};

/// Word for cleaning that is left out.
const NO_CLEANING: &str = "disabled";

/// Reads the part of a spec that rules read.
///
/// # Errors
/// A word is unknown; the error names the field.
pub fn from_wire(spec: &wire::HostSpec) -> Result<HostSpec, Invalid> {
    let none = wire::BmcDetails::default();
    let bmc = spec.bmc.as_ref().unwrap_or(&none);
    Ok(HostSpec {
        bmc_address: bmc.address.as_str().into(),
        credentials_name: bmc.credentials_name.as_str().into(),
        disable_certificate_verification: bmc.disable_certificate_verification,
        boot_mac: text_or_none(&spec.boot_mac_address),
        boot_mode: word_or_none("spec.bootMode", &spec.boot_mode, BootMode::from_word)?,
        architecture: spec.architecture.as_str().into(),
        online: spec.online,
        image: spec.image.as_ref().map(image),
        custom_deploy: spec.custom_deploy.as_ref().map(|custom| custom.method.as_str().into()),
        externally_provisioned: spec.externally_provisioned,
        disable_power_off: spec.disable_power_off,
        cleaning_disabled: spec.automated_cleaning_mode == NO_CLEANING,
        inspection: word_or_none("spec.inspectionMode", &spec.inspection_mode, InspectionMode::from_word)?,
        root_device_hints: spec.root_device_hints.as_ref().map(hints),
        raid: spec.raid.as_ref().map(raid),
        hardware_profile: spec.hardware_profile.as_str().into(),
        network_secret: text_or_none(&spec.preprovisioning_network_data_name),
        wishes_firmware: spec.firmware.is_some(),
        interfaces: spec.network_interfaces.iter().map(interface).collect(),
        data_secrets: data_secrets(spec),
    })
}

fn interface(interface: &wire::NetworkInterface) -> InterfaceWish {
    InterfaceWish {
        name: interface.name.as_str().into(),
        mac: interface.mac_address.as_str().into(),
        switch: interface.switch_port.as_ref().map(|port| port.switch_id.as_str().into()),
    }
}

fn data_secrets(spec: &wire::HostSpec) -> Vec<DataSecret> {
    let references =
        [("userData", &spec.user_data), ("networkData", &spec.network_data), ("metaData", &spec.meta_data)];
    let named = references.into_iter().filter_map(|(member, reference)| {
        Some(DataSecret { member, namespace: reference.as_ref()?.namespace.as_str().into() })
    });
    named.collect()
}

/// Reads an image.
pub fn image(image: &wire::HostImage) -> HostImage {
    HostImage {
        url: image.url.as_str().into(),
        checksum: image.checksum.as_str().into(),
        checksum_type: image.checksum_type.as_str().into(),
        format: image.format.as_str().into(),
        pull_secret: image.oci_auth_secret_name.as_str().into(),
    }
}

/// Returns an image for the wire.
pub fn image_to_wire(image: &HostImage) -> wire::HostImage {
    wire::HostImage {
        url: image.url.to_string(),
        checksum: image.checksum.to_string(),
        checksum_type: image.checksum_type.to_string(),
        format: image.format.to_string(),
        oci_auth_secret_name: image.pull_secret.to_string(),
    }
}

/// Further properties by name.
type Properties = Vec<(Arc<str>, Arc<str>)>;

/// Reads hints.
pub fn hints(hints: &wire::RootDeviceHints) -> RootDeviceHints {
    let mut others = Properties::new();
    put(&mut others, "minSizeGigabytes", hints.min_size_gigabytes.as_ref());
    put(&mut others, "model", hints.model.as_ref());
    put(&mut others, "rotational", hints.rotational.as_ref());
    put(&mut others, "serialNumber", hints.serial_number.as_ref());
    put(&mut others, "vendor", hints.vendor.as_ref());
    put(&mut others, "wwn", hints.wwn.as_ref());
    put(&mut others, "wwnVendorExtension", hints.wwn_vendor_extension.as_ref());
    put(&mut others, "wwnWithExtension", hints.wwn_with_extension.as_ref());
    let (device_name, hctl) = (shared(hints.device_name.as_ref()), shared(hints.hctl.as_ref()));
    RootDeviceHints { device_name, hctl, others }
}

/// Returns hints for the wire.
pub fn hints_to_wire(hints: &RootDeviceHints) -> wire::RootDeviceHints {
    let text = |name: &str| property(&hints.others, name).map(str::to_owned);
    wire::RootDeviceHints {
        device_name: owned(hints.device_name.as_ref()),
        hctl: owned(hints.hctl.as_ref()),
        model: text("model"),
        vendor: text("vendor"),
        serial_number: text("serialNumber"),
        min_size_gigabytes: number(&hints.others, "minSizeGigabytes"),
        wwn: text("wwn"),
        wwn_with_extension: text("wwnWithExtension"),
        wwn_vendor_extension: text("wwnVendorExtension"),
        rotational: number(&hints.others, "rotational"),
    }
}

/// Reads RAID volumes.
pub fn raid(raid: &wire::RaidConfig) -> RaidWish {
    RaidWish {
        hardware: raid.hardware.as_ref().map(|list| list.volumes.iter().map(hardware).collect()),
        software: raid.software.as_ref().map(|list| list.volumes.iter().map(software).collect()),
    }
}

/// Returns RAID volumes for the wire.
pub fn raid_to_wire(raid: &RaidWish) -> wire::RaidConfig {
    wire::RaidConfig {
        hardware: raid.hardware.as_ref().map(|volumes| wire::HardwareRaidVolumes {
            volumes: volumes.iter().map(hardware_to_wire).collect(),
        }),
        software: raid.software.as_ref().map(|volumes| wire::SoftwareRaidVolumes {
            volumes: volumes.iter().map(software_to_wire).collect(),
        }),
    }
}

fn hardware(volume: &wire::HardwareRaidVolume) -> RaidVolume {
    let mut others = Properties::new();
    let controller = Some(&volume.controller).filter(|name| !name.is_empty());
    put(&mut others, "controller", controller);
    put(&mut others, "numberOfPhysicalDisks", volume.number_of_physical_disks.as_ref());
    for (place, disk) in volume.physical_disks.iter().enumerate() {
        put(&mut others, &disk_name(place), Some(disk));
    }
    put(&mut others, "rotational", volume.rotational.as_ref());
    put(&mut others, "sizeGibibytes", volume.size_gibibytes.as_ref());
    let (level, name) = (volume.level.as_str().into(), volume.name.as_str().into());
    RaidVolume { level, name, is_root: false, others }
}

fn hardware_to_wire(volume: &RaidVolume) -> wire::HardwareRaidVolume {
    let disks = (0..).map_while(|place| property(&volume.others, &disk_name(place)));
    wire::HardwareRaidVolume {
        level: volume.level.to_string(),
        name: volume.name.to_string(),
        number_of_physical_disks: number(&volume.others, "numberOfPhysicalDisks"),
        physical_disks: disks.map(str::to_owned).collect(),
        controller: property(&volume.others, "controller").unwrap_or_default().to_owned(),
        rotational: number(&volume.others, "rotational"),
        size_gibibytes: number(&volume.others, "sizeGibibytes"),
    }
}

fn software(volume: &wire::SoftwareRaidVolume) -> RaidVolume {
    let mut others = Properties::new();
    for (place, disk) in volume.physical_disks.iter().enumerate() {
        let name = disk_name(place);
        // A disk without hints is a disk as well.
        put(&mut others, &name, Some(&""));
        let disk = hints(disk);
        put(&mut others, &format!("{name}.deviceName"), disk.device_name.as_ref());
        put(&mut others, &format!("{name}.hctl"), disk.hctl.as_ref());
        let hints = disk.others.into_iter();
        others.extend(hints.map(|(hint, value)| (format!("{name}.{hint}").into(), value)));
    }
    put(&mut others, "sizeGibibytes", volume.size_gibibytes.as_ref());
    RaidVolume {
        level: volume.level.as_str().into(),
        is_root: volume.root_volume,
        others,
        ..RaidVolume::default()
    }
}

fn software_to_wire(volume: &RaidVolume) -> wire::SoftwareRaidVolume {
    let names = (0..).map(disk_name).take_while(|name| property(&volume.others, name).is_some());
    wire::SoftwareRaidVolume {
        level: volume.level.to_string(),
        physical_disks: names.map(|name| disk_to_wire(&volume.others, &name)).collect(),
        root_volume: volume.is_root,
        size_gibibytes: number(&volume.others, "sizeGibibytes"),
    }
}

/// Returns the hints for the disk `name` of a software volume.
fn disk_to_wire(properties: &Properties, name: &str) -> wire::RootDeviceHints {
    let hint = |(key, value): &(Arc<str>, Arc<str>)| {
        let hint = key.strip_prefix(name)?.strip_prefix('.')?;
        Some((hint.into(), Arc::clone(value)))
    };
    let others: Properties = properties.iter().filter_map(hint).collect();
    let text = |name: &str| property(&others, name).map(Into::into);
    hints_to_wire(&RootDeviceHints {
        device_name: text("deviceName"),
        hctl: text("hctl"),
        others: others.clone(),
    })
}

/// Returns the name of a disk, whose places are in the order of their names.
fn disk_name(place: usize) -> String {
    format!("physicalDisks.{place:03}")
}

fn put(properties: &mut Properties, name: &str, value: Option<&impl ToString>) {
    properties.extend(value.map(|value| (name.into(), value.to_string().into())));
}

fn property<'a>(properties: &'a Properties, name: &str) -> Option<&'a str> {
    properties.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
}

fn number<N: std::str::FromStr>(properties: &Properties, name: &str) -> Option<N> {
    property(properties, name)?.parse().ok()
}
