//! Asks the registry what still keeps a session, before the session is completed.
//!
//! The copy of the components says which sessions may be over. It does not suffice to complete one: it may be of a history
//! that the registry or this service has lost, for example when a backup was restored under running services.

use std::time::Duration;

use chassis::{
    Channel, Fault,
    channel::LARGEST_MESSAGE,
    convert::{Interner, component},
};
use domain::{component::Component, session::Session};
use proto::component::{
    ComponentFilter, ListComponentsRequest, component_service_client::ComponentServiceClient,
};
use tokio::time::timeout;

/// How long the registry gets to list what keeps a session. That is little: a session that may be over has next to
/// nothing left.
const PATIENCE: Duration = Duration::from_secs(10);

/// The registry, which is asked. Clones share the connection.
#[derive(Clone)]
pub(crate) struct Confirmation {
    registry: ComponentServiceClient<Channel>,
}

impl Confirmation {
    /// Asks the registry behind that channel.
    pub(crate) fn new(registry: Channel) -> Self {
        let registry = ComponentServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        Self { registry }
    }

    /// Whether `keeps` is true of a component that the registry has enabled for `session`, or staged for it.
    ///
    /// # Errors
    /// When the registry does not say.
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
        let late = |_| Fault::unavailable("component registry", "it does not list the nodes of a session");
        for filter in [owned, staged] {
            if timeout(PATIENCE, self.has(filter, &keeps)).await.map_err(late)?? {
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
