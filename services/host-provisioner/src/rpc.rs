//! Sights of hosts as a gRPC service: reads requests, reads the ledger, writes answers.

use chassis::store::ledger::{Ledger, Responses, Selection};
use proto::{
    Encoded,
    host::{
        ListHostSightsRequest, ListHostSightsResponse, WatchHostSightsRequest, WatchHostSightsResponse,
        host_sight_service_server::HostSightService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use crate::store::HostSightTable;

/// Sights in one message of a listing.
const PAGE: usize = 1000;

pub(crate) struct HostSightRpc {
    pub(crate) sights: Ledger<HostSightTable>,
}

#[async_trait]
impl HostSightService for HostSightRpc {
    type ListHostSightsStream = Responses<ListHostSightsResponse>;

    async fn list_host_sights(
        &self,
        _: Request<ListHostSightsRequest>,
    ) -> Result<Response<Self::ListHostSightsStream>, Status> {
        self.sights.list(Selection::of([]), PAGE).await
    }

    type WatchHostSightsStream = Responses<Encoded<WatchHostSightsResponse>>;

    async fn watch_host_sights(
        &self,
        request: Request<WatchHostSightsRequest>,
    ) -> Result<Response<Self::WatchHostSightsStream>, Status> {
        self.sights.serve_watch(request).await
    }
}
