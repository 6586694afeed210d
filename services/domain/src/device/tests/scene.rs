//! Devices and evidence, in words.

use std::sync::Arc;

use crate::{
    core::{condition::ConditionStatus, time::Timestamp},
    device::{
        evaluation::{DISCONNECT_TIMEOUT, StatusDecision, StatusEvidence, evaluate},
        record::{
            Device,
            annotations::{RestoreMark, SpecHash},
            application::{ApplicationReport, ApplicationStatus, ApplicationType},
            condition::{ConditionKind, ConditionReason, DeviceCondition},
            name::{DeviceName, FleetName},
            report::{DeviceResources, IntegrityStatus, OsMode, ResourceStatus},
            spec::{DecommissionTarget, OsTarget},
            status::{ApplicationsStatus, LifecycleStatus, StatusEntry, SummaryStatus, UpdatedStatus},
            version::{FleetVersion, RenderedVersion, TemplateVersionName},
        },
        report::StatusDocument,
    },
};

/// Present time of every scene.
pub(super) const NOW: Timestamp = Timestamp(1_000_000_000);

/// Device with the evidence about it.
#[derive(Debug, Clone)]
pub(in crate::device) struct Scene {
    pub device: Device,
    pub fleet: Option<FleetVersion>,
    pub last_seen: Option<Timestamp>,
}

impl Scene {
    pub(in crate::device) fn evidence(&self) -> StatusEvidence<'_> {
        let fleet = self.fleet.as_ref();
        StatusEvidence { fleet, last_seen: self.last_seen, timeout: DISCONNECT_TIMEOUT, now: NOW }
    }

    pub(super) fn evaluate(&self) -> StatusDecision {
        evaluate(&self.device, &self.evidence())
    }

    /// Status document of an agent that reports what the scene says.
    pub(super) fn document(self) -> StatusDocument {
        StatusDocument { report: self.device.reported, lifecycle: self.device.status.lifecycle }
    }
}

/// Returns a device, last seen now, with each word applied. A word is a name and values with colons between; `_` is a
/// space.
pub(in crate::device) fn scene(words: &str) -> Scene {
    let device = Device::new(DeviceName::parse("d1").expect("a name"), NOW);
    let mut scene = Scene { device, fleet: None, last_seen: Some(NOW) };
    for word in words.split_whitespace() {
        apply(&mut scene, word);
    }
    scene
}

pub(super) fn apply(scene: &mut Scene, word: &str) {
    let parts: Vec<_> = word.split(':').map(|part| part.replace('_', " ")).collect();
    let value = |at: usize| parts.get(at).map_or("", |part| part.as_str());
    let (name, first, second) = (value(0), value(1), value(2));
    let is_known = apply_evidence(scene, name, first)
        || apply_annotation(&mut scene.device, name, first)
        || apply_report(&mut scene.device, name, first, second)
        || apply_record(&mut scene.device, name, first, second);
    assert!(is_known, "no word of the tests: {word}");
}

fn apply_evidence(scene: &mut Scene, name: &str, value: &str) -> bool {
    match name {
        "unseen" => scene.last_seen = None,
        "seen" => scene.last_seen = Some(seconds_ago(value)),
        "fleet" => {
            let (fleet, version) = value.split_once('@').unwrap_or((value, ""));
            let template_version = Some(version).filter(|version| !version.is_empty()).map(template_version);
            scene.fleet = Some(FleetVersion { fleet: fleet_name(fleet), template_version });
        }
        _ => return false,
    }
    true
}

fn apply_annotation(device: &mut Device, name: &str, value: &str) -> bool {
    let annotations = &mut device.meta.annotations;
    match name {
        "awaiting" => annotations.restore_mark = Some(RestoreMark::AwaitingReconnect),
        "paused" => annotations.restore_mark = Some(RestoreMark::ConflictPaused),
        "rendered" => {
            annotations.rendered_version = Some(RenderedVersion(value.parse().expect("a number")));
        }
        "hash" => annotations.rendered_spec_hash = Some(SpecHash(value.into())),
        "template" => annotations.template_version = Some(template_version(value)),
        "rendered-template" => annotations.rendered_template_version = Some(template_version(value)),
        "rollout-error" => annotations.last_rollout_error = value.into(),
        _ => return false,
    }
    true
}

