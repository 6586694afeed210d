//! Hosts behind one or several Ironics (host reference 3.3).
//!
//! Each host has a node at one Ironic. What is under way shows at the node: a request is marked there before it is made,
//! so an operation is found again whatever was lost on this side. One listing of all nodes feeds the looks, and also
//! answers polls about nodes that Ironic works on.

mod deployment;
mod enrolment;
mod firmware;
mod fleet;
mod inventory;
mod media;
mod operation;
mod provisioning;
mod raid;
mod registration;
mod step;
mod view;

use std::sync::Arc;

use chassis::settings::HostOperationSettings;
use domain::host::{
    address::BmcAddress,
    record::call::{DriverAnswer, DriverCall},
};

use ironic::{
    NodeAccess,
    answers::{LATER, SOON, Step, done, running, unreachable},
};

use super::{BackendListing, BackendOutage, HostTarget, WorkOrder};

use self::{
    fleet::IronicFleet,
    operation::{HostOperation, operation_name, sight},
    provisioning::goal,
    step::{NodeStep, next_step},
};

/// Driver of hosts by Ironic. Clones share it.
#[derive(Clone)]
pub(crate) struct IronicHostDriver {
    fleet: Arc<IronicFleet>,
}

impl IronicHostDriver {
    /// Returns the driver of the settings. No Ironic is called yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        Ok(Self { fleet: Arc::new(IronicFleet::new(settings)?) })
    }

    pub(crate) async fn list(&self, hosts: &[Arc<HostTarget>]) -> Result<BackendListing, BackendOutage> {
        self.fleet.list(hosts).await
    }

    pub(crate) async fn carry_out(
        &self,
        host: &HostTarget,
        address: &BmcAddress,
        order: &WorkOrder,
    ) -> DriverAnswer {
        if let Some(answer) = self.answer_from_listing(host, order) {
            return answer;
        }
        let Some((place, backend)) = self.fleet.home(host) else {
            return unreachable("the Ironic of the host is not known yet, because one does not answer");
        };
        let _slot = backend.slots.acquire().await.expect("nobody closes the slots");
        let access = NodeAccess { backend, host };
        let operation = HostOperation { fleet: &self.fleet, access, place, address, order };
        let answer = carry_out(&operation).await.unwrap_or_else(|answer| answer);
        self.fleet.power_requests.forget_ended(&host.key, &answer);
        answer
    }

    /// Answers a poll about a node that Ironic works on without a call: the next listing shows the end of it.
    fn answer_from_listing(&self, host: &HostTarget, order: &WorkOrder) -> Option<DriverAnswer> {
        let node = self.fleet.listed(&host.key)?;
        let sight = sight(&node, &operation_name(order));
        match next_step(goal(order)?, sight) {
            NodeStep::Wait { is_short } => {
                Some(running(if is_short { SOON } else { LATER }, sight.begun.is_some()))
            }
            _ => None,
        }
    }
}

async fn carry_out(operation: &HostOperation<'_>) -> Step<DriverAnswer> {
    let call = &operation.order.work().call;
    match call {
        DriverCall::Register(call) => operation.register(call).await,
        DriverCall::PowerOn { .. } => operation.power().power_on().await,
        DriverCall::PowerOff { mode, .. } => operation.power().power_off(*mode).await,
        DriverCall::AttachDataImage { url } => operation.insert_media(url).await,
        DriverCall::DetachDataImage => operation.eject_media().await,
        DriverCall::Inspect(_)
        | DriverCall::Prepare(_)
        | DriverCall::Service(_)
        | DriverCall::Provision(_)
        | DriverCall::Adopt { .. }
        | DriverCall::Deprovision { .. }
        | DriverCall::Detach { .. }
        | DriverCall::Delete => match goal(operation.order) {
            Some(goal) => operation.lead(goal).await,
            None => Ok(done()),
        },
    }
}
