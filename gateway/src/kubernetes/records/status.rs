//! Knowledge about hosts.

use proto::host::{
    CredentialsRecord, HostCondition, HostImage, HostInventory, HostStatus, OperationHistory, OperationTimes,
    ProvisioningStatus, WantedSystem,
};
use serde_json::{Map, Value};

use super::{
    json::{ShownMembers, count, flag, maybe_time, nested, objects, shown_time, text},
    spec::{
        read_hints, read_image, read_procedure, read_raid, shown_hints, shown_image, shown_procedure,
        shown_raid,
    },
};

/// Returns the knowledge as JSON. Members that are not optional in the contract are shown when they are empty, too.
pub(super) fn shown(status: HostStatus, namespace: &str) -> ShownMembers {
    let attempted = status.last_attempt.and_then(|system| system.image);
    let hardware =
        status.hardware.and_then(|inventory| serde_json::from_str::<Value>(&inventory.details_json).ok());
    ShownMembers::default()
        .always("operationalStatus", status.operational_status)
        .text("errorType", &status.error_type)
        .always("errorMessage", status.error_message)
        .always("errorCount", status.error_count)
        .always("provisioningFailCount", status.provisioning_fail_count)
        .maybe("lastAttemptedImage", attempted.map(shown_image))
        .maybe("lastUpdated", status.last_updated.map(shown_time))
        .text("hardwareProfile", &status.hardware_profile)
        .maybe("hardware", hardware)
        .always("poweredOn", status.powered_on)
        .always("provisioning", shown_provisioning(status.provisioning.unwrap_or_default()))
        .always("goodCredentials", shown_login(status.good_credentials, namespace))
        .always("triedCredentials", shown_login(status.tried_credentials, namespace))
        .always("operationHistory", shown_history(status.operation_history.unwrap_or_default()))
        .list("conditions", status.conditions.into_iter().map(shown_condition))
}

/// Reads knowledge that fits its schema.
pub(super) fn read(status: &Map<String, Value>) -> HostStatus {
    let attempted = nested(status, "lastAttemptedImage").map(read_image);
    HostStatus {
        operational_status: text(status, "operationalStatus"),
        error_type: text(status, "errorType"),
        error_message: text(status, "errorMessage"),
        error_count: count(status, "errorCount"),
        provisioning_fail_count: count(status, "provisioningFailCount"),
        last_attempt: attempted.map(|image| WantedSystem { image: Some(image), procedure: None }),
        last_updated: maybe_time(status, "lastUpdated"),
        hardware_profile: text(status, "hardwareProfile"),
        hardware: nested(status, "hardware").map(read_hardware),
        powered_on: flag(status, "poweredOn"),
        provisioning: nested(status, "provisioning").map(read_provisioning),
        good_credentials: nested(status, "goodCredentials").and_then(read_login),
        tried_credentials: nested(status, "triedCredentials").and_then(read_login),
        operation_history: nested(status, "operationHistory").map(read_history),
        conditions: objects(status, "conditions").map(read_condition).collect(),
    }
}

fn read_hardware(hardware: &Map<String, Value>) -> HostInventory {
    let architecture = nested(hardware, "cpu").map(|cpu| text(cpu, "arch")).unwrap_or_default();
    HostInventory { architecture, details_json: Value::Object(hardware.clone()).to_string() }
}

fn shown_provisioning(provisioning: ProvisioningStatus) -> ShownMembers {
    ShownMembers::default()
        .always("state", provisioning.state)
        .always("ID", provisioning.id)
        .always("image", shown_image(provisioning.image.unwrap_or_default()))
        .maybe("rootDeviceHints", provisioning.root_device_hints.map(shown_hints))
        .maybe("raid", provisioning.raid.map(shown_raid))
        .text("bootMode", &provisioning.boot_mode)
        .maybe("customDeploy", provisioning.custom_deploy.map(shown_procedure))
}

fn read_provisioning(provisioning: &Map<String, Value>) -> ProvisioningStatus {
    let image = nested(provisioning, "image").map(read_image);
    ProvisioningStatus {
        state: text(provisioning, "state"),
        id: text(provisioning, "ID"),
        image: image.filter(|image| *image != HostImage::default()),
        custom_deploy: nested(provisioning, "customDeploy").map(read_procedure),
        boot_mode: text(provisioning, "bootMode"),
        root_device_hints: nested(provisioning, "rootDeviceHints").map(read_hints),
        raid: nested(provisioning, "raid").map(read_raid),
    }
}

fn shown_login(login: Option<CredentialsRecord>, namespace: &str) -> ShownMembers {
    let Some(CredentialsRecord { name, version }) = login else { return ShownMembers::default() };
    let reference = ShownMembers::default().always("name", name).always("namespace", namespace);
    ShownMembers::default().always("credentials", reference).always("credentialsVersion", version)
}

fn read_login(login: &Map<String, Value>) -> Option<CredentialsRecord> {
    let name = text(nested(login, "credentials")?, "name");
    Some(CredentialsRecord { name, version: text(login, "credentialsVersion") })
}

fn shown_history(history: OperationHistory) -> ShownMembers {
    ShownMembers::default()
        .always("register", shown_times(history.register))
        .always("inspect", shown_times(history.inspect))
        .always("provision", shown_times(history.provision))
        .always("deprovision", shown_times(history.deprovision))
}

fn shown_times(times: Option<OperationTimes>) -> ShownMembers {
    let OperationTimes { start, end } = times.unwrap_or_default();
    ShownMembers::default().always("start", start.map(shown_time)).always("end", end.map(shown_time))
}

fn read_history(history: &Map<String, Value>) -> OperationHistory {
    OperationHistory {
        register: nested(history, "register").map(read_times),
        inspect: nested(history, "inspect").map(read_times),
        provision: nested(history, "provision").map(read_times),
        deprovision: nested(history, "deprovision").map(read_times),
    }
}

fn read_times(times: &Map<String, Value>) -> OperationTimes {
    OperationTimes { start: maybe_time(times, "start"), end: maybe_time(times, "end") }
}

fn shown_condition(condition: HostCondition) -> ShownMembers {
    ShownMembers::default()
        .always("type", condition.r#type)
        .always("status", condition.status)
        .always("reason", condition.reason)
        .always("message", "")
        .maybe("lastTransitionTime", condition.since.map(shown_time))
}

fn read_condition(condition: &Map<String, Value>) -> HostCondition {
    HostCondition {
        r#type: text(condition, "type"),
        status: text(condition, "status"),
        reason: text(condition, "reason"),
        since: maybe_time(condition, "lastTransitionTime"),
    }
}
