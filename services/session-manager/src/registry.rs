//! The newest state of the component registry, for requests that must see every earlier acknowledged write.
//!
//! Mirrors lag behind the registry by the delay of a stream, or longer if another replica of the registry took the
//! write. So each request calls the registry once; concurrent requests share the call.

use std::{sync::Arc, time::Duration};

use chassis::{
    Channel, Fault,
    kinds::options::patch_from_wire,
    mesh::channel::LARGEST_MESSAGE,
    observe::{mirror::Mirror, single_flight::SingleFlight},
    within,
};
use domain::boot::{bos::options::Options, component::Component};
use proto::{
    component::{ListComponentsRequest, component_service_client::ComponentServiceClient},
    option::{GetOptionsRequest, options_service_client::OptionsServiceClient},
};
use tokio::time::timeout;
use tonic::Status;

use crate::dependency::{Dependency, DependencyError};

/// Deadline of the registry for one answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Longest wait for the mirror to reach the revision of the registry. The mirror needs milliseconds unless its watch
/// broke.
const PATIENCE: Duration = Duration::from_secs(5);

/// Client for the newest state of the registry. Clones share the calls.
#[derive(Clone)]
pub(crate) struct RegistryClient {
    channel: Channel,
    options: Arc<SingleFlight<(), Options, DependencyError>>,
    revisions: Arc<SingleFlight<(), Option<u64>, DependencyError>>,
}

impl RegistryClient {
    /// Creates a client for the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let options = SingleFlight::new(Duration::ZERO, DependencyError::is_outage);
        let revisions = SingleFlight::new(Duration::ZERO, DependencyError::is_outage);
        Self { channel, options: Arc::new(options), revisions: Arc::new(revisions) }
    }

    /// Returns the options with every change that was acknowledged before this call.
    pub(crate) async fn options(&self) -> Result<Options, Fault> {
        let ask = || async {
            let mut client = OptionsServiceClient::new(self.channel.clone());
            let answer = within(ANSWER, client.get_options(GetOptionsRequest {}));
            let record = answer.await.map_err(registry_error)?.into_inner().record.unwrap_or_default();
            let patch = patch_from_wire(record.options.unwrap_or_default());
            Options::default().apply(patch).map_err(|invalid| registry_error(Fault::Invalid(invalid).into()))
        };
        self.options.get((), ask).await.map_err(unavailable)
    }

    /// Waits until `components` includes every change that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] if the registry does not answer or the mirror does not catch up in time.
    pub(crate) async fn wait_for_mirror(&self, components: &Mirror<Component>) -> Result<(), Fault> {
        let shown = async {
            match self.revisions.get((), || self.revision()).await.map_err(unavailable)? {
                Some(revision) => components.reached(revision).await,
                // An empty registry of an earlier version returns no revision, and the mirror may still hold deleted
                // components.
                None => components.catch_up().await,
            }
            Ok(())
        };
        match timeout(ANSWER + PATIENCE, shown).await {
            Ok(shown) => shown,
            Err(_) => Err(Fault::unavailable(Dependency::Registry.text(), "its watch is behind")),
        }
    }

    /// Returns the current revision of the registry; `None`: no components. The shortest list contains it.
    async fn revision(&self) -> Result<Option<u64>, DependencyError> {
        let mut client =
            ComponentServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST_MESSAGE);
        let list = async {
            let request = ListComponentsRequest { page_size: 1, ..ListComponentsRequest::default() };
            client.list_components(request).await?.into_inner().message().await
        };
        Ok(within(ANSWER, list).await.map_err(registry_error)?.map(|first| first.revision))
    }
}

fn registry_error(status: Status) -> DependencyError {
    DependencyError::from_mesh(Dependency::Registry, status)
}

fn unavailable(error: DependencyError) -> Fault {
    Fault::unavailable(Dependency::Registry.text(), error.text())
}
