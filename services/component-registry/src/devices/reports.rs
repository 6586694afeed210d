//! Reports of the mesh's own services about devices. A report about an earlier revision is stale.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{
    Fault,
    kinds::{
        Interner,
        device::{
            DeviceRecord,
            record::{self, owner, template_version},
            report::conditions_from_wire,
            spec, status,
        },
    },
    mesh::time,
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::{
    core::{event::Actor, invalid::Invalid, text::text, time::Timestamp},
    device::record::{
        Device,
        annotations::SpecHash,
        condition::DeviceCondition,
        name::FleetName,
        spec::DeviceSpec,
        status::DeviceStatus,
        version::{RenderedVersion, TemplateVersionName},
    },
};
use proto::device::{
    self as wire, ReportDeviceEnrolmentRequest, ReportDeviceEnrolmentResponse,
    ReportDeviceFleetDecisionsRequest, ReportDeviceFleetDecisionsResponse, ReportDeviceStatusesRequest,
    ReportDeviceStatusesResponse, device_report_service_server::DeviceReportService, device_rollout::Outcome,
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    ledgers::{DEVICE, DeviceLedgers, DeviceWriter},
    people::message,
};

/// Author of statuses that time and fleets bring.
const STATUS_EVALUATOR: Actor = Actor::Service("status-evaluator");

/// Author of ownership, rollouts and renderings.
const FLEET_MANAGER: Actor = Actor::Service("fleet-manager");

#[async_trait]
impl DeviceReportService for DeviceLedgers {
    async fn report_device_statuses(
        &self,
        request: Request<ReportDeviceStatusesRequest>,
    ) -> Result<Response<ReportDeviceStatusesResponse>, Status> {
        let decisions = request.into_inner().decisions.into_iter();
        let read = decisions.map(|decision| StatusReport::read(decision, &mut self.writer.texts.lock()));
        let reports = read.collect::<Result<Vec<_>, _>>().map_err(Fault::from)?;
        let writer = self.writer.clone();
        let note = move |draft: &mut Draft<'_, DeviceRecord>| {
            Ok(reports.into_iter().filter_map(|report| report.note(draft, &writer)).collect())
        };
        let (stale_names, revision) = self.devices.write_by(STATUS_EVALUATOR, note).await?;
        Ok(Response::new(ReportDeviceStatusesResponse { stale_names, revision }))
    }

    async fn report_device_fleet_decisions(
        &self,
        request: Request<ReportDeviceFleetDecisionsRequest>,
    ) -> Result<Response<ReportDeviceFleetDecisionsResponse>, Status> {
        let decisions = request.into_inner().decisions.into_iter();
        let read = decisions.map(|decision| FleetReport::read(decision, &mut self.writer.texts.lock()));
        let reports = read.collect::<Result<Vec<_>, _>>().map_err(Fault::from)?;
        let writer = self.writer.clone();
        let note = move |draft: &mut Draft<'_, DeviceRecord>| {
            Ok(reports.into_iter().filter_map(|report| report.note(draft, &writer)).collect())
        };
        let (stale_names, revision) = self.devices.write_by(FLEET_MANAGER, note).await?;
        Ok(Response::new(ReportDeviceFleetDecisionsResponse { stale_names, revision }))
    }

    async fn report_device_enrolment(
        &self,
        request: Request<ReportDeviceEnrolmentRequest>,
    ) -> Result<Response<ReportDeviceEnrolmentResponse>, Status> {
        let device = request.into_inner().device.unwrap_or_default();
        let device = record::from_wire(device, &mut self.writer.texts.lock()).map_err(Fault::from)?;
        let record = self.enrol(device).await?;
        Ok(Response::new(ReportDeviceEnrolmentResponse { device: message(&record) }))
    }
}

impl DeviceLedgers {
    async fn enrol(&self, device: Device) -> Result<Arc<DeviceRecord>, Fault> {
        let name = device.meta.name.shared();
        let (key, writer) = (Arc::clone(&name), self.writer.clone());
        let create = move |draft: &mut Draft<'_, DeviceRecord>| {
            if draft.has_row(&key) {
                return Err(Fault::AlreadyExists { kind: DEVICE.to_owned(), name: key.to_string() });
            }
            writer.put(draft, None, created(device));
            Ok(())
        };
        self.devices.write_by(FLEET_MANAGER, create).await?;
        self.stored(&name)
    }
}

/// Returns the new record of an enrolled device: its times and its generation are the registry's.
fn created(enrolled: Device) -> Device {
    let mut device = Device::new(enrolled.meta.name, clock::now());
    device.meta.labels = enrolled.meta.labels;
    device.meta.annotations.restore_mark = enrolled.meta.annotations.restore_mark;
    device.reported = enrolled.reported;
    device.status.lifecycle = enrolled.status.lifecycle;
    device
}

/// Returns the device that a report is about, unless it is another one by now.
fn known(draft: &Draft<'_, DeviceRecord>, name: &str, revision: u64) -> Option<Arc<DeviceRecord>> {
    draft.get(name).filter(|known| known.revision() == revision)
}

/// Statuses that the status evaluator decided.
struct StatusReport {
    name: String,
    revision: u64,
    status: DeviceStatus,
    /// Sight that the decision is about.
    sight: Option<Timestamp>,
}

