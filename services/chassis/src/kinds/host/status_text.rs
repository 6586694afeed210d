//! Status of a host in the JSON form of the contract, from the annotation that carries it to another site (host reference
//! 1.2, 2.4).

use domain::{
    core::{bos_time, time::Timestamp},
    host::record::{annotations::UnreadableText, status::HostStatus},
};
use proto::host as wire;
use serde::Deserialize;
use serde_json::Value;

use super::{status, value::at};

/// Reads a status.
///
/// # Errors
/// The text has a member or a word that is not known.
pub fn read(text: &str) -> Result<HostStatus, UnreadableText> {
    let read: StatusText = serde_json::from_str(text).map_err(|_| UnreadableText)?;
    let message = read.message().ok_or(UnreadableText)?;
    status::from_wire(&message).map_err(|_| UnreadableText)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct StatusText {
    operational_status: String,
    error_type: String,
    error_message: String,
    error_count: u32,
    provisioning_fail_count: u32,
    last_attempted_image: Option<ImageText>,
    last_updated: Option<String>,
    hardware_profile: String,
    hardware: Option<Value>,
    powered_on: bool,
    provisioning: ProvisioningText,
    good_credentials: LoginText,
    tried_credentials: LoginText,
    operation_history: HistoryText,
    conditions: Vec<ConditionText>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct ImageText {
    url: String,
    checksum: String,
    checksum_type: String,
    format: String,
    oci_auth_secret_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct ProvisioningText {
    state: String,
    #[serde(rename = "ID")]
    id: String,
    image: ImageText,
    root_device_hints: Option<HintsText>,
    raid: Option<RaidText>,
    boot_mode: String,
    custom_deploy: Option<MethodText>,
    /// Deprecated, and read by nothing.
    firmware: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MethodText {
    method: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct HintsText {
    device_name: Option<String>,
    hctl: Option<String>,
    model: Option<String>,
    vendor: Option<String>,
    serial_number: Option<String>,
    min_size_gigabytes: Option<i64>,
    wwn: Option<String>,
    wwn_with_extension: Option<String>,
    wwn_vendor_extension: Option<String>,
    rotational: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RaidText {
    #[serde(rename = "hardwareRAIDVolumes")]
    hardware: Option<Vec<HardwareText>>,
    #[serde(rename = "softwareRAIDVolumes")]
    software: Option<Vec<SoftwareText>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct HardwareText {
    level: String,
    name: String,
    number_of_physical_disks: Option<u32>,
    physical_disks: Vec<String>,
    controller: String,
    rotational: Option<bool>,
    size_gibibytes: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct SoftwareText {
    level: String,
    physical_disks: Vec<HintsText>,
    root_volume: bool,
    size_gibibytes: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct LoginText {
    credentials: Option<ReferenceText>,
    credentials_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReferenceText {
    name: String,
    /// Always that of the host.
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HistoryText {
    register: TimesText,
    inspect: TimesText,
    provision: TimesText,
    deprovision: TimesText,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TimesText {
    start: Option<String>,
    end: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct ConditionText {
    r#type: String,
    status: String,
    reason: String,
    last_transition_time: Option<String>,
    /// Text for people.
    message: String,
    observed_generation: u64,
}

impl StatusText {
    /// Returns the message; `None`: a time cannot be read.
    fn message(self) -> Option<wire::HostStatus> {
        let conditions: Option<_> = self.conditions.into_iter().map(ConditionText::message).collect();
        Some(wire::HostStatus {
            operational_status: self.operational_status,
            error_type: self.error_type,
            error_message: self.error_message,
            error_count: self.error_count,
            provisioning_fail_count: self.provisioning_fail_count,
            last_attempt: self
                .last_attempted_image
                .map(|image| wire::WantedSystem { image: Some(image.message()), procedure: None }),
            last_updated: moment(self.last_updated)?.and_then(at),
            hardware_profile: self.hardware_profile,
            hardware: self.hardware.map(|hardware| inventory(&hardware)),
            powered_on: self.powered_on,
            provisioning: Some(self.provisioning.message()),
            good_credentials: self.good_credentials.message(),
            tried_credentials: self.tried_credentials.message(),
            operation_history: Some(self.operation_history.message()?),
            conditions: conditions?,
        })
    }
}

impl ImageText {
    fn message(self) -> wire::HostImage {
        let Self { url, checksum, checksum_type, format, oci_auth_secret_name } = self;
        wire::HostImage { url, checksum, checksum_type, format, oci_auth_secret_name }
    }
}

impl ProvisioningText {
    fn message(self) -> wire::ProvisioningStatus {
        wire::ProvisioningStatus {
            state: self.state,
            id: self.id,
            // The contract always has the member, also for no image.
            image: Some(self.image).filter(|image| !image.url.is_empty()).map(ImageText::message),
            custom_deploy: self.custom_deploy.map(|custom| wire::CustomDeploy { method: custom.method }),
            boot_mode: self.boot_mode,
            root_device_hints: self.root_device_hints.map(HintsText::message),
            raid: self.raid.map(RaidText::message),
        }
    }
}

impl HintsText {
    fn message(self) -> wire::RootDeviceHints {
        wire::RootDeviceHints {
            device_name: self.device_name,
            hctl: self.hctl,
            model: self.model,
            vendor: self.vendor,
            serial_number: self.serial_number,
            min_size_gigabytes: self.min_size_gigabytes,
            wwn: self.wwn,
            wwn_with_extension: self.wwn_with_extension,
            wwn_vendor_extension: self.wwn_vendor_extension,
            rotational: self.rotational,
        }
    }
}

impl RaidText {
    fn message(self) -> wire::RaidConfig {
        let hardware = |volume: HardwareText| wire::HardwareRaidVolume {
            level: volume.level,
            name: volume.name,
            number_of_physical_disks: volume.number_of_physical_disks,
            physical_disks: volume.physical_disks,
            controller: volume.controller,
            rotational: volume.rotational,
            size_gibibytes: volume.size_gibibytes,
        };
        wire::RaidConfig {
            hardware: self.hardware.map(|volumes| wire::HardwareRaidVolumes {
                volumes: volumes.into_iter().map(hardware).collect(),
            }),
            software: self.software.map(|volumes| wire::SoftwareRaidVolumes {
                volumes: volumes.into_iter().map(SoftwareText::message).collect(),
            }),
        }
    }
}

impl SoftwareText {
    fn message(self) -> wire::SoftwareRaidVolume {
        wire::SoftwareRaidVolume {
            level: self.level,
            physical_disks: self.physical_disks.into_iter().map(HintsText::message).collect(),
            root_volume: self.root_volume,
            size_gibibytes: self.size_gibibytes,
        }
    }
}

impl LoginText {
    /// Returns the login; an empty record means none.
    fn message(self) -> Option<wire::CredentialsRecord> {
        let name = self.credentials.map(|reference| reference.name).filter(|name| !name.is_empty())?;
        Some(wire::CredentialsRecord { name, version: self.credentials_version })
    }
}

impl HistoryText {
    fn message(self) -> Option<wire::OperationHistory> {
        Some(wire::OperationHistory {
            register: Some(self.register.message()?),
            inspect: Some(self.inspect.message()?),
            provision: Some(self.provision.message()?),
            deprovision: Some(self.deprovision.message()?),
        })
    }
}

impl TimesText {
    fn message(self) -> Option<wire::OperationTimes> {
        let (start, end) = (moment(self.start)?, moment(self.end)?);
        Some(wire::OperationTimes { start: start.and_then(at), end: end.and_then(at) })
    }
}

impl ConditionText {
    fn message(self) -> Option<wire::HostCondition> {
        let since = moment(self.last_transition_time)?.and_then(at);
        Some(wire::HostCondition { r#type: self.r#type, status: self.status, reason: self.reason, since })
    }
}

/// Reads a time that may be unset; `None`: it cannot be read.
fn moment(text: Option<String>) -> Option<Option<Timestamp>> {
    text.map_or(Some(None), |text| bos_time::read(&text).map(Some))
}

fn inventory(hardware: &Value) -> wire::HostInventory {
    let architecture = hardware.pointer("/cpu/arch").and_then(Value::as_str).unwrap_or_default();
    wire::HostInventory { architecture: architecture.to_owned(), details_json: hardware.to_string() }
}
