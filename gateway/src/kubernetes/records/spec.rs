//! Wishes for hosts, and the parts that the status repeats.

use proto::host::{
    BmcDetails, CustomDeploy, FirmwareConfig, HardwareRaidVolume, HardwareRaidVolumes, HostImage, HostSpec,
    NetworkAttachment, NetworkInterface, ObjectReference, RaidConfig, RootDeviceHints, SecretReference,
    SoftwareRaidVolume, SoftwareRaidVolumes, SwitchPort, Taint,
};
use serde_json::{Map, Value};

use super::json::{
    ShownMembers, flag, maybe_flag, maybe_number, maybe_text, maybe_time, nested, objects, shown_time, text,
    texts,
};

/// Cleaning of hosts that say nothing else.
const CLEANING: &str = "metadata";

/// Returns the wishes as JSON.
pub(super) fn shown(spec: HostSpec) -> ShownMembers {
    let cleaning = match &*spec.automated_cleaning_mode {
        "" => CLEANING,
        mode => mode,
    };
    ShownMembers::default()
        .text("architecture", &spec.architecture)
        .always("automatedCleaningMode", cleaning)
        .maybe("bmc", spec.bmc.map(shown_bmc))
        .text("bootMACAddress", &spec.boot_mac_address)
        .text("bootMode", &spec.boot_mode)
        .maybe("consumerRef", spec.consumer_ref.map(shown_reference))
        .maybe("customDeploy", spec.custom_deploy.map(shown_procedure))
        .text("description", &spec.description)
        .flag("disablePowerOff", spec.disable_power_off)
        .flag("externallyProvisioned", spec.externally_provisioned)
        .maybe("firmware", spec.firmware.map(shown_firmware))
        .text("hardwareProfile", &spec.hardware_profile)
        .maybe("image", spec.image.map(shown_image))
        .text("inspectionMode", &spec.inspection_mode)
        .maybe("metaData", spec.meta_data.map(shown_secret))
        .maybe("networkData", spec.network_data.map(shown_secret))
        .list("networkInterfaces", spec.network_interfaces.into_iter().map(shown_interface))
        .always("online", spec.online)
        .text("preprovisioningNetworkDataName", &spec.preprovisioning_network_data_name)
        .maybe("raid", spec.raid.map(shown_raid))
        .maybe("rootDeviceHints", spec.root_device_hints.map(shown_hints))
        .list("taints", spec.taints.into_iter().map(shown_taint))
        .maybe("userData", spec.user_data.map(shown_secret))
}

/// Reads wishes that fit their schema.
pub(super) fn read(spec: &Map<String, Value>) -> HostSpec {
    HostSpec {
        bmc: nested(spec, "bmc").map(read_bmc),
        online: flag(spec, "online"),
        boot_mac_address: text(spec, "bootMACAddress"),
        boot_mode: text(spec, "bootMode"),
        architecture: text(spec, "architecture"),
        automated_cleaning_mode: text(spec, "automatedCleaningMode"),
        inspection_mode: text(spec, "inspectionMode"),
        image: nested(spec, "image").map(read_image),
        custom_deploy: nested(spec, "customDeploy").map(read_procedure),
        externally_provisioned: flag(spec, "externallyProvisioned"),
        disable_power_off: flag(spec, "disablePowerOff"),
        root_device_hints: nested(spec, "rootDeviceHints").map(read_hints),
        raid: nested(spec, "raid").map(read_raid),
        hardware_profile: text(spec, "hardwareProfile"),
        preprovisioning_network_data_name: text(spec, "preprovisioningNetworkDataName"),
        user_data: nested(spec, "userData").map(read_secret),
        network_data: nested(spec, "networkData").map(read_secret),
        meta_data: nested(spec, "metaData").map(read_secret),
        consumer_ref: nested(spec, "consumerRef").map(read_reference),
        description: text(spec, "description"),
        firmware: nested(spec, "firmware").map(read_firmware),
        taints: objects(spec, "taints").map(read_taint).collect(),
        network_interfaces: objects(spec, "networkInterfaces").map(read_interface).collect(),
    }
}

fn shown_bmc(bmc: BmcDetails) -> ShownMembers {
    ShownMembers::default()
        .always("address", bmc.address)
        .always("credentialsName", bmc.credentials_name)
        .flag("disableCertificateVerification", bmc.disable_certificate_verification)
}

fn read_bmc(bmc: &Map<String, Value>) -> BmcDetails {
    BmcDetails {
        address: text(bmc, "address"),
        credentials_name: text(bmc, "credentialsName"),
        disable_certificate_verification: flag(bmc, "disableCertificateVerification"),
    }
}

