//! gRPC service of the rack: parse, call, map.

use std::sync::Arc;

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use proto::simulation::{
    ListRackHostsRequest, ListRackHostsResponse, ListRackOperationsRequest, ListRackOperationsResponse,
    OperateRackHostRequest, OperateRackHostResponse, RackHost, RackOperation,
    rack_service_server::RackService,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::{
    fleet::SimulatedFleet,
    node::PowerCommand,
    rack::{RackBlueprint, SimulatedRack},
    rpc::FleetRpc,
};

/// Hosts in one message of a listing.
const PAGE: usize = 1000;

/// Serves a rack. Clones serve the same rack.
#[derive(Clone)]
pub struct RackRpc {
    rack: Arc<Mutex<SimulatedRack>>,
    start: Instant,
    /// Fleet whose nodes hosts may be.
    fleet: Option<Arc<SimulatedFleet>>,
}

impl RackRpc {
    /// Serves the rack of `blueprint`, whose time begins now.
    pub fn new(blueprint: RackBlueprint) -> Self {
        Self { rack: Arc::new(Mutex::new(SimulatedRack::new(blueprint))), start: Instant::now(), fleet: None }
    }

    /// Lets hosts be nodes of a fleet.
    #[must_use]
    pub fn of_fleet(self, fleet: &FleetRpc) -> Self {
        Self { fleet: Some(Arc::clone(&fleet.fleet)), ..self }
    }

    /// Lists the rack, with the power of the nodes that its hosts are.
    fn list(&self) -> Vec<RackHost> {
        let mut rack = self.rack.lock();
        if let Some(fleet) = &self.fleet {
            rack.follow_nodes(|node| fleet.is_on(node));
        }
        let hosts = rack.list(self.start.elapsed());
        rack.take_orders().into_iter().for_each(|order| self.give(order));
        hosts
    }

    /// Operates a host whose power is that of its node. The other hosts are left alone: a rack may have thousands.
    fn operate(&self, request: &OperateRackHostRequest) -> OperateRackHostResponse {
        let mut rack = self.rack.lock();
        if let Some(fleet) = &self.fleet {
            rack.follow_node(&request.name, |node| fleet.is_on(node));
        }
        let answer = rack.operate(request, self.start.elapsed());
        rack.take_order(&request.name).into_iter().for_each(|order| self.give(order));
        answer
    }

    /// Gives a command to a node of the fleet.
    fn give(&self, (node, command): (String, PowerCommand)) {
        let begun = self.fleet.as_ref().map(|fleet| fleet.start_transition(command, &[node]));
        if let Some(Err(error)) = begun {
            tracing::warn!(%error, "host is not switched");
        }
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
        let hosts = self.list();
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
        Ok(Response::new(self.operate(&request)))
    }

    async fn list_rack_operations(
        &self,
        _: Request<ListRackOperationsRequest>,
    ) -> Result<Response<ListRackOperationsResponse>, Status> {
        Ok(Response::new(self.rack.lock().story()))
    }
}
