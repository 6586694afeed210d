//! Facts that agents report about the running system, its resources and its applications.

use std::collections::BTreeMap;

use proto::device as record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{ApplicationTypes, ApplicationWords, ResourceWords, Word};

/// Facts about a running system. Further facts are texts under any name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SystemInfo {
    /// CPU architecture.
    pub architecture: String,
    /// Id of the present boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Operating system.
    pub operating_system: String,
    /// Version of the agent.
    pub agent_version: String,
    /// Facts that an administrator lets the agent collect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_info: Option<BTreeMap<String, String>>,
    /// Further facts.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// Resources that may run short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResourceStatuses {
    /// Processor.
    pub cpu: Word<ResourceWords>,
    /// Memory.
    pub memory: Word<ResourceWords>,
    /// Disk.
    pub disk: Word<ResourceWords>,
}

/// Status of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationStatus {
    /// Name.
    pub name: String,
    /// Running workloads of all, such as `1/2`.
    pub ready: String,
    /// Restarts of all workloads.
    pub restarts: i64,
    /// Status.
    pub status: Word<ApplicationWords>,
    /// Whether the application is part of the system image.
    pub embedded: bool,
    /// Type.
    pub app_type: Word<ApplicationTypes>,
    /// User that runs the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<ApplicationVolume>>,
}

/// Volume of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ApplicationVolume {
    /// Name.
    pub name: String,
    /// Reference of its content.
    pub reference: String,
}

impl SystemInfo {
    pub(crate) fn shown(info: record::SystemInfo) -> Self {
        let record::SystemInfo {
            architecture,
            boot_id,
            operating_system,
            agent_version,
            custom_info,
            others,
        } = info;
        let custom_info = custom_info.map(|custom| custom.facts);
        Self { architecture, boot_id, operating_system, agent_version, custom_info, others }
    }

    pub(crate) fn into_record(self) -> record::SystemInfo {
        let Self { architecture, boot_id, operating_system, agent_version, custom_info, others } = self;
        let custom_info = custom_info.map(|facts| record::CustomInfo { facts });
        record::SystemInfo { architecture, boot_id, operating_system, agent_version, custom_info, others }
    }
}

impl ResourceStatuses {
    pub(super) fn shown(resources: record::DeviceResources) -> Self {
        let record::DeviceResources { cpu, memory, disk } = resources;
        Self { cpu: Word::status(cpu), memory: Word::status(memory), disk: Word::status(disk) }
    }

    pub(super) fn into_record(self) -> record::DeviceResources {
        let Self { cpu, memory, disk } = self;
        record::DeviceResources { cpu: cpu.into_text(), memory: memory.into_text(), disk: disk.into_text() }
    }
}

impl ApplicationStatus {
    pub(super) fn shown(application: record::ApplicationReport) -> Self {
        let record::ApplicationReport { name, status, ready, restarts, embedded, app_type, run_as, volumes } =
            application;
        let volumes = volumes.into_iter();
        let volumes: Vec<_> = volumes
            .map(|volume| ApplicationVolume { name: volume.name, reference: volume.reference })
            .collect();
        Self {
            name,
            ready,
            restarts,
            status: Word::status(status),
            embedded,
            app_type: Word::stored(app_type),
            run_as: Some(run_as).filter(|user| !user.is_empty()),
            volumes: Some(volumes).filter(|volumes| !volumes.is_empty()),
        }
    }

    pub(super) fn into_record(self) -> record::ApplicationReport {
        let volumes = self.volumes.unwrap_or_default().into_iter();
        let volumes = volumes
            .map(|volume| record::ApplicationVolume { name: volume.name, reference: volume.reference });
        record::ApplicationReport {
            name: self.name,
            status: self.status.into_text(),
            ready: self.ready,
            restarts: self.restarts,
            embedded: self.embedded,
            app_type: self.app_type.into_text(),
            run_as: self.run_as.unwrap_or_default(),
            volumes: volumes.collect(),
        }
    }
}
