//! Confirms with the registry that no component keeps a session, before the session is completed.
//!
//! The mirror of components shows which sessions may be over. The mirror alone does not suffice: it may show a
//! history that the registry or this service has lost, for example after a backup was restored under running
//! services.

use std::time::Duration;

use chassis::{
    Channel, Fault,
    kinds::{Interner, component},
    mesh::channel::LARGEST_MESSAGE,
};
use domain::boot::{component::Component, session::Session};
use proto::component::{
    ComponentFilter, ListComponentsRequest, component_service_client::ComponentServiceClient,
};
use tokio::time::timeout;

/// Deadline of the registry for listing the components that keep a session. It is short, since a session that may be
/// over has next to none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Client of the registry. Clones share the connection.
#[derive(Clone)]
pub(crate) struct RegistryConfirmation {
    registry: ComponentServiceClient<Channel>,
}

impl RegistryConfirmation {
    /// Creates a client for the registry behind `registry`.
    pub(crate) fn new(registry: Channel) -> Self {
        let registry = ComponentServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        Self { registry }
    }

    /// Returns whether `keeps` holds for a component that the registry has enabled for `session`, or staged for it.
    ///
    /// # Errors
    /// The registry does not answer.
    pub(crate) async fn is_kept(
        &self,
        session: &Session,
        keeps: impl Fn(&Component) -> bool,
    ) -> Result<bool, Fault> {
        let owned = ComponentFilter {
            enabled: Some(true),
            session: Some(session.name.clone()),
            ..ComponentFilter::default()
        };
        let staged =
            ComponentFilter { staged_session: Some(session.name.clone()), ..ComponentFilter::default() };
        for filter in [owned, staged] {
            let Ok(found) = timeout(PATIENCE, self.has(filter, &keeps)).await else {
                let reason = "it does not list the nodes of a session";
                return Err(Fault::unavailable("component registry", reason));
            };
            if found? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn has(&self, filter: ComponentFilter, keeps: impl Fn(&Component) -> bool) -> Result<bool, Fault> {
        let request = ListComponentsRequest { filter: Some(filter), ..ListComponentsRequest::default() };
        let mut pages = self.registry.clone().list_components(request).await?.into_inner();
        let mut interner = Interner::default();
        while let Some(page) = pages.message().await? {
            for one in page.components {
                if keeps(&component::from_wire(one, &mut interner).map_err(Fault::Invalid)?) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
