//! Histories of the kinds of one service, by the kind that a request names.

use domain::core::invalid::Invalid;
use proto::event::{
    EventFilter, ListEventsRequest, ListEventsResponse, WatchEventsRequest, WatchEventsResponse,
    event_service_server::{EventService, EventServiceServer},
};
use tonic::{Request, Response, Status, async_trait};

use super::{EventRpc, Ledger, Responses, Table};
use crate::{Fault, store::resource::Resource};

type KindHistory = Box<dyn EventService<WatchEventsStream = Responses<WatchEventsResponse>>>;

/// Events of the ledgers of one service over gRPC. A request that names no kind is about the first one.
#[derive(Default)]
pub struct EventHistories(Vec<(&'static str, KindHistory)>);

impl EventHistories {
    /// Adds the events of a ledger.
    #[must_use]
    pub fn with<T: Table>(mut self, ledger: &Ledger<T>) -> Self {
        self.0.push((T::Kind::KIND, Box::new(EventRpc(ledger.clone()))));
        self
    }

    /// Returns the service to be served.
    pub fn service(self) -> EventServiceServer<Self> {
        EventServiceServer::new(self)
    }

    fn of(&self, filter: Option<&EventFilter>) -> Result<&KindHistory, Fault> {
        let wanted = filter.map_or("", |filter| &filter.resource);
        let found = self.0.iter().find(|(kind, _)| wanted.is_empty() || *kind == wanted);
        let unknown = || Invalid::new("filter.resource", format!("'{wanted}' has no events here"));
        Ok(found.map(|(_, history)| history).ok_or_else(unknown)?)
    }
}

#[async_trait]
impl EventService for EventHistories {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        self.of(request.get_ref().filter.as_ref())?.list_events(request).await
    }

    type WatchEventsStream = Responses<WatchEventsResponse>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        self.of(request.get_ref().filter.as_ref())?.watch_events(request).await
    }
}
