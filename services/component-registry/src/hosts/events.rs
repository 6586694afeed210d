//! Histories of components, hosts, companions and secrets over gRPC, by the kind that a request names.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::host::{DocumentRecord, HostRecord},
    store::{
        ledger::{EventRpc, Ledger, Responses},
        resource::Resource,
    },
};
use domain::{boot::component::Component, core::invalid::Invalid};
use proto::event::{
    EventFilter, ListEventsRequest, ListEventsResponse, WatchEventsRequest, WatchEventsResponse,
    event_service_server::EventService,
};
use tonic::{Request, Response, Status, async_trait};

use super::ledgers::HostLedgers;
use crate::store::{ComponentTable, DocumentTable, HostTable, SecretTable, StoredSecret};

/// Histories of the registry.
pub(crate) struct RegistryEvents {
    components: EventRpc<ComponentTable>,
    hosts: EventRpc<HostTable>,
    documents: EventRpc<DocumentTable>,
    secrets: EventRpc<SecretTable>,
}

/// Kind of resource that a request names.
enum HistoryKind {
    Component,
    Host,
    Document,
    Secret,
}

impl RegistryEvents {
    /// Serves the events of these ledgers.
    pub(crate) fn new(components: &Ledger<ComponentTable>, hosts: &Arc<HostLedgers>) -> Self {
        Self {
            components: components.events(),
            hosts: hosts.hosts.events(),
            documents: hosts.documents.events(),
            secrets: hosts.secrets.events(),
        }
    }
}

#[async_trait]
impl EventService for RegistryEvents {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        match kind(request.get_ref().filter.as_ref())? {
            HistoryKind::Component => self.components.list_events(request).await,
            HistoryKind::Host => self.hosts.list_events(request).await,
            HistoryKind::Document => self.documents.list_events(request).await,
            HistoryKind::Secret => self.secrets.list_events(request).await,
        }
    }

    type WatchEventsStream = Responses<WatchEventsResponse>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        match kind(request.get_ref().filter.as_ref())? {
            HistoryKind::Component => self.components.watch_events(request).await,
            HistoryKind::Host => self.hosts.watch_events(request).await,
            HistoryKind::Document => self.documents.watch_events(request).await,
            HistoryKind::Secret => self.secrets.watch_events(request).await,
        }
    }
}

fn kind(filter: Option<&EventFilter>) -> Result<HistoryKind, Fault> {
    match filter.map_or("", |filter| &filter.resource) {
        "" | Component::KIND => Ok(HistoryKind::Component),
        HostRecord::KIND => Ok(HistoryKind::Host),
        DocumentRecord::KIND => Ok(HistoryKind::Document),
        StoredSecret::KIND => Ok(HistoryKind::Secret),
        other => Err(Invalid::new("filter.resource", format!("'{other}' has no events here")).into()),
    }
}
