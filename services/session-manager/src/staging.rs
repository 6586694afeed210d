//! Applies the states that sessions staged for components (BOS reference 2.7, 5.14).
//!
//! The registry has the newest records and applies their staged states, in one transaction for any number of
//! components. This service knows the sessions. So the registry is called with the known sessions, returns the names
//! of unknown ones, and is called again; two calls suffice, unless another state is staged in between.

use std::time::Duration;

use chassis::{
    Channel, Fault, kinds::component::reference_from_wire, mesh::channel::LARGEST_MESSAGE, within,
};
use domain::{
    boot::session::staging::standing,
    core::{id::Tenant, invalid::Invalid, limits::MOST_APPLIED},
};
use proto::{
    component::{
        ApplyStagedRequest, ApplyStagedResponse, SessionReference, StagedSession,
        report_service_client::ReportServiceClient,
    },
    session as wire,
};

use crate::{
    convert::staging::staged_session, dependency::Dependency, shared::ManagerState, tenants::in_doubt,
};

/// Deadline of the registry for one answer. The gateway waits for half a minute in all.
const ANSWER: Duration = Duration::from_secs(20);

/// Most calls of the registry. Each further call means that another session has staged a state meanwhile.
const ROUNDS: usize = 5;

/// Client that applies staged states.
pub(crate) struct StagingService {
    shared: ManagerState,
    registry: ReportServiceClient<Channel>,
}

impl StagingService {
    /// Creates a client for the registry behind `channel`.
    pub(crate) fn new(shared: ManagerState, channel: Channel) -> Self {
        let registry = ReportServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { shared, registry }
    }

    /// Applies the staged states of components. Components outside `tenant` are ignored, whether they exist or not.
    ///
    /// # Errors
    /// [`Fault::NotFound`] if the tenant does not exist, also for an empty list; [`Fault::Unavailable`] if a
    /// dependency does not answer.
    pub(crate) async fn apply(
        &self,
        request: wire::ApplyStagedRequest,
    ) -> Result<wire::ApplyStagedResponse, Fault> {
        let wire::ApplyStagedRequest { tenant, component_ids } = request;
        let tenant = Tenant::parse(&tenant)?;
        if component_ids.len() > MOST_APPLIED {
            let reason = format!("has {} items but may have at most {MOST_APPLIED}", component_ids.len());
            return Err(Invalid::new("component_ids", reason).into());
        }
        let nodes = self.shared.tenants.nodes_in_time(&tenant).await?;
        if let Some(nodes) = nodes.as_deref()
            && component_ids.iter().any(|id| nodes.in_doubt.contains_key(id.as_str()))
        {
            return Err(Fault::unavailable(
                Dependency::Membership.text(),
                in_doubt(nodes).unwrap_or_default(),
            ));
        }
        let is_visible =
            |id: &String| nodes.as_ref().is_none_or(|nodes| nodes.elements.contains(id.as_str()));
        let (visible, mut ignored_ids): (Vec<_>, Vec<_>) = component_ids.into_iter().partition(is_visible);
        let applied = self.apply_visible(&tenant, visible).await?;
        tracing::info!(
            tenant = tenant.as_str(),
            succeeded = applied.succeeded_ids.len(),
            failed = applied.failed_ids.len(),
            "staged states applied"
        );
        ignored_ids.extend(applied.ignored_ids);
        let ApplyStagedResponse { succeeded_ids, failed_ids, .. } = applied;
        Ok(wire::ApplyStagedResponse { succeeded_ids, failed_ids, ignored_ids })
    }

    async fn apply_visible(&self, tenant: &Tenant, ids: Vec<String>) -> Result<ApplyStagedResponse, Fault> {
        let tenant_name = tenant.as_str().to_owned();
        let mut request = ApplyStagedRequest { ids, tenant: tenant_name, sessions: Vec::new() };
        for _ in 0..ROUNDS {
            let answer = within(ANSWER, self.registry.clone().apply_staged(request.clone())).await;
            let answer = answer.map_err(|status| from_registry(status.into()))?.into_inner();
            if answer.unknown.is_empty() {
                return Ok(answer);
            }
            // Another replica may have stored the session of the staged state.
            self.shared.sessions.fresh().await?;
            request.sessions.extend(self.look_up(tenant, answer.unknown)?);
        }
        Err(Fault::unavailable(Dependency::Registry.text(), "what is staged keeps changing"))
    }

    /// Resolves the references of staged states for `tenant`.
    fn look_up(
        &self,
        tenant: &Tenant,
        references: Vec<SessionReference>,
    ) -> Result<Vec<StagedSession>, Invalid> {
        let records = self.shared.sessions.view().all();
        let looked_up = references.into_iter().map(|wire| {
            let reference = reference_from_wire(wire.clone())?;
            let sessions = records.iter().map(|record| &record.session);
            Ok(staged_session(wire, standing(&reference, tenant, sessions)))
        });
        looked_up.collect()
    }
}

/// Names the registry in the fault: a connection does not know the service at its other end.
fn from_registry(fault: Fault) -> Fault {
    match fault {
        Fault::Unavailable { what, reason } if what == "service" => {
            Fault::unavailable(Dependency::Registry.text(), reason)
        }
        other => other,
    }
}
