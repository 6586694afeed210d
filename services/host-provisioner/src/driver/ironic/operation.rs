//! Operation on a host at its Ironic: the half that all kinds of operations share.

use domain::{core::time::Timestamp, host::address::BmcAddress};
use http::StatusCode;
use serde_json::Value;
use upstream::Failure;

use super::{
    answers::{SOON, Step, after_change, after_read, running, unreachable},
    api::IronicBackend,
    enrolment::node_name,
    fleet::IronicFleet,
    node::{IronicNode, OperationMark, ProvisionVerb},
    step::NodeSight,
};
use crate::driver::{HostTarget, WorkOrder};

/// Operation on a host.
pub(super) struct HostOperation<'a> {
    pub(super) fleet: &'a IronicFleet,
    pub(super) backend: &'a IronicBackend,
    /// Place of the backend in the fleet.
    pub(super) place: usize,
    pub(super) host: &'a HostTarget,
    pub(super) address: &'a BmcAddress,
    pub(super) order: &'a WorkOrder,
}

impl HostOperation<'_> {
    /// Name of the operation in marks.
    pub(super) fn name(&self) -> String {
        operation_name(self.order)
    }

    /// Reads the node of the host; `None`: the Ironic has none.
    pub(super) async fn node(&self) -> Step<Option<IronicNode>> {
        node_of(self.backend, self.host).await.map_err(after_read)
    }

    /// Returns the mark of a request that is about to be made.
    pub(super) fn mark(&self, left: &str, verb: ProvisionVerb, is_forced: bool) -> OperationMark {
        OperationMark { operation: self.name(), verb, left: left.to_owned(), is_forced }
    }

    /// Changes the node.
    pub(super) async fn change(&self, node: &IronicNode, changes: &[Value]) -> Step<IronicNode> {
        self.fleet.touch(&self.host.key);
        let password = self.host.login.as_ref().map(|login| login.password.clone());
        self.backend.change(node, changes, password).await.map_err(after_change)
    }

    /// Requests a change of the provision state.
    pub(super) async fn request(&self, node: &IronicNode, verb: ProvisionVerb, members: Value) -> Step<()> {
        self.fleet.touch(&self.host.key);
        let Err(failure) = self.backend.provision(node, verb, members).await else { return Ok(()) };
        if failure.status == Some(StatusCode::BAD_REQUEST) {
            self.await_workers().await?;
            if self.has_moved(node).await? {
                return Err(running(SOON, false));
            }
        }
        Err(after_change(failure))
    }

    /// Fails unless a process of the Ironic works on nodes: without one it refuses everything, which is no fault of the
    /// host.
    pub(super) async fn await_workers(&self) -> Step<()> {
        if self.backend.has_workers().await.map_err(after_read)? {
            return Ok(());
        }
        Err(unreachable(&format!("Ironic {} has no conductor that works", self.backend.name)))
    }

    /// Returns whether the node has left the state that the request was meant for.
    async fn has_moved(&self, node: &IronicNode) -> Step<bool> {
        let now = self.backend.node(&node.uuid).await.map_err(after_read)?;
        Ok(now.is_none_or(|now| now.state_changed_at != node.state_changed_at))
    }

    /// Returns the last failure of a node. Ironic drops it as soon as the power is found as expected, so the history is
    /// the second source (host reference Q3, Q4).
    pub(super) async fn failure(&self, node: &IronicNode) -> Step<String> {
        if !node.last_error.is_empty() {
            return Ok(node.last_error.clone());
        }
        let kept = self.backend.last_failure(node).await.map_err(after_read)?;
        Ok(kept.unwrap_or_else(|| format!("the node is in the state '{}'", node.state.word())))
    }
}

/// Reads the node of a host; `None`: the Ironic has none.
pub(super) async fn node_of(
    backend: &IronicBackend,
    host: &HostTarget,
) -> Result<Option<IronicNode>, Failure> {
    if !host.driver_id.is_empty() {
        let node = backend.node(&host.driver_id).await?;
        if node.is_some() {
            return Ok(node);
        }
    }
    backend.node(&node_name(host)).await
}

/// Returns the name of an operation in marks.
pub(super) fn operation_name(order: &WorkOrder) -> String {
    let Timestamp(since) = order.work.since;
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
