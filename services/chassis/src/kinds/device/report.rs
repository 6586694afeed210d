//! Reports of agents.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    core::{condition::ConditionStatus, invalid::Invalid, text::text, time::Timestamp},
    device::{
        record::{
            application::{ApplicationReport, ApplicationStatus, ApplicationType},
            condition::{ConditionKind, ConditionReason, DeviceCondition},
            report::{
                AgentReport, DeviceIntegrity, DeviceResources, IntegrityStatus, OsMode, ResourceStatus,
                RunningOs, SystemFacts, SystemInfo,
            },
            status::{ApplicationsStatus, StatusEntry},
        },
        report::{StatusDocument, check_size},
    },
};
use proto::{Message as _, device as wire};

use super::{
    status,
    words::{self, entry, read_entry, read_or_default},
};
use crate::{kinds::Interner, mesh::time};

/// Reads a status document.
///
/// # Errors
/// Names the field that no report can have, or says that the document is too large.
pub fn document_from_wire(
    document: wire::StatusDocument,
    texts: &mut Interner,
) -> Result<StatusDocument, Invalid> {
    check_size("status", document.encoded_len())?;
    Ok(StatusDocument {
        report: from_wire(document.report.unwrap_or_default(), texts)?,
        lifecycle: status::lifecycle(document.lifecycle, texts)?,
    })
}

/// Reads a report.
///
/// # Errors
/// Names the field that no report can have.
pub fn from_wire(report: wire::AgentReport, texts: &mut Interner) -> Result<AgentReport, Invalid> {
    let verdict = report.applications_verdict;
    // Of exactly that length, because a collected vector would have room to grow.
    let mut applications = Vec::with_capacity(report.applications.len());
    for application in report.applications {
        applications.push(application_from_wire(application, texts)?);
    }
    let os = report.os.unwrap_or_default();
    Ok(AgentReport {
        conditions: conditions_from_wire(report.conditions, texts)?,
        system_info: Arc::new(system_info_from_wire(report.system_info.unwrap_or_default(), texts)),
        applications,
        applications_verdict: read_entry(
            "status.applicationsSummary",
            verdict,
            ApplicationsStatus::from_word,
            texts,
        )?,
        resources: resources_from_wire(&report.resources.unwrap_or_default())?,
        integrity: integrity_from_wire(report.integrity.unwrap_or_default(), texts)?,
        rendered_version: texts.share(&report.rendered_version),
        os: RunningOs { image: texts.share(&os.image), image_digest: texts.share(&os.image_digest) },
        systemd: texts.share(&report.systemd_json),
        os_mode: os_mode_from_wire(&report.os_mode)?,
    })
}

/// Returns the message of a report.
pub fn to_wire(report: &AgentReport) -> wire::AgentReport {
    wire::AgentReport {
        conditions: report.conditions.iter().map(condition_to_wire).collect(),
        system_info: Some(system_info_to_wire(&report.system_info)),
        applications: report.applications.iter().map(application_to_wire).collect(),
        applications_verdict: Some(entry(&report.applications_verdict, ApplicationsStatus::word)),
        resources: Some(resources_to_wire(report.resources)),
        integrity: Some(integrity_to_wire(&report.integrity)),
        rendered_version: report.rendered_version.to_string(),
        os: Some(wire::RunningOs {
            image: report.os.image.to_string(),
            image_digest: report.os.image_digest.to_string(),
        }),
        systemd_json: report.systemd.to_string(),
        os_mode: report.os_mode.map_or("", OsMode::word).to_owned(),
    }
}

/// Field of conditions.
const CONDITIONS: &str = "status.conditions";

/// Reads conditions.
///
/// # Errors
/// A kind or a truth is not known, or two conditions are of one kind.
pub fn conditions_from_wire(
    conditions: Vec<wire::DeviceCondition>,
    texts: &mut Interner,
) -> Result<Vec<DeviceCondition>, Invalid> {
    let mut read: Vec<DeviceCondition> = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let condition = condition_from_wire(condition, texts)?;
        if read.iter().any(|known| known.kind == condition.kind) {
            let reason = format!("has two conditions of the type '{}'", condition.kind.word());
            return Err(Invalid::new(CONDITIONS, reason));
        }
        read.push(condition);
    }
    Ok(read)
}