pub(super) fn shown_image(image: HostImage) -> ShownMembers {
    ShownMembers::default()
        .always("url", image.url)
        .text("checksum", &image.checksum)
        .text("checksumType", &image.checksum_type)
        .text("format", &image.format)
        .text("ociAuthSecretName", &image.oci_auth_secret_name)
}

pub(super) fn read_image(image: &Map<String, Value>) -> HostImage {
    HostImage {
        url: text(image, "url"),
        checksum: text(image, "checksum"),
        checksum_type: text(image, "checksumType"),
        format: text(image, "format"),
        oci_auth_secret_name: text(image, "ociAuthSecretName"),
    }
}

pub(super) fn shown_procedure(procedure: CustomDeploy) -> ShownMembers {
    ShownMembers::default().always("method", procedure.method)
}

pub(super) fn read_procedure(procedure: &Map<String, Value>) -> CustomDeploy {
    CustomDeploy { method: text(procedure, "method") }
}

pub(super) fn shown_hints(hints: RootDeviceHints) -> ShownMembers {
    ShownMembers::default()
        .maybe("deviceName", hints.device_name)
        .maybe("hctl", hints.hctl)
        .maybe("model", hints.model)
        .maybe("vendor", hints.vendor)
        .maybe("serialNumber", hints.serial_number)
        .maybe("minSizeGigabytes", hints.min_size_gigabytes)
        .maybe("wwn", hints.wwn)
        .maybe("wwnWithExtension", hints.wwn_with_extension)
        .maybe("wwnVendorExtension", hints.wwn_vendor_extension)
        .maybe("rotational", hints.rotational)
}

pub(super) fn read_hints(hints: &Map<String, Value>) -> RootDeviceHints {
    RootDeviceHints {
        device_name: maybe_text(hints, "deviceName"),
        hctl: maybe_text(hints, "hctl"),
        model: maybe_text(hints, "model"),
        vendor: maybe_text(hints, "vendor"),
        serial_number: maybe_text(hints, "serialNumber"),
        min_size_gigabytes: maybe_number(hints, "minSizeGigabytes"),
        wwn: maybe_text(hints, "wwn"),
        wwn_with_extension: maybe_text(hints, "wwnWithExtension"),
        wwn_vendor_extension: maybe_text(hints, "wwnVendorExtension"),
        rotational: maybe_flag(hints, "rotational"),
    }
}

/// Returns RAID volumes: an unset list is null, and so differs from one that deletes all volumes.
pub(super) fn shown_raid(raid: RaidConfig) -> ShownMembers {
    let hardware =
        raid.hardware.map(|list| list.volumes.into_iter().map(shown_hardware_volume).collect::<Vec<_>>());
    let software =
        raid.software.map(|list| list.volumes.into_iter().map(shown_software_volume).collect::<Vec<_>>());
    ShownMembers::default().always("hardwareRAIDVolumes", hardware).always("softwareRAIDVolumes", software)
}

fn shown_hardware_volume(volume: HardwareRaidVolume) -> Value {
    let shown = ShownMembers::default()
        .always("level", volume.level)
        .text("name", &volume.name)
        .maybe("numberOfPhysicalDisks", volume.number_of_physical_disks)
        .list("physicalDisks", volume.physical_disks)
        .text("controller", &volume.controller)
        .maybe("rotational", volume.rotational)
        .maybe("sizeGibibytes", volume.size_gibibytes);
    shown.into()
}

fn shown_software_volume(volume: SoftwareRaidVolume) -> Value {
    let shown = ShownMembers::default()
        .always("level", volume.level)
        .list("physicalDisks", volume.physical_disks.into_iter().map(shown_hints))
        .always("rootVolume", volume.root_volume)
        .maybe("sizeGibibytes", volume.size_gibibytes);
    shown.into()
}

pub(super) fn read_raid(raid: &Map<String, Value>) -> RaidConfig {
    let is_list = |name: &str| raid.get(name).is_some_and(Value::is_array);
    let hardware = is_list("hardwareRAIDVolumes").then(|| HardwareRaidVolumes {
        volumes: objects(raid, "hardwareRAIDVolumes").map(read_hardware_volume).collect(),
    });
    let software = is_list("softwareRAIDVolumes").then(|| SoftwareRaidVolumes {
        volumes: objects(raid, "softwareRAIDVolumes").map(read_software_volume).collect(),
    });
    RaidConfig { hardware, software }
}

