//! The node of one host at one Ironic.

use host_calls::HostTarget;
use http::StatusCode;
use serde_json::Value;
use upstream::Failure;

use crate::{
    IronicBackend,
    answers::{SOON, Step, after_change, after_read, running, unreachable},
    node::{IronicNode, ProvisionVerb},
};

/// Access to the node of a host.
#[derive(Clone, Copy)]
pub struct NodeAccess<'a> {
    /// Ironic of the host.
    pub backend: &'a IronicBackend,
    /// Host of the node.
    pub host: &'a HostTarget,
}

impl NodeAccess<'_> {
    /// Reads the node of the host; `None`: the Ironic has none.
    ///
    /// # Errors
    /// The answer about the operation, where the Ironic does not answer as it should.
    pub async fn node(&self) -> Step<Option<IronicNode>> {
        node_of(self.backend, self.host).await.map_err(after_read)
    }

    /// Requests a change of the provision state.
    ///
    /// # Errors
    /// The answer about the operation, where the request was not taken.
    pub async fn request(&self, node: &IronicNode, verb: ProvisionVerb, members: Value) -> Step<()> {
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
    ///
    /// # Errors
    /// The answer about the operation, where there is no such process.
    pub async fn await_workers(&self) -> Step<()> {
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
    ///
    /// # Errors
    /// The answer about the operation, where the Ironic does not answer as it should.
    pub async fn failure(&self, node: &IronicNode) -> Step<String> {
        if !node.last_error.is_empty() {
            return Ok(node.last_error.clone());
        }
        let kept = self.backend.last_failure(node).await.map_err(after_read)?;
        Ok(kept.unwrap_or_else(|| format!("the node is in the state '{}'", node.state.word())))
    }
}

/// Reads the node of a host; `None`: the Ironic has none.
///
/// # Errors
/// The Ironic does not answer as it should.
pub async fn node_of(backend: &IronicBackend, host: &HostTarget) -> Result<Option<IronicNode>, Failure> {
    if !host.driver_id.is_empty() {
        let node = backend.node(&host.driver_id).await?;
        if node.is_some() {
            return Ok(node);
        }
    }
    backend.node(&node_name(host)).await
}

/// Returns the name of the node of a host.
pub fn node_name(host: &HostTarget) -> String {
    format!("{}~{}", host.key.namespace, host.key.name)
}
