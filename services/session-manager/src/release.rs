//! Releases components of a session, so that no controller acts on them for it any more.

use std::time::Duration;

use chassis::{Channel, Fault, mesh::channel::LARGEST_MESSAGE, within};
use domain::{boot::session::Session, core::id::ComponentId};
use proto::component::{
    self as wire, PatchComponentsRequest, PatchMany, Scope, component_service_client::ComponentServiceClient,
    patch_components_request::Selection,
};

/// Deadline of the registry for one answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Client of the registry. Clones share the connection.
#[derive(Clone)]
pub(crate) struct ComponentRelease {
    registry: ComponentServiceClient<Channel>,
}

impl ComponentRelease {
    /// Creates a client for the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let registry = ComponentServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { registry }
    }

    /// Disables those of `components` that the session still owns when the registry writes. Their `error` tells the
    /// reason.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(crate) async fn release(
        &self,
        session: &Session,
        components: Vec<ComponentId>,
        error: String,
    ) -> Result<(), Fault> {
        let patch =
            wire::Component { enabled: Some(false), error: Some(error), ..wire::Component::default() };
        let many = PatchMany {
            patch: Some(patch),
            session: session.name.clone(),
            session_tenant: Some(session.tenant.as_str().to_owned()),
            ..PatchMany::default()
        };
        let ids = components.iter().map(|id| id.as_str().to_owned()).collect();
        let request = PatchComponentsRequest {
            selection: Some(Selection::Many(many)),
            scope: Some(Scope { ids }),
            ..PatchComponentsRequest::default()
        };
        within(ANSWER, self.registry.clone().patch_components(request)).await?;
        Ok(())
    }
}
