//! Calls of the services that keep events.

use std::time::Duration;

use chassis::{
    Channel, Settings,
    kinds::history::{HistoryOwner, SESSION},
    mesh::channel::LARGEST_MESSAGE,
    within,
};
use futures_util::future::try_join_all;
use proto::event::{
    Event, EventFilter, ListEventsRequest, ListEventsResponse, event_service_client::EventServiceClient,
};
use tonic::Status;

use super::{
    merge::{PageDirection, SourcePage},
    wanted::HistoryRequest,
};

/// Deadline of each call, which may examine two thousand rows.
const DEADLINE: Duration = Duration::from_secs(10);

/// Most keys of a filter.
const MOST_KEYS: usize = 100;

type EventClient = EventServiceClient<Channel>;

/// Clients of the services that keep events. Clones share the connections.
#[derive(Clone)]
pub(crate) struct HistoryClients {
    registry: EventClient,
    sessions: EventClient,
    power: EventClient,
    fleets: EventClient,
}

impl HistoryClients {
    /// Creates the clients, which connect when they are used.
    ///
    /// # Errors
    /// An address in the settings is invalid.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let client = |url| -> anyhow::Result<EventClient> {
            let channel = chassis::channel(&settings.tls, url)?;
            Ok(EventClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE))
        };
        Ok(Self {
            registry: client(&settings.component_registry.url)?,
            sessions: client(&settings.session_manager.url)?,
            power: client(&settings.power_controller.url)?,
            fleets: client(&settings.fleet_manager.url)?,
        })
    }

    /// Returns the page of a history.
    ///
    /// # Errors
    /// The service does not answer.
    pub(super) async fn page(
        &self,
        direction: PageDirection,
        request: HistoryRequest,
    ) -> Result<SourcePage, Status> {
        let (kind, begin) = (request.kind, request.begin);
        let answer = self.list(kind.owner, request.message.clone()).await?;
        let mut page = match direction {
            PageDirection::Older => SourcePage::older(kind, begin, answer),
            PageDirection::Newer => SourcePage::newer(kind, begin.unwrap_or_default(), answer),
        };
        page.retain(|event| request.wants(event));
        Ok(page)
    }

    /// Returns the events of the creation of sessions.
    ///
    /// # Errors
    /// The session manager does not answer.
    pub(super) async fn creations(&self, sessions: &[String]) -> Result<Vec<Event>, Status> {
        let answers = sessions.chunks(MOST_KEYS).map(|keys| {
            let filter = EventFilter {
                keys: keys.to_vec(),
                kinds: vec!["created".to_owned()],
                resource: SESSION.to_owned(),
                ..EventFilter::default()
            };
            let request =
                ListEventsRequest { filter: Some(filter), newest_first: true, ..Default::default() };
            self.list(HistoryOwner::Sessions, request)
        });
        Ok(try_join_all(answers).await?.into_iter().flat_map(|answer| answer.events).collect())
    }

    async fn list(
        &self,
        owner: HistoryOwner,
        request: ListEventsRequest,
    ) -> Result<ListEventsResponse, Status> {
        let client = match owner {
            HistoryOwner::Registry => &self.registry,
            HistoryOwner::Sessions => &self.sessions,
            HistoryOwner::Power => &self.power,
            HistoryOwner::Fleets => &self.fleets,
        };
        let mut client = client.clone();
        let answer = within(DEADLINE, client.list_events(request)).await;
        answer.map(tonic::Response::into_inner).map_err(|status| named(owner, status))
    }
}

/// Returns the status with the name of the service: a connection does not know which one is at its other end.
fn named(owner: HistoryOwner, status: Status) -> Status {
    let part = match owner {
        HistoryOwner::Registry => "component registry",
        HistoryOwner::Sessions => "session manager",
        HistoryOwner::Power => "power controller",
        HistoryOwner::Fleets => "fleet manager",
    };
    match status.code() {
        tonic::Code::Unavailable | tonic::Code::DeadlineExceeded => {
            chassis::Fault::unavailable(part, status.message().to_owned()).into()
        }
        _ => status,
    }
}
