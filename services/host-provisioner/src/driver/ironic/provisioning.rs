//! Operations that lead a node through provision states.

use std::sync::Arc;

use domain::host::record::{
    call::{DoneFacts, DriverAnswer, DriverCall, InspectCall, PrepareCall, ProvisionCall},
    spec::InspectionMode,
    state::HostState,
    status::HostInventory,
};
use http::StatusCode;
use serde_json::{Value, json};

use ironic::{
    answers::{LATER, SOON, Step, after_change, after_read, busy, done, failed, running},
    node::{IronicNode, OperationMark, ProvisionVerb},
};

use super::{
    deployment::{config_drive, deploy_interface, instance_info, procedure_steps},
    enrolment::{raid_interface, set, set_capabilities},
    firmware, inventory,
    operation::{HostOperation, sight},
    raid::{RaidChange, raid_change},
    step::{NodeGoal, NodeStep, next_step},
};
use crate::driver::WorkOrder;

/// API version from which a node is serviced without a ramdisk.
const SERVICE_WITHOUT_RAMDISK: u32 = 108;

/// Settings and members of the request that begins an operation.
#[derive(Default)]
struct OperationRequest {
    changes: Vec<Value>,
    members: Value,
    raid: Option<RaidChange>,
}

impl HostOperation<'_> {
    /// Leads the node towards the goal of the operation, or returns how far it is.
    pub(super) async fn lead(&self, goal: NodeGoal) -> Step<DriverAnswer> {
        let Some(node) = self.access.node().await? else {
            let is_release = matches!(goal, NodeGoal::Release { .. });
            return Ok(if is_release { done() } else { DriverAnswer::NotRegistered });
        };
        let sight = sight(&node, &self.name());
        match next_step(goal, sight) {
            NodeStep::Done => self.finish(&node).await,
            NodeStep::Failed => Err(failed(&self.access.failure(&node).await?)),
            NodeStep::Begin(verb) => self.begin(&node, verb).await,
            step => self.take(&node, step, sight.begun.is_some()).await,
        }
    }

    /// Takes a step that all operations have in common.
    pub(super) async fn take(&self, node: &IronicNode, step: NodeStep, started: bool) -> Step<DriverAnswer> {
        match step {
            NodeStep::Done => Ok(done()),
            NodeStep::NotRegistered => Ok(DriverAnswer::NotRegistered),
            NodeStep::Wait { is_short: true } => Ok(running(SOON, started)),
            NodeStep::Wait { is_short: false } => Ok(running(LATER, started)),
            NodeStep::Begin(verb) | NodeStep::Lead(verb) => {
                self.request(node, verb, json!({})).await?;
                Ok(running(SOON, started))
            }
            NodeStep::Abandon(verb) => {
                let node = self.change(node, &[OperationMark::removal()]).await?;
                self.request(&node, verb, json!({})).await?;
                Ok(running(SOON, true))
            }
            NodeStep::EndMaintenance => {
                self.access.backend.end_maintenance(node).await.map_err(after_change)?;
                Ok(running(SOON, started))
            }
            NodeStep::BeginMaintenance => {
                self.access.backend.begin_maintenance(node).await.map_err(after_change)?;
                Ok(running(SOON, started))
            }
            NodeStep::Remove => self.remove(node).await,
            NodeStep::Failed => Err(failed(&self.access.failure(node).await?)),
            NodeStep::Stuck => {
                let (state, kind) = (node.state.word(), self.order.kind().word());
                Ok(busy(&format!("the node is in the state '{state}', which does not go with '{kind}'")))
            }
            NodeStep::Faulty => Ok(busy("Ironic cannot reach the BMC, and takes no requests for the node")),
        }
    }

    /// Returns the answer about an operation that is over.
    async fn finish(&self, node: &IronicNode) -> Step<DriverAnswer> {
        if !matches!(self.order.work().call, DriverCall::Inspect(_)) {
            return Ok(done());
        }
        let found = self.access.backend.inventory(node).await.map_err(after_read)?;
        let boot_mac = self.access.host.boot_mac.as_deref();
        let details = found.map_or_else(
            || inventory::of_properties(node, boot_mac),
            |found| inventory::of_inspection(&found),
        );
        Ok(inspected(&details))
    }

    async fn begin(&self, node: &IronicNode, verb: ProvisionVerb) -> Step<DriverAnswer> {
        if let (ProvisionVerb::Inspect, DriverCall::Inspect(call)) = (verb, &self.order.work().call)
            && !call.refresh
            && !call.restart
            && let Some(known) = self.access.backend.inventory(node).await.map_err(after_read)?
        {
            return Ok(inspected(&inventory::of_inspection(&known)));
        }
        let version = self.access.backend.version().await.map_err(after_read)?;
        let OperationRequest { mut changes, members, raid } = self.beginning(node, verb, version)?;
        changes.push(self.mark(&node.state_changed_at, verb, self.is_forced()).patch());
        let node = self.change(node, &changes).await?;
        if let Some(raid) = raid {
            self.access.backend.set_raid(&node, &raid.target).await.map_err(after_change)?;
        }
        self.request(&node, verb, members).await?;
        Ok(running(SOON, true))
    }

    fn is_forced(&self) -> bool {
        match &self.order.work().call {
            DriverCall::Inspect(call) => call.force_reboot,
            DriverCall::Provision(call) => call.force_reboot,
            DriverCall::Register(_)
            | DriverCall::Prepare(_)
            | DriverCall::Service(_)
            | DriverCall::Adopt { .. }
            | DriverCall::Deprovision { .. }
            | DriverCall::PowerOn { .. }
            | DriverCall::PowerOff { .. }
            | DriverCall::Detach { .. }
            | DriverCall::Delete
            | DriverCall::AttachDataImage { .. }
            | DriverCall::DetachDataImage => false,
        }
    }

    fn beginning(&self, node: &IronicNode, verb: ProvisionVerb, version: u32) -> Step<OperationRequest> {
        let none = || Ok(OperationRequest { members: json!({}), ..OperationRequest::default() });
        match (&self.order.work().call, verb) {
            (DriverCall::Inspect(call), ProvisionVerb::Inspect) => self.inspection(node, call),
            (DriverCall::Prepare(call), ProvisionVerb::Clean) => Ok(self.cleaning(call)),
            (DriverCall::Service(_), ProvisionVerb::Service) => Ok(self.servicing(version)),
            (DriverCall::Provision(call), ProvisionVerb::Active) => self.deployment(node, call),
            (DriverCall::Deprovision { cleaning_disabled, .. }, _) => {
                let changes = vec![set("automated_clean", &json!(!cleaning_disabled))];
                Ok(OperationRequest { changes, members: json!({}), raid: None })
            }
            (DriverCall::Adopt { .. }, _) => {
                Ok(OperationRequest { changes: self.reservation(), members: json!({}), raid: None })
            }
            _ => none(),
        }
    }

    fn inspection(&self, node: &IronicNode, call: &InspectCall) -> Step<OperationRequest> {
        let mut changes = vec![set_capabilities(&node.properties, call.boot_mode)];
        if self.fleet.site.hardware.is_none() {
            let interface = match call.mode {
                InspectionMode::Agent | InspectionMode::Disabled => "agent",
                InspectionMode::Fast if self.address.family.is_redfish() => "redfish",
                InspectionMode::Fast => return Err(failed("the BMC reports no inventory")),
            };
            changes.push(set("inspect_interface", &interface.into()));
        }
        Ok(OperationRequest { changes, members: json!({}), raid: None })
    }

    fn cleaning(&self, call: &PrepareCall) -> OperationRequest {
        let raid = raid_change(call);
        let mut changes = Vec::new();
        if let Some(raid) = raid.as_ref().filter(|_| self.fleet.site.hardware.is_none()) {
            let interface = if raid.is_software { "agent" } else { raid_interface(self.address.family) };
            changes.push(set("raid_interface", &interface.into()));
        }
        let mut steps = raid.as_ref().map(|raid| raid.steps.clone()).unwrap_or_default();
        steps.extend(firmware::steps(&self.order.firmware));
        let mut members = json!({ "clean_steps": steps });
        if raid.is_none() && self.can_do_without_ramdisk() {
            members["disable_ramdisk"] = true.into();
        }
        OperationRequest { changes, members, raid }
    }

    fn servicing(&self, version: u32) -> OperationRequest {
        let mut members = json!({"service_steps": firmware::steps(&self.order.firmware)});
        if version >= SERVICE_WITHOUT_RAMDISK && self.can_do_without_ramdisk() {
            members["disable_ramdisk"] = true.into();
        }
        OperationRequest { members, ..OperationRequest::default() }
    }

    /// Returns whether the BMC alone changes the firmware, which spares the host the boot of a ramdisk. Ironic changes
    /// settings so, and no versions.
    fn can_do_without_ramdisk(&self) -> bool {
        self.order.firmware.wishes.updates.is_empty()
            && self.address.family.is_redfish()
            && self.fleet.site.hardware.is_none()
    }

    fn deployment(&self, node: &IronicNode, call: &ProvisionCall) -> Step<OperationRequest> {
        let image = call.system.image.as_ref();
        let procedure = call.system.procedure.as_deref();
        let mut changes = self.reservation();
        changes.push(set_capabilities(&node.properties, call.boot_mode));
        changes.push(set("instance_info", &instance_info(image, call.boot_mode, call.hints.as_ref())));
        if self.fleet.site.hardware.is_none() {
            changes.push(match deploy_interface(image, procedure.is_some()) {
                Some(interface) => set("deploy_interface", &interface.into()),
                None => json!({"op": "remove", "path": "/deploy_interface"}),
            });
        }
        let mut members = json!({});
        let drive = config_drive(self.access.host, image, &self.order.documents);
        if let Some(drive) = drive.map_err(|reason| failed(&reason))? {
            members["configdrive"] = drive;
        }
        if let Some(procedure) = procedure.filter(|_| self.fleet.site.hardware.is_none()) {
            members["deploy_steps"] = procedure_steps(procedure);
        }
        Ok(OperationRequest { changes, members, raid: None })
    }

    /// Returns the change that reserves the node for the host, whose record others may look for by its id.
    fn reservation(&self) -> Vec<Value> {
        is_uuid(&self.access.host.uid)
            .then(|| set("instance_uuid", &json!(&*self.access.host.uid)))
            .into_iter()
            .collect()
    }

    async fn remove(&self, node: &IronicNode) -> Step<DriverAnswer> {
        if node.has_instance && !node.is_maintained {
            self.change(node, &[json!({"op": "remove", "path": "/instance_uuid"})]).await?;
        }
        match self.access.backend.delete(node).await {
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(done()),
            removed => removed.map(|()| done()).map_err(after_change),
        }
    }
}