fn condition_from_wire(
    condition: wire::DeviceCondition,
    texts: &mut Interner,
) -> Result<DeviceCondition, Invalid> {
    let reason = match ConditionReason::from_word(&condition.reason) {
        ConditionReason::Other(word) => ConditionReason::Other(texts.share(&word)),
        known => known,
    };
    Ok(DeviceCondition {
        kind: words::read("status.conditions.type", &condition.r#type, ConditionKind::from_word)?,
        status: words::read("status.conditions.status", &condition.status, ConditionStatus::from_word)?,
        reason,
        message: texts.share(&condition.message),
        since: condition.since.map_or(Timestamp(0), time::from_wire),
        observed_generation: condition.observed_generation,
    })
}

/// Returns the message of a condition.
pub fn condition_to_wire(condition: &DeviceCondition) -> wire::DeviceCondition {
    wire::DeviceCondition {
        r#type: condition.kind.word().to_owned(),
        status: condition.status.word().to_owned(),
        reason: condition.reason.word().to_owned(),
        message: condition.message.to_string(),
        since: Some(time::to_wire(condition.since)),
        observed_generation: condition.observed_generation,
    }
}

fn facts(facts: BTreeMap<String, String>, texts: &mut Interner) -> SystemFacts {
    facts.into_iter().map(|(name, value)| (texts.share(&name), texts.share(&value))).collect()
}

fn facts_to_wire(facts: &SystemFacts) -> BTreeMap<String, String> {
    facts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Reads the manner in which a system is updated; `None`: not reported.
///
/// # Errors
/// The word is not known.
pub fn os_mode_from_wire(mode: &str) -> Result<Option<OsMode>, Invalid> {
    let read = || words::read("status.capabilities.osMode", mode, OsMode::from_word);
    (!mode.is_empty()).then(read).transpose()
}

/// Reads the facts about a running system.
pub fn system_info_from_wire(info: wire::SystemInfo, texts: &mut Interner) -> SystemInfo {
    SystemInfo {
        architecture: texts.share(&info.architecture),
        // No other device has it.
        boot_id: text(&info.boot_id),
        operating_system: texts.share(&info.operating_system),
        agent_version: texts.share(&info.agent_version),
        custom_info: info.custom_info.map(|custom| facts(custom.facts, texts)),
        others: facts(info.others, texts),
    }
}

/// Returns the message of the facts about a running system.
pub fn system_info_to_wire(info: &SystemInfo) -> wire::SystemInfo {
    wire::SystemInfo {
        architecture: info.architecture.to_string(),
        boot_id: info.boot_id.to_string(),
        operating_system: info.operating_system.to_string(),
        agent_version: info.agent_version.to_string(),
        custom_info: info
            .custom_info
            .as_ref()
            .map(|custom| wire::CustomInfo { facts: facts_to_wire(custom) }),
        others: facts_to_wire(&info.others),
    }
}

fn application_from_wire(
    application: wire::ApplicationReport,
    texts: &mut Interner,
) -> Result<ApplicationReport, Invalid> {
    let status = match application.status.as_str() {
        "" => ApplicationStatus::Unknown,
        word => words::read("status.applications.status", word, ApplicationStatus::from_word)?,
    };
    let app_type =
        words::read("status.applications.appType", &application.app_type, ApplicationType::from_word)?;
    let volumes = application.volumes.into_iter();
    let volumes = volumes.map(|volume| (texts.share(&volume.name), texts.share(&volume.reference))).collect();
    Ok(ApplicationReport {
        name: texts.share(&application.name),
        status,
        ready: texts.share(&application.ready),
        restarts: application.restarts,
        embedded: application.embedded,
        app_type,
        run_as: texts.share(&application.run_as),
        volumes,
    })
}

fn application_to_wire(application: &ApplicationReport) -> wire::ApplicationReport {
    let volumes = application.volumes.iter().map(|(name, reference)| wire::ApplicationVolume {
        name: name.to_string(),
        reference: reference.to_string(),
    });
    wire::ApplicationReport {
        name: application.name.to_string(),
        status: application.status.word().to_owned(),
        ready: application.ready.to_string(),
        restarts: application.restarts,
        embedded: application.embedded,
        app_type: application.app_type.word().to_owned(),
        run_as: application.run_as.to_string(),
        volumes: volumes.collect(),
    }
}

fn resources_from_wire(resources: &wire::DeviceResources) -> Result<DeviceResources, Invalid> {
    let read = |field: &str, word: &str| {
        read_or_default(field, word, ResourceStatus::from_word)
            .map_err(|invalid| invalid.within("status.resources"))
    };
    Ok(DeviceResources {
        cpu: read("cpu", &resources.cpu)?,
        memory: read("memory", &resources.memory)?,
        disk: read("disk", &resources.disk)?,
    })
}

fn resources_to_wire(resources: DeviceResources) -> wire::DeviceResources {
    wire::DeviceResources {
        cpu: resources.cpu.word().to_owned(),
        memory: resources.memory.word().to_owned(),
        disk: resources.disk.word().to_owned(),
    }
}

fn integrity_from_wire(
    integrity: wire::DeviceIntegrity,
    texts: &mut Interner,
) -> Result<DeviceIntegrity, Invalid> {
    let mut read = |field: &str, entry: Option<wire::StatusEntry>| {
        read_entry(field, entry, IntegrityStatus::from_word, texts)
    };
    let overall = read("status.integrity", integrity.overall)?;
    let mut part = |field: &str, entry: Option<wire::StatusEntry>| {
        entry.map(|entry| read(field, Some(entry))).transpose()
    };
    Ok(DeviceIntegrity {
        overall,
        last_verified: integrity.last_verified.map(time::from_wire),
        device_identity: part("status.integrity.deviceIdentity", integrity.device_identity)?,
        tpm: part("status.integrity.tpm", integrity.tpm)?,
    })
}

fn integrity_to_wire(integrity: &DeviceIntegrity) -> wire::DeviceIntegrity {
    let part = |part: &Option<StatusEntry<IntegrityStatus>>| {
        part.as_ref().map(|part| entry(part, IntegrityStatus::word))
    };
    wire::DeviceIntegrity {
        overall: Some(entry(&integrity.overall, IntegrityStatus::word)),
        last_verified: integrity.last_verified.map(time::to_wire),
        device_identity: part(&integrity.device_identity),
        tpm: part(&integrity.tpm),
    }
}
