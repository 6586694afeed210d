//! gRPC service of the rack: parse, call, map.

use std::sync::Arc;

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use proto::simulation::{
    ListRackHostsRequest, ListRackHostsResponse, ListRackOperationsRequest, ListRackOperationsResponse,
    OperateRackHostRequest, OperateRackHostResponse, RackOperation, rack_service_server::RackService,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::rack::{RackBlueprint, SimulatedRack};

/// Hosts in one message of a listing.
const PAGE: usize = 1000;

/// Serves a rack. Clones serve the same rack.
#[derive(Clone)]
pub struct RackRpc {
    rack: Arc<Mutex<SimulatedRack>>,
    start: Instant,
}

impl RackRpc {
    /// Serves the rack of `blueprint`, whose time begins now.
    pub fn new(blueprint: RackBlueprint) -> Self {
        Self { rack: Arc::new(Mutex::new(SimulatedRack::new(blueprint))), start: Instant::now() }
    }

    /// Loses the record of a host, as a backend that loses its database.
    pub fn forget(&self, name: &str) {
        self.rack.lock().forget(name);
    }

    /// Returns the latest operations on a host that were begun, in order.
    pub fn begun(&self, name: &str) -> Vec<RackOperation> {
        self.rack.lock().begun(name)
    }
}

#[tonic::async_trait]
impl RackService for RackRpc {
    type ListRackHostsStream = BoxStream<'static, Result<ListRackHostsResponse, Status>>;

    async fn list_rack_hosts(
        &self,
        _: Request<ListRackHostsRequest>,
    ) -> Result<Response<Self::ListRackHostsStream>, Status> {
        let hosts = self.rack.lock().list(self.start.elapsed());
        let pages: Vec<_> =
            hosts.chunks(PAGE).map(|hosts| Ok(ListRackHostsResponse { hosts: hosts.to_vec() })).collect();
        Ok(Response::new(stream::iter(pages).boxed()))
    }

    async fn operate_rack_host(
        &self,
        request: Request<OperateRackHostRequest>,
    ) -> Result<Response<OperateRackHostResponse>, Status> {
        let request = request.into_inner();
        if request.name.is_empty() || request.operation_id.is_empty() {
            return Err(Status::invalid_argument("name and operation_id must not be empty"));
        }
        if request.operation() == RackOperation::Unspecified {
            return Err(Status::invalid_argument("operation is not known"));
        }
        Ok(Response::new(self.rack.lock().operate(&request, self.start.elapsed())))
    }

    async fn list_rack_operations(
        &self,
        _: Request<ListRackOperationsRequest>,
    ) -> Result<Response<ListRackOperationsResponse>, Status> {
        Ok(Response::new(self.rack.lock().story()))
    }
}