impl StatusReport {
    fn read(decision: wire::DeviceStatusDecision, texts: &mut Interner) -> Result<Self, Invalid> {
        let wire::DeviceStatusDecision { name, revision, status, last_seen } = decision;
        let status = status::from_wire(status.unwrap_or_default(), texts)?;
        Ok(Self { name, revision, status, sight: last_seen.map(time::from_wire) })
    }

    /// Stores the statuses; returns the name of a device that they are not about any more.
    fn note(self, draft: &mut Draft<'_, DeviceRecord>, writer: &DeviceWriter) -> Option<String> {
        let Some(known) = known(draft, &self.name, self.revision) else { return Some(self.name) };
        // A sign of the agent that is not stored yet does not reach the evaluator before the disconnection is decided.
        if !writer.is_connected(&known.device, self.sight) && writer.is_connected_now(&known.device) {
            return Some(self.name);
        }
        let decided = Device { status: self.status, ..known.device.clone() };
        writer.put_as_decided(draft, Some(&known), decided);
        None
    }
}

/// Decisions of the fleet manager about a device.
struct FleetReport {
    name: String,
    revision: u64,
    /// `None`: the owner stays.
    owner: Option<Option<FleetName>>,
    conditions: Vec<DeviceCondition>,
    rollout: Option<FleetRollout>,
    rendering: Option<FleetRendering>,
}

struct FleetRollout {
    /// Spec that the template gives the device, or the reason why it gives none.
    outcome: Result<DeviceSpec, Arc<str>>,
    template_version: Option<TemplateVersionName>,
}

struct FleetRendering {
    hash: SpecHash,
    version: RenderedVersion,
    template_version: Option<TemplateVersionName>,
}

impl FleetReport {
    fn read(decision: wire::DeviceFleetDecision, texts: &mut Interner) -> Result<Self, Invalid> {
        let conditions = conditions_from_wire(decision.conditions, texts)?;
        if let Some(foreign) = conditions.iter().find(|condition| !condition.kind.is_of_service()) {
            let reason = format!("'{}' belongs to the agent", foreign.kind.word());
            return Err(Invalid::new("conditions.type", reason));
        }
        Ok(Self {
            name: decision.name,
            revision: decision.revision,
            owner: decision.owner_fleet.as_deref().map(owner).transpose()?,
            conditions,
            rollout: decision.rollout.map(|rollout| FleetRollout::read(rollout, texts)).transpose()?,
            rendering: decision.rendering.map(|rendering| FleetRendering::read(rendering, texts)),
        })
    }

    /// Stores the decisions; returns the name of a device that they are not about any more.
    fn note(self, draft: &mut Draft<'_, DeviceRecord>, writer: &DeviceWriter) -> Option<String> {
        let Some(known) = known(draft, &self.name, self.revision) else { return Some(self.name) };
        let mut device = known.device.clone();
        if let Some(owner) = self.owner {
            set_owner(&mut device, owner);
        }
        set_conditions(&mut device, self.conditions);
        if let Some(rollout) = self.rollout {
            rollout.apply(&mut device);
        }
        if let Some(rendering) = self.rendering {
            rendering.apply(&mut device);
        }
        writer.put(draft, Some(&known), device);
        None
    }
}

/// Versions of templates are names within one fleet, so they are forgotten with it (choice V11).
fn set_owner(device: &mut Device, owner: Option<FleetName>) {
    if device.meta.owner != owner {
        device.meta.owner = owner;
        let annotations = &mut device.meta.annotations;
        annotations.template_version = None;
        annotations.rendered_template_version = None;
        annotations.last_rollout_error = Arc::default();
    }
}

fn set_conditions(device: &mut Device, conditions: Vec<DeviceCondition>) {
    let mut by_kind: BTreeMap<_, _> =
        device.conditions.drain(..).map(|condition| (condition.kind.word(), condition)).collect();
    by_kind.extend(conditions.into_iter().map(|condition| (condition.kind.word(), condition)));
    device.conditions = by_kind.into_values().collect();
}

impl FleetRollout {
    fn read(rollout: wire::DeviceRollout, texts: &mut Interner) -> Result<Self, Invalid> {
        let outcome = match rollout.outcome {
            Some(Outcome::Spec(spec)) => Ok(spec::written(spec, texts)?),
            Some(Outcome::Error(error)) => Err(text(&error)),
            None => return Err(Invalid::new("rollout.outcome", "is missing")),
        };
        Ok(Self { outcome, template_version: template_version(&rollout.template_version, texts) })
    }

    fn apply(self, device: &mut Device) {
        match self.outcome {
            Err(error) => device.meta.annotations.last_rollout_error = error,
            Ok(spec) => {
                if device.spec != spec {
                    device.spec = spec;
                    device.meta.generation = device.meta.generation.saturating_add(1);
                }
                device.meta.annotations.template_version = self.template_version;
                device.meta.annotations.last_rollout_error = Arc::default();
            }
        }
    }
}

impl FleetRendering {
    fn read(rendering: wire::DeviceRendering, texts: &mut Interner) -> Self {
        Self {
            hash: SpecHash(rendering.spec_hash.into()),
            version: RenderedVersion(rendering.version),
            template_version: template_version(&rendering.template_version, texts),
        }
    }

    fn apply(self, device: &mut Device) {
        let annotations = &mut device.meta.annotations;
        annotations.rendered_spec_hash = Some(self.hash);
        annotations.rendered_version = Some(self.version);
        if self.template_version.is_some() {
            annotations.rendered_template_version = self.template_version;
        }
    }
}