/// Returns the goal of an operation; `None`: its calls lead a node through no states.
pub(super) fn goal(order: &WorkOrder) -> Option<NodeGoal> {
    Some(match &order.work().call {
        DriverCall::Register(call) => {
            NodeGoal::Register { is_leaving: call.state == HostState::PoweringOffBeforeDelete }
        }
        DriverCall::Inspect(call) => NodeGoal::Inspect { force: call.force_reboot },
        DriverCall::Prepare(call) => {
            NodeGoal::Prepare { has_steps: raid_change(call).is_some() || !order.firmware.is_empty() }
        }
        DriverCall::Service(_) => NodeGoal::Service { has_steps: !order.firmware.is_empty() },
        DriverCall::Provision(call) => NodeGoal::Provision { force: call.force_reboot },
        DriverCall::Deprovision { .. } => NodeGoal::Deprovision,
        DriverCall::Adopt { state, .. } => {
            NodeGoal::Adopt { is_leaving: *state == HostState::Deprovisioning }
        }
        DriverCall::Detach { force } => NodeGoal::Release { force: *force },
        // Nothing else ends the wait of a host that is to go.
        DriverCall::Delete => NodeGoal::Release { force: true },
        DriverCall::PowerOn { .. }
        | DriverCall::PowerOff { .. }
        | DriverCall::AttachDataImage { .. }
        | DriverCall::DetachDataImage => return None,
    })
}

fn inspected(details: &Value) -> DriverAnswer {
    let inventory = Some(Arc::new(HostInventory {
        architecture: details["cpu"]["arch"].as_str().unwrap_or_default().into(),
        details: details.to_string().into(),
    }));
    DriverAnswer::Done(DoneFacts { inventory, started: true, ..DoneFacts::default() })
}

/// Returns whether the text has the form of a UUID, which Ironic insists on.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}
