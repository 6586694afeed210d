//! The newest state of the component registry, for requests that have to see every write acknowledged before them.
//!
//! The mirrors of this service are behind the registry by as long as a stream takes, or longer where another replica of
//! the registry took the write. So whatever judges a request asks the registry once; requests at the same time share
//! the call.

use std::{sync::Arc, time::Duration};

use chassis::{
    Channel, Fault, channel::LARGEST_MESSAGE, convert::options::patch_from_wire, mirror::Mirror, within,
};
use domain::{component::Component, options::Options};
use proto::{
    component::{ListComponentsRequest, component_service_client::ComponentServiceClient},
    option::{GetOptionsRequest, options_service_client::OptionsServiceClient},
};
use tokio::time::timeout;
use tonic::Status;

use crate::{
    answers::Answers,
    setback::{REGISTRY, Setback},
};

/// How long the registry gets for one answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long the mirror may take to show what the registry has answered. It takes milliseconds unless the watch broke.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the registry for its newest state. Clones share the calls.
#[derive(Clone)]
pub(crate) struct Registry {
    channel: Channel,
    options: Arc<Answers<(), Options>>,
    revisions: Arc<Answers<(), Option<u64>>>,
}

impl Registry {
    /// The registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let (options, revisions) = (Answers::new(Duration::ZERO), Answers::new(Duration::ZERO));
        Self { channel, options: Arc::new(options), revisions: Arc::new(revisions) }
    }

    /// The options with every change that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the registry does not answer.
    pub(crate) async fn options(&self) -> Result<Options, Fault> {
        let ask = || async {
            let mut client = OptionsServiceClient::new(self.channel.clone());
            let answer = within(ANSWER, client.get_options(GetOptionsRequest {}));
            let record = answer.await.map_err(setback)?.into_inner().record.unwrap_or_default();
            let patch = patch_from_wire(record.options.unwrap_or_default());
            Options::default().apply(patch).map_err(|invalid| setback(Fault::Invalid(invalid).into()))
        };
        self.options.get((), ask).await.map_err(unavailable)
    }

    /// Waits until `components` shows every change that was acknowledged before this call.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the registry does not answer or the mirror does not get there in time.
    pub(crate) async fn shown_by(&self, components: &Mirror<Component>) -> Result<(), Fault> {
        let shown = async {
            match self.revisions.get((), || self.revision()).await.map_err(unavailable)? {
                Some(revision) => components.reached(revision).await,
                // An empty registry tells no revision, and the mirror may still hold what was deleted.
                None => components.catch_up().await,
            }
            Ok(())
        };
        let late = |_| Err(Fault::unavailable(REGISTRY, "its watch is behind"));
        timeout(ANSWER + PATIENCE, shown).await.unwrap_or_else(late)
    }

    /// The revision that the registry is at; `None`: it has no components. The shortest list tells it.
    async fn revision(&self) -> Result<Option<u64>, Setback> {
        let mut client =
            ComponentServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST_MESSAGE);
        let list = async {
            let request = ListComponentsRequest { page_size: 1, ..ListComponentsRequest::default() };
            client.list_components(request).await?.into_inner().message().await
        };
        Ok(within(ANSWER, list).await.map_err(setback)?.map(|first| first.revision))
    }
}

fn setback(status: Status) -> Setback {
    Setback::from_mesh(REGISTRY, status)
}

fn unavailable(setback: Setback) -> Fault {
    Fault::unavailable(REGISTRY, setback.text())
}
