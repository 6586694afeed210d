//! Systems that a setup depends on.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, Settings, mesh::channel::LARGEST_MESSAGE, within};
use domain::{
    boot::session::IdleReason,
    core::{id::ComponentId, invalid::Invalid},
};
use proto::component::{
    AssignSessionRequest, AssignSessionResponse, report_service_client::ReportServiceClient,
};
use tokio::sync::Semaphore;

use crate::{
    dependency::{Dependency, DependencyError, DependencyOutage},
    images::{ImageDriver, ImageReader},
    inventories::InventoryReads,
    tenants::TenantLookup,
};

/// Deadline for the assignment of members: a hundred thousand members take a few seconds.
const ASSIGNMENT: Duration = Duration::from_secs(60);

/// Assignments that are under way concurrently. Each may need some ten megabytes on a large machine.
const ASSIGNMENTS: usize = 8;

/// Error of a session none of whose nodes is a component (BOS reference A.2).
const NO_COMPONENTS: &str = "All nodes found to act upon do not exist as BOS components";

/// Clients of the systems that a setup depends on. Clones share the connections.
#[derive(Clone)]
pub(crate) struct SetupPeers {
    pub(super) inventories: Arc<InventoryReads>,
    pub(super) images: Arc<ImageReader>,
    pub(super) tenants: Arc<TenantLookup>,
    registry: ReportServiceClient<Channel>,
    assignments: Arc<Semaphore>,
}

/// The members of an assignment, and the registry revision that includes them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AssignedMembers {
    pub(super) members: Vec<ComponentId>,
    pub(super) revision: u64,
}

impl SetupPeers {
    /// Creates the clients: the registry behind `registry`, and the other systems of the settings.
    pub(crate) fn new(
        registry: Channel,
        tenants: Arc<TenantLookup>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            inventories: Arc::new(InventoryReads::new(registry.clone())),
            images: Arc::new(ImageReader::new(ImageDriver::new(settings)?)),
            tenants,
            registry: ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
            assignments: Arc::new(Semaphore::new(ASSIGNMENTS)),
        })
    }

    /// Assigns the target states of all members in one transaction. A repeated assignment changes nothing.
    pub(super) async fn assign(
        &self,
        intent: &AssignSessionRequest,
    ) -> Result<AssignedMembers, DependencyError> {
        let _permit = self.assignments.acquire().await.expect("the semaphore is never closed");
        let mut registry = self.registry.clone();
        let answer = within(ASSIGNMENT, registry.assign_session(intent.clone())).await;
        let AssignSessionResponse { assigned_ids, revision } =
            answer.map_err(|status| DependencyError::from_mesh(Dependency::Registry, status))?.into_inner();
        if assigned_ids.is_empty() {
            let error = NO_COMPONENTS.to_owned();
            return Err(DependencyError::Idle { reason: IdleReason::NoComponents, error });
        }
        let members: Result<_, Invalid> = assigned_ids.iter().map(|id| ComponentId::parse(id)).collect();
        match members {
            Ok(members) => Ok(AssignedMembers { members, revision }),
            Err(invalid) => {
                let error = invalid.to_string();
                Err(DependencyError::Retryable(DependencyOutage { what: Dependency::Registry, error }))
            }
        }
    }
}
