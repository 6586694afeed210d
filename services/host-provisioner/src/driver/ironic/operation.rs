//! Operation on a host at its Ironic: the half that all kinds of operations share.

use domain::{core::time::Timestamp, host::address::BmcAddress};
use serde_json::Value;

use ironic::{
    NodeAccess, NodePowerCall,
    answers::{Step, after_change},
    node::{IronicNode, OperationMark, ProvisionVerb},
};

use super::{fleet::IronicFleet, step::NodeSight};
use crate::driver::WorkOrder;

/// Operation on a host.
pub(super) struct HostOperation<'a> {
    pub(super) fleet: &'a IronicFleet,
    /// Node of the host at its Ironic.
    pub(super) access: NodeAccess<'a>,
    /// Place of the backend in the fleet.
    pub(super) place: usize,
    pub(super) address: &'a BmcAddress,
    pub(super) order: &'a WorkOrder,
}

impl HostOperation<'_> {
    /// Name of the operation in marks.
    pub(super) fn name(&self) -> String {
        operation_name(self.order)
    }

    /// Returns the power call of the operation, which may change the node.
    pub(super) fn power(&self) -> NodePowerCall<'_> {
        let NodeAccess { backend, host } = self.access;
        self.fleet.touch(&host.key);
        let IronicFleet { power_requests: requests, soft_off, .. } = self.fleet;
        NodePowerCall { requests, backend, host, order: &self.order.call, soft_off: *soft_off }
    }

    /// Returns the mark of a request that is about to be made.
    pub(super) fn mark(&self, left: &str, verb: ProvisionVerb, is_forced: bool) -> OperationMark {
        OperationMark { operation: self.name(), verb, left: left.to_owned(), is_forced }
    }

    /// Changes the node.
    pub(super) async fn change(&self, node: &IronicNode, changes: &[Value]) -> Step<IronicNode> {
        self.fleet.touch(&self.access.host.key);
        let password = self.access.host.login.as_ref().map(|login| login.password.clone());
        self.access.backend.change(node, changes, password).await.map_err(after_change)
    }

    /// Requests a change of the provision state.
    pub(super) async fn request(&self, node: &IronicNode, verb: ProvisionVerb, members: Value) -> Step<()> {
        self.fleet.touch(&self.access.host.key);
        self.access.request(node, verb, members).await
    }
}

/// Returns the name of an operation in marks.
pub(super) fn operation_name(order: &WorkOrder) -> String {
    let Timestamp(since) = order.work().since;
    format!("{}-{since}", order.kind().word())
}

/// Returns a node as the rules of the operation of that name see it.
pub(super) fn sight(node: &IronicNode, operation: &str) -> NodeSight {
    NodeSight {
        state: node.state,
        begun: node.begun_by(operation).map(|mark| mark.verb),
        was_forced: node.mark_of(operation).is_some_and(|mark| mark.is_forced),
        is_maintained: node.is_maintained,
        has_power_fault: node.has_power_fault,
    }
}
