//! Power calls of hosts as a gRPC service: reads requests, reads the ledger, writes answers.

use chassis::store::ledger::{Ledger, Responses, Selection};
use proto::{
    Encoded,
    power::{
        ListHostPowersRequest, ListHostPowersResponse, WatchHostPowersRequest, WatchHostPowersResponse,
        host_power_service_server::HostPowerService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use crate::store::HostPowerTable;

/// Records in one message of a listing.
const PAGE: usize = 1000;

pub(crate) struct HostPowerRpc {
    pub(crate) powers: Ledger<HostPowerTable>,
}

#[async_trait]
impl HostPowerService for HostPowerRpc {
    type ListHostPowersStream = Responses<ListHostPowersResponse>;

    async fn list_host_powers(
        &self,
        _: Request<ListHostPowersRequest>,
    ) -> Result<Response<Self::ListHostPowersStream>, Status> {
        self.powers.list(Selection::of([]), PAGE).await
    }

    type WatchHostPowersStream = Responses<Encoded<WatchHostPowersResponse>>;

    async fn watch_host_powers(
        &self,
        request: Request<WatchHostPowersRequest>,
    ) -> Result<Response<Self::WatchHostPowersStream>, Status> {
        self.powers.serve_watch(request).await
    }
}
