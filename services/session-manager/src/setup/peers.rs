//! Who is asked and told during a setup.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, Settings, channel::LARGEST_MESSAGE, within};
use domain::{id::ComponentId, invalid::Invalid};
use proto::component::{
    AssignSessionRequest, AssignSessionResponse, report_service_client::ReportServiceClient,
};
use tokio::sync::Semaphore;

use super::REGISTRY;
use crate::{
    images::{Driver, Images},
    inventories::Inventories,
    setback::{Outage, Setback},
    tenants::Tenants,
};

/// How long the registry gets to assign members: a hundred thousand take it a few seconds.
const ASSIGNMENT: Duration = Duration::from_secs(60);

/// Assignments that are under way at the same time. Each may need some ten megabytes on a large machine.
const ASSIGNMENTS: usize = 8;

/// What a session comes to when none of its nodes is a component (BOS reference A.2).
const NO_COMPONENTS: &str = "All nodes found to act upon do not exist as BOS components";

/// Who is asked and told. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Peers {
    pub(super) inventories: Arc<Inventories>,
    pub(super) images: Arc<Images>,
    pub(super) tenants: Arc<Tenants>,
    registry: ReportServiceClient<Channel>,
    assignments: Arc<Semaphore>,
}

/// The members that a session got, and the revision of the registry that includes that.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) members: Vec<ComponentId>,
    pub(super) revision: u64,
}

impl Peers {
    /// The registry behind `registry`, and the others as the settings name them.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(registry: Channel, tenants: Arc<Tenants>, settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            inventories: Arc::new(Inventories::new(registry.clone())),
            images: Arc::new(Images::new(Driver::new(settings)?)),
            tenants,
            registry: ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
            assignments: Arc::new(Semaphore::new(ASSIGNMENTS)),
        })
    }

    /// Gives the members what they are to run, all or none. Doing it again changes nothing.
    pub(super) async fn assign(&self, intent: &AssignSessionRequest) -> Result<Assigned, Setback> {
        let _permit = self.assignments.acquire().await.expect("the semaphore is never closed");
        let mut registry = self.registry.clone();
        let answer = within(ASSIGNMENT, registry.assign_session(intent.clone())).await;
        let AssignSessionResponse { assigned_ids, revision } =
            answer.map_err(|status| Setback::from_mesh(REGISTRY, status))?.into_inner();
        if assigned_ids.is_empty() {
            return Err(Setback::Fail(NO_COMPONENTS.to_owned()));
        }
        let members = assigned_ids.iter().map(|id| ComponentId::parse(id)).collect::<Result<_, _>>();
        let odd = |invalid: Invalid| Setback::Wait(Outage { what: REGISTRY, error: invalid.to_string() });
        Ok(Assigned { members: members.map_err(odd)?, revision })
    }
}