fn apply_report(device: &mut Device, name: &str, first: &str, second: &str) -> bool {
    let report = &mut device.reported;
    match name {
        "runs" => report.rendered_version = first.into(),
        "cpu" => report.resources.cpu = resource(first),
        "memory" => report.resources.memory = resource(first),
        "disk" => report.resources.disk = resource(first),
        "healthy" => {
            let status = ResourceStatus::Healthy;
            report.resources = DeviceResources { cpu: status, memory: status, disk: status };
        }
        "app" => report.applications.push(application(first, second)),
        "verdict" => report.applications_verdict = StatusEntry::new(applications(first), second),
        "os" => report.os.image = first.into(),
        "digest" => report.os.image_digest = first.into(),
        "mode" => report.os_mode = Some(OsMode::from_word(first).expect("a mode")),
        "integrity" => {
            report.integrity.overall.status = IntegrityStatus::from_word(first).expect("a status");
        }
        "updating" => set(device, ConditionKind::Updating, ConditionStatus::True, first, second),
        "not-updating" => set(device, ConditionKind::Updating, ConditionStatus::False, first, second),
        "end" => set(device, ConditionKind::Decommissioning, ConditionStatus::True, first, ""),
        "no-end" => set(device, ConditionKind::Decommissioning, ConditionStatus::False, first, ""),
        _ => return false,
    }
    true
}

fn apply_record(device: &mut Device, name: &str, first: &str, second: &str) -> bool {
    match name {
        "owner" => device.meta.owner = Some(fleet_name(first)),
        "label" => {
            device.meta.labels.insert(first.into(), second.into());
        }
        "image" => device.spec.os = Some(OsTarget::Image(first.into())),
        "item" => {
            let text: Arc<str> = first.into();
            let (catalog, item, version) = (Arc::clone(&text), Arc::clone(&text), text);
            device.spec.os = Some(OsTarget::CatalogItem { catalog, item, version });
        }
        "document" => device.spec.document = first.into(),
        "decommissioning" => device.spec.decommissioning = Some(DecommissionTarget::Unenroll),
        "spec-valid" => set(device, ConditionKind::SpecValid, ConditionStatus::True, "Valid", ""),
        "several" => {
            set(device, ConditionKind::MultipleOwners, ConditionStatus::True, "MultipleOwners", first)
        }
        "spec-invalid" => set(device, ConditionKind::SpecValid, ConditionStatus::False, "Invalid", first),
        "summary" => device.status.summary.status = SummaryStatus::from_word(first).expect("a summary"),
        "updated" => device.status.updated.status = UpdatedStatus::from_word(first).expect("a status"),
        "applications" => device.status.applications.status = applications(first),
        "lifecycle" => {
            device.status.lifecycle.status = LifecycleStatus::from_word(first).expect("a stage");
        }
        _ => return false,
    }
    true
}

fn set(device: &mut Device, kind: ConditionKind, status: ConditionStatus, reason: &str, message: &str) {
    let is_of_service = kind.is_of_service();
    let conditions = if is_of_service { &mut device.conditions } else { &mut device.reported.conditions };
    conditions.retain(|known| known.kind != kind);
    conditions.push(DeviceCondition {
        kind,
        status,
        reason: ConditionReason::from_word(reason),
        message: message.into(),
        since: NOW,
        observed_generation: None,
    });
}

fn application(name: &str, status: &str) -> ApplicationReport {
    ApplicationReport {
        name: name.into(),
        status: ApplicationStatus::from_word(status).expect("a status"),
        ready: "1/1".into(),
        restarts: 0,
        embedded: false,
        app_type: ApplicationType::Compose,
        run_as: "".into(),
        volumes: Vec::new(),
    }
}

fn applications(word: &str) -> ApplicationsStatus {
    ApplicationsStatus::from_word(word).expect("a status of applications")
}

fn resource(word: &str) -> ResourceStatus {
    ResourceStatus::from_word(word).expect("a status of a resource")
}

pub(super) fn fleet_name(name: &str) -> FleetName {
    FleetName::parse(name).expect("a name")
}

fn template_version(name: &str) -> TemplateVersionName {
    TemplateVersionName(name.into())
}

/// A negative number of seconds is a time ahead.
fn seconds_ago(text: &str) -> Timestamp {
    let seconds: f64 = text.parse().expect("seconds");
    Timestamp(NOW.0 - (seconds * 1_000.0) as i64)
}