fn read_hardware_volume(volume: &Map<String, Value>) -> HardwareRaidVolume {
    let disks = maybe_number(volume, "numberOfPhysicalDisks");
    HardwareRaidVolume {
        level: text(volume, "level"),
        name: text(volume, "name"),
        number_of_physical_disks: disks.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        physical_disks: texts(volume, "physicalDisks"),
        controller: text(volume, "controller"),
        rotational: maybe_flag(volume, "rotational"),
        size_gibibytes: maybe_number(volume, "sizeGibibytes"),
    }
}

fn read_software_volume(volume: &Map<String, Value>) -> SoftwareRaidVolume {
    SoftwareRaidVolume {
        level: text(volume, "level"),
        physical_disks: objects(volume, "physicalDisks").map(read_hints).collect(),
        root_volume: flag(volume, "rootVolume"),
        size_gibibytes: maybe_number(volume, "sizeGibibytes"),
    }
}

fn shown_secret(reference: SecretReference) -> ShownMembers {
    ShownMembers::default().text("name", &reference.name).text("namespace", &reference.namespace)
}

fn read_secret(reference: &Map<String, Value>) -> SecretReference {
    SecretReference { name: text(reference, "name"), namespace: text(reference, "namespace") }
}

fn shown_reference(reference: ObjectReference) -> ShownMembers {
    ShownMembers::default()
        .text("apiVersion", &reference.api_version)
        .text("fieldPath", &reference.field_path)
        .text("kind", &reference.kind)
        .text("name", &reference.name)
        .text("namespace", &reference.namespace)
        .text("resourceVersion", &reference.resource_version)
        .text("uid", &reference.uid)
}

fn read_reference(reference: &Map<String, Value>) -> ObjectReference {
    ObjectReference {
        api_version: text(reference, "apiVersion"),
        field_path: text(reference, "fieldPath"),
        kind: text(reference, "kind"),
        name: text(reference, "name"),
        namespace: text(reference, "namespace"),
        resource_version: text(reference, "resourceVersion"),
        uid: text(reference, "uid"),
    }
}

fn shown_firmware(firmware: FirmwareConfig) -> ShownMembers {
    ShownMembers::default()
        .maybe("virtualizationEnabled", firmware.virtualization_enabled)
        .maybe("simultaneousMultithreadingEnabled", firmware.simultaneous_multithreading_enabled)
        .maybe("sriovEnabled", firmware.sriov_enabled)
}

fn read_firmware(firmware: &Map<String, Value>) -> FirmwareConfig {
    FirmwareConfig {
        virtualization_enabled: maybe_flag(firmware, "virtualizationEnabled"),
        simultaneous_multithreading_enabled: maybe_flag(firmware, "simultaneousMultithreadingEnabled"),
        sriov_enabled: maybe_flag(firmware, "sriovEnabled"),
    }
}

fn shown_taint(taint: Taint) -> ShownMembers {
    ShownMembers::default()
        .always("key", taint.key)
        .text("value", &taint.value)
        .always("effect", taint.effect)
        .maybe("timeAdded", taint.time_added.map(shown_time))
}

fn read_taint(taint: &Map<String, Value>) -> Taint {
    Taint {
        key: text(taint, "key"),
        value: text(taint, "value"),
        effect: text(taint, "effect"),
        time_added: maybe_time(taint, "timeAdded"),
    }
}

fn shown_interface(interface: NetworkInterface) -> ShownMembers {
    let attachment = interface.host_network_attachment.map(|attachment| {
        ShownMembers::default().text("name", &attachment.name).text("namespace", &attachment.namespace)
    });
    let port = interface.switch_port.map(|port| {
        ShownMembers::default().always("switchID", port.switch_id).always("portID", port.port_id)
    });
    ShownMembers::default()
        .text("name", &interface.name)
        .text("macAddress", &interface.mac_address)
        .maybe("hostNetworkAttachment", attachment)
        .maybe("switchPort", port)
}

fn read_interface(interface: &Map<String, Value>) -> NetworkInterface {
    let attachment = nested(interface, "hostNetworkAttachment");
    let port = nested(interface, "switchPort");
    NetworkInterface {
        name: text(interface, "name"),
        mac_address: text(interface, "macAddress"),
        host_network_attachment: attachment.map(|members| NetworkAttachment {
            name: text(members, "name"),
            namespace: text(members, "namespace"),
        }),
        switch_port: port.map(|members| SwitchPort {
            switch_id: text(members, "switchID"),
            port_id: text(members, "portID"),
        }),
    }
}
