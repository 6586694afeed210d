//! A simulated fleet with scripted answers about its hardware and its images. It lists hardware for the registry, and has
//! images for the session manager.

use std::sync::Arc;

use chassis::Fault;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::{
    inventory::{Group, Hardware},
    simulation::{
        fleet_service_server::{FleetService, FleetServiceServer},
        *,
    },
};
use tokio::{net::TcpListener, sync::watch};
use tonic::{Request, Response, Status, async_trait};

type Responses<T> = BoxStream<'static, Result<T, Status>>;

/// Fleet of a world. Clones share it.
#[derive(Clone)]
pub struct PlayedFleet {
    state: Arc<watch::Sender<FleetState>>,
}

struct FleetState {
    nodes: Vec<String>,
    hardware: CallBehaviour,
    /// Nodes that are not listed for now.
    unlisted: Vec<String>,
    lacks_groups: bool,
    /// Members of the group `blue`.
    blue: Vec<String>,
    images: CallBehaviour,
    /// Number of calls that wait for the images.
    images_asked: usize,
}

/// Behaviour of a kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallBehaviour {
    Answered,
    Held,
    Refused,
}

fn answers(does: bool) -> CallBehaviour {
    if does { CallBehaviour::Answered } else { CallBehaviour::Refused }
}

fn held(is_held: bool) -> CallBehaviour {
    if is_held { CallBehaviour::Held } else { CallBehaviour::Answered }
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

impl PlayedFleet {
    /// Starts a fleet with the nodes `n0` to `n9` at the address that is returned.
    pub async fn start() -> (Self, String) {
        let state = FleetState {
            nodes: (0..10).map(|n| format!("n{n}")).collect(),
            hardware: CallBehaviour::Answered,
            unlisted: Vec::new(),
            lacks_groups: false,
            blue: owned(&["n0", "n1"]),
            images: CallBehaviour::Answered,
            images_asked: 0,
        };
        let fleet = Self { state: Arc::new(watch::Sender::new(state)) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tonic::transport::Server::builder().add_service(FleetServiceServer::new(fleet.clone()));
        tokio::spawn(served.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener)));
        (fleet, url)
    }

    /// Adds a node.
    pub fn add(&self, id: &str) {
        self.state.send_modify(|state| state.nodes.push(id.to_owned()));
    }

    pub fn inventory_answers(&self, does: bool) {
        self.state.send_modify(|state| state.hardware = answers(does));
    }

    /// Holds or releases calls of the inventory. A session whose setup waits was created before all later events.
    pub fn hold_inventory(&self, hold: bool) {
        self.state.send_modify(|state| state.hardware = held(hold));
    }

    /// Makes the inventory list no hardware, although it has groups.
    pub fn inventory_is_empty(&self, is_empty: bool) {
        self.state.send_modify(|state| {
            state.unlisted = if is_empty { state.nodes.clone() } else { Vec::new() };
        });
    }

    /// Makes the inventory lack these nodes, and its groups or not.
    pub fn inventory_lacks(&self, nodes: &[&str], lacks_groups: bool) {
        self.state.send_modify(|state| (state.unlisted, state.lacks_groups) = (owned(nodes), lacks_groups));
    }

    /// Changes the members of the group `blue`.
    pub fn paint_blue(&self, ids: &[&str]) {
        self.state.send_modify(|state| state.blue = owned(ids));
    }

    pub fn images_answer(&self, does: bool) {
        self.state.send_modify(|state| state.images = answers(does));
    }

    /// Holds or releases calls of the image store.
    pub fn hold_images(&self, hold: bool) {
        self.state.send_modify(|state| state.images = held(hold));
    }

    /// Waits until a call waits for the image store.
    pub async fn images_asked(&self) {
        self.state.subscribe().wait_for(|state| state.images_asked > 0).await.unwrap();
    }
}

fn hardware(id: &str) -> Hardware {
    Hardware {
        id: id.to_owned(),
        r#type: "Node".to_owned(),
        role: "Compute".to_owned(),
        arch: "X86".to_owned(),
        enabled: true,
        ..Hardware::default()
    }
}

#[async_trait]
impl FleetService for PlayedFleet {
    type ListHardwareStream = Responses<ListHardwareResponse>;
    type WatchPowerStream = Responses<WatchPowerResponse>;
    type WatchConfigurationsStream = Responses<WatchConfigurationsResponse>;

    async fn list_hardware(
        &self,
        _: Request<ListHardwareRequest>,
    ) -> Result<Response<Self::ListHardwareStream>, Status> {
        let mut changes = self.state.subscribe();
        let state = changes.wait_for(|state| state.hardware != CallBehaviour::Held).await.unwrap();
        if state.hardware == CallBehaviour::Refused {
            return Err(Status::unavailable("it is being serviced"));
        }
        let listed = state.nodes.iter().filter(|id| !state.unlisted.contains(id));
        let blue = Group { label: "blue".to_owned(), ids: state.blue.clone() };
        let message = ListHardwareResponse {
            hardware: listed.map(|id| hardware(id)).collect(),
            groups: Some(blue).filter(|_| !state.lacks_groups).into_iter().collect(),
            partitions: Vec::new(),
        };
        Ok(Response::new(stream::iter([Ok(message)]).boxed()))
    }

    async fn get_image(
        &self,
        request: Request<GetImageRequest>,
    ) -> Result<Response<GetImageResponse>, Status> {
        let path = request.into_inner().path;
        self.state.send_modify(|state| state.images_asked += 1);
        let mut changes = self.state.subscribe();
        let images = changes.wait_for(|state| state.images != CallBehaviour::Held).await.unwrap().images;
        self.state.send_modify(|state| state.images_asked -= 1);
        if images == CallBehaviour::Refused {
            return Err(Fault::unavailable("images", "the store is full").into());
        }
        if !path.ends_with("/manifest.json") {
            return Err(Fault::not_found("image manifest", &path).into());
        }
        let object = |name: &str| Some(path.replace("manifest.json", name));
        let (kernel, initrd) = (object("kernel"), object("initrd"));
        Ok(Response::new(GetImageResponse { kernel, initrd, ..GetImageResponse::default() }))
    }

    async fn get_power(&self, _: Request<GetPowerRequest>) -> Result<Response<GetPowerResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_power(
        &self,
        _: Request<WatchPowerRequest>,
    ) -> Result<Response<Self::WatchPowerStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn create_transition(
        &self,
        _: Request<CreateTransitionRequest>,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<ListTransitionsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_transition(
        &self,
        _: Request<GetTransitionRequest>,
    ) -> Result<Response<GetTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn put_boot_parameters(
        &self,
        _: Request<PutBootParametersRequest>,
    ) -> Result<Response<PutBootParametersResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_configurations(
        &self,
        _: Request<GetConfigurationsRequest>,
    ) -> Result<Response<GetConfigurationsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_configurations(
        &self,
        _: Request<WatchConfigurationsRequest>,
    ) -> Result<Response<Self::WatchConfigurationsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn set_configurations(
        &self,
        _: Request<SetConfigurationsRequest>,
    ) -> Result<Response<SetConfigurationsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_faults(
        &self,
        _: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
