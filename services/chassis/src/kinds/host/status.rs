//! Knowledge about hosts, both ways.

use std::sync::Arc;

use domain::{
    core::{
        condition::{Condition, ConditionStatus},
        invalid::Invalid,
    },
    host::record::{
        condition::{ConditionKind, ConditionReason},
        history::{OperationHistory, OperationTimes},
        spec::BootMode,
        state::HostState,
        status::{
            CredentialsRecord, HostError, HostErrorKind, HostInventory, HostStatus, OperationalStatus,
            ProvisioningStatus, WantedSystem,
        },
    },
};
use proto::host as wire;

use super::{
    spec,
    value::{at, owned, shared, time, time_or_none, word, word_or_none},
};

type HostCondition = Condition<ConditionKind, ConditionReason>;

/// Reads a status.
///
/// # Errors
/// A word is unknown; the error names the field.
pub fn from_wire(status: &wire::HostStatus) -> Result<HostStatus, Invalid> {
    let operational = OperationalStatus::from_word;
    let kind = word_or_none("status.errorType", &status.error_type, HostErrorKind::from_word)?;
    let conditions: Result<_, _> = status.conditions.iter().map(condition).collect();
    Ok(HostStatus {
        operational: word("status.operationalStatus", &status.operational_status, operational)?,
        error: kind.map(|kind| HostError { kind, text: status.error_message.as_str().into() }),
        error_count: status.error_count,
        provisioning_fail_count: status.provisioning_fail_count,
        last_attempt: status.last_attempt.as_ref().map(system),
        last_updated: time_or_none(status.last_updated),
        hardware_profile: status.hardware_profile.as_str().into(),
        hardware: status.hardware.as_ref().map(inventory),
        powered_on: status.powered_on,
        provisioning: status.provisioning.as_ref().map(provisioning).transpose()?.unwrap_or_default(),
        good_credentials: status.good_credentials.as_ref().map(credentials),
        tried_credentials: status.tried_credentials.as_ref().map(credentials),
        history: status.operation_history.as_ref().map(history).unwrap_or_default(),
        conditions: conditions?,
    })
}

/// Returns a status for the wire.
pub fn to_wire(status: &HostStatus) -> wire::HostStatus {
    let error = status.error.as_ref();
    wire::HostStatus {
        operational_status: status.operational.word().to_owned(),
        error_type: error.map_or("", |error| error.kind.word()).to_owned(),
        error_message: error.map_or_else(String::new, |error| error.text.to_string()),
        error_count: status.error_count,
        provisioning_fail_count: status.provisioning_fail_count,
        last_attempt: status.last_attempt.as_ref().map(system_to_wire),
        last_updated: status.last_updated.and_then(at),
        hardware_profile: status.hardware_profile.to_string(),
        hardware: status.hardware.as_deref().map(inventory_to_wire),
        powered_on: status.powered_on,
        provisioning: Some(provisioning_to_wire(&status.provisioning)),
        good_credentials: status.good_credentials.as_ref().map(credentials_to_wire),
        tried_credentials: status.tried_credentials.as_ref().map(credentials_to_wire),
        operation_history: Some(history_to_wire(&status.history)),
        conditions: status.conditions.iter().map(condition_to_wire).collect(),
    }
}

/// Reads a system.
pub fn system(system: &wire::WantedSystem) -> WantedSystem {
    WantedSystem {
        image: system.image.as_ref().map(spec::image),
        procedure: shared(system.procedure.as_ref()),
    }
}

/// Returns a system for the wire.
pub fn system_to_wire(system: &WantedSystem) -> wire::WantedSystem {
    wire::WantedSystem {
        image: system.image.as_ref().map(spec::image_to_wire),
        procedure: owned(system.procedure.as_ref()),
    }
}

/// Reads an inventory.
pub fn inventory(inventory: &wire::HostInventory) -> Arc<HostInventory> {
    Arc::new(HostInventory {
        architecture: inventory.architecture.as_str().into(),
        details: inventory.details_json.as_str().into(),
    })
}

/// Returns an inventory for the wire.
pub fn inventory_to_wire(inventory: &HostInventory) -> wire::HostInventory {
    wire::HostInventory {
        architecture: inventory.architecture.to_string(),
        details_json: inventory.details.to_string(),
    }
}

fn provisioning(status: &wire::ProvisioningStatus) -> Result<ProvisioningStatus, Invalid> {
    Ok(ProvisioningStatus {
        state: word("status.provisioning.state", &status.state, HostState::from_word)?,
        id: status.id.as_str().into(),
        image: status.image.as_ref().map(spec::image),
        custom_deploy: status.custom_deploy.as_ref().map(|custom| custom.method.as_str().into()),
        boot_mode: word_or_none("status.provisioning.bootMode", &status.boot_mode, BootMode::from_word)?,
        root_device_hints: status.root_device_hints.as_ref().map(spec::hints),
        raid: status.raid.as_ref().map(spec::raid),
    })
}

fn provisioning_to_wire(status: &ProvisioningStatus) -> wire::ProvisioningStatus {
    let custom = |method: &Arc<str>| wire::CustomDeploy { method: method.to_string() };
    wire::ProvisioningStatus {
        state: status.state.word().to_owned(),
        id: status.id.to_string(),
        image: status.image.as_ref().map(spec::image_to_wire),
        custom_deploy: status.custom_deploy.as_ref().map(custom),
        boot_mode: status.boot_mode.map_or("", BootMode::word).to_owned(),
        root_device_hints: status.root_device_hints.as_ref().map(spec::hints_to_wire),
        raid: status.raid.as_ref().map(spec::raid_to_wire),
    }
}

fn credentials(record: &wire::CredentialsRecord) -> CredentialsRecord {
    CredentialsRecord { name: record.name.as_str().into(), version: record.version.as_str().into() }
}

fn credentials_to_wire(record: &CredentialsRecord) -> wire::CredentialsRecord {
    wire::CredentialsRecord { name: record.name.to_string(), version: record.version.to_string() }
}

fn history(history: &wire::OperationHistory) -> OperationHistory {
    let times = |times: Option<&wire::OperationTimes>| {
        times.map_or_else(OperationTimes::default, |times| OperationTimes {
            start: time_or_none(times.start),
            end: time_or_none(times.end),
        })
    };
    OperationHistory {
        register: times(history.register.as_ref()),
        inspect: times(history.inspect.as_ref()),
        provision: times(history.provision.as_ref()),
        deprovision: times(history.deprovision.as_ref()),
    }
}

fn history_to_wire(history: &OperationHistory) -> wire::OperationHistory {
    let times = |times: OperationTimes| {
        Some(wire::OperationTimes { start: times.start.and_then(at), end: times.end.and_then(at) })
    };
    wire::OperationHistory {
        register: times(history.register),
        inspect: times(history.inspect),
        provision: times(history.provision),
        deprovision: times(history.deprovision),
    }
}

fn condition(condition: &wire::HostCondition) -> Result<HostCondition, Invalid> {
    Ok(Condition {
        kind: word("status.conditions.type", &condition.r#type, ConditionKind::from_word)?,
        status: word("status.conditions.status", &condition.status, ConditionStatus::from_word)?,
        reason: word("status.conditions.reason", &condition.reason, ConditionReason::from_word)?,
        since: time(condition.since),
    })
}

fn condition_to_wire(condition: &HostCondition) -> wire::HostCondition {
    wire::HostCondition {
        r#type: condition.kind.word().to_owned(),
        status: condition.status.word().to_owned(),
        reason: condition.reason.word().to_owned(),
        since: at(condition.since),
    }
}
