//! A simulated fleet that does not push changes, and never ends a transition.

use std::{collections::BTreeMap, pin::Pin, sync::Arc};

use chassis::{Context, Server};
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use proto::{
    power::PowerReading,
    simulation::{
        CreateTransitionRequest, CreateTransitionResponse, GetConfigurationsRequest,
        GetConfigurationsResponse, GetImageRequest, GetImageResponse, GetPowerRequest, GetPowerResponse,
        GetTransitionRequest, GetTransitionResponse, ListFaultsRequest, ListFaultsResponse,
        ListHardwareRequest, ListHardwareResponse, ListTransitionsRequest, ListTransitionsResponse,
        NodePower, NodeTask, PutBootParametersRequest, PutBootParametersResponse, SetConfigurationsRequest,
        SetConfigurationsResponse, WatchConfigurationsRequest, WatchConfigurationsResponse,
        WatchPowerRequest, WatchPowerResponse,
        fleet_service_server::{FleetService, FleetServiceServer},
    },
};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};

/// The fleet. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SilentFleet {
    power: Arc<Mutex<BTreeMap<String, PowerReading>>>,
    /// Nodes of the taken transitions, in the order of their ids.
    taken: Arc<Mutex<Vec<Vec<String>>>>,
}

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl SilentFleet {
    /// Serves on an address of its own until the context ends, and returns that address.
    pub(crate) async fn start(context: &Context) -> (Self, String) {
        let fleet = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = Server::default();
        server.add(FleetServiceServer::new(fleet.clone()));
        chassis::serve(context, "simulator", listener, server).await.unwrap().now();
        (fleet, url)
    }

    /// Changes the power of a node without a push.
    pub(crate) fn set_power(&self, id: &str, reading: PowerReading) {
        self.power.lock().insert(id.to_owned(), reading);
    }

    /// Returns the number of taken transitions.
    pub(crate) fn count_taken(&self) -> usize {
        self.taken.lock().len()
    }
}

#[async_trait]
impl FleetService for SilentFleet {
    type ListHardwareStream = Responses<ListHardwareResponse>;
    type WatchConfigurationsStream = Responses<WatchConfigurationsResponse>;
    type WatchPowerStream = Responses<WatchPowerResponse>;

    async fn get_power(
        &self,
        request: Request<GetPowerRequest>,
    ) -> Result<Response<GetPowerResponse>, Status> {
        let power = self.power.lock();
        let nodes = request.into_inner().ids.into_iter().filter_map(|id| {
            let reading = (*power.get(&id)?).into();
            Some(NodePower { id, reading, error: String::new() })
        });
        Ok(Response::new(GetPowerResponse { nodes: nodes.collect() }))
    }

    async fn watch_power(
        &self,
        _: Request<WatchPowerRequest>,
    ) -> Result<Response<Self::WatchPowerStream>, Status> {
        Ok(Response::new(stream::pending().boxed()))
    }

    async fn list_hardware(
        &self,
        _: Request<ListHardwareRequest>,
    ) -> Result<Response<Self::ListHardwareStream>, Status> {
        Err(unused())
    }

    async fn create_transition(
        &self,
        request: Request<CreateTransitionRequest>,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        let mut taken = self.taken.lock();
        taken.push(request.into_inner().ids);
        let transition_id = format!("f-{}", taken.len());
        Ok(Response::new(CreateTransitionResponse { transition_id }))
    }

    /// Returns an empty list: the fleet keeps no records.
    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<ListTransitionsResponse>, Status> {
        Ok(Response::new(ListTransitionsResponse::default()))
    }

    /// Returns tasks without results, and no record beside them.
    async fn get_transition(
        &self,
        request: Request<GetTransitionRequest>,
    ) -> Result<Response<GetTransitionResponse>, Status> {
        let number = request.into_inner().transition_id.strip_prefix("f-").and_then(|id| id.parse().ok());
        let taken = self.taken.lock();
        let ids = number.and_then(|number: usize| taken.get(number.checked_sub(1)?));
        let ids = ids.ok_or_else(|| Status::not_found("no such transition"))?;
        let tasks = ids.iter().map(|id| NodeTask { id: id.clone(), ..NodeTask::default() }).collect();
        Ok(Response::new(GetTransitionResponse { tasks, ..GetTransitionResponse::default() }))
    }

    async fn put_boot_parameters(
        &self,
        _: Request<PutBootParametersRequest>,
    ) -> Result<Response<PutBootParametersResponse>, Status> {
        Err(unused())
    }

    async fn get_configurations(
        &self,
        _: Request<GetConfigurationsRequest>,
    ) -> Result<Response<GetConfigurationsResponse>, Status> {
        Err(unused())
    }

    async fn watch_configurations(
        &self,
        _: Request<WatchConfigurationsRequest>,
    ) -> Result<Response<Self::WatchConfigurationsStream>, Status> {
        Err(unused())
    }

    async fn set_configurations(
        &self,
        _: Request<SetConfigurationsRequest>,
    ) -> Result<Response<SetConfigurationsResponse>, Status> {
        Err(unused())
    }

    async fn get_image(&self, _: Request<GetImageRequest>) -> Result<Response<GetImageResponse>, Status> {
        Err(unused())
    }

    async fn list_faults(
        &self,
        _: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        Err(unused())
    }
}

fn unused() -> Status {
    Status::unimplemented("the test does not need it")
}
