//! The fleet as a gRPC service: reads requests, asks the fleet, writes answers.

use std::{sync::Arc, time::SystemTime};

use chassis::Fault;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::simulation::{
    AcceptedTransition, CreateTransitionRequest, CreateTransitionResponse, GetConfigurationsRequest,
    GetConfigurationsResponse, GetImageRequest, GetImageResponse, GetPowerRequest, GetPowerResponse,
    ListFaultsRequest, ListFaultsResponse, ListHardwareRequest, ListHardwareResponse, ListTransitionsRequest,
    ListTransitionsResponse, PutBootParametersRequest, PutBootParametersResponse, SetConfigurationsRequest,
    SetConfigurationsResponse, TransitionOperation, WatchConfigurationsRequest, WatchConfigurationsResponse,
    WatchPowerRequest, WatchPowerResponse, fleet_service_server::FleetService,
};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    boot,
    fleet::Fleet,
    node::{PowerCommand, WantedConfiguration},
    transitions::Transition,
};

/// Pieces of hardware in one message of a listing.
const PAGE: usize = 1000;

/// Answers calls until `shutdown`, which ends its streams.
pub(crate) struct FleetRpc {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) shutdown: CancellationToken,
}

type Stream<T> = BoxStream<'static, Result<T, Status>>;

impl FleetRpc {
    /// A subscriber that fell behind is told so and has to subscribe and read everything again.
    fn watch<T: Clone + Send + 'static>(&self, changes: broadcast::Receiver<T>) -> Response<Stream<T>> {
        let changes = BroadcastStream::new(changes)
            .map(|change| change.map_err(|_| Status::out_of_range("too far behind; subscribe and read again")));
        Response::new(changes.take_until(self.shutdown.clone().cancelled_owned()).boxed())
    }
}

#[tonic::async_trait]
impl FleetService for FleetRpc {
    type ListHardwareStream = Stream<ListHardwareResponse>;
    type WatchPowerStream = Stream<WatchPowerResponse>;
    type WatchConfigurationsStream = Stream<WatchConfigurationsResponse>;

    async fn list_hardware(
        &self,
        _: Request<ListHardwareRequest>,
    ) -> Result<Response<Self::ListHardwareStream>, Status> {
        let page = |hardware: &[_]| ListHardwareResponse { hardware: hardware.to_vec(), ..Default::default() };
        let mut pages: Vec<_> = self.fleet.hardware().chunks(PAGE).map(page).collect();
        pages.push(ListHardwareResponse { groups: self.fleet.groups().to_vec(), ..Default::default() });
        Ok(Response::new(stream::iter(pages).map(Ok).boxed()))
    }

    async fn get_power(
        &self,
        request: Request<GetPowerRequest>,
    ) -> Result<Response<GetPowerResponse>, Status> {
        let nodes = self.fleet.power(&request.get_ref().ids);
        Ok(Response::new(GetPowerResponse { nodes }))
    }

    async fn watch_power(
        &self,
        _: Request<WatchPowerRequest>,
    ) -> Result<Response<Self::WatchPowerStream>, Status> {
        Ok(self.watch(self.fleet.watch_power()))
    }

    async fn create_transition(
        &self,
        request: Request<CreateTransitionRequest>,
    ) -> Result<Response<CreateTransitionResponse>, Status> {
        let request = request.into_inner();
        let command = command(request.operation())?;
        if request.ids.is_empty() {
            return Err(Status::invalid_argument("ids: must name at least one node"));
        }
        let transition_id = self
            .fleet
            .start_transition(command, &request.ids)
            .map_err(|unknown| Status::invalid_argument(format!("ids: {unknown}")))?;
        tracing::debug!(transition_id, ?command, nodes = request.ids.len(), "transition accepted");
        Ok(Response::new(CreateTransitionResponse { transition_id }))
    }

    async fn list_transitions(
        &self,
        request: Request<ListTransitionsRequest>,
    ) -> Result<Response<ListTransitionsResponse>, Status> {
        let since = match request.into_inner().since {
            Some(since) => SystemTime::try_from(since)
                .map_err(|error| Status::invalid_argument(format!("since: {error}")))?,
            None => SystemTime::UNIX_EPOCH,
        };
        let transitions = self.fleet.transitions_since(since).into_iter().map(accepted).collect();
        Ok(Response::new(ListTransitionsResponse { transitions }))
    }

    async fn put_boot_parameters(
        &self,
        request: Request<PutBootParametersRequest>,
    ) -> Result<Response<PutBootParametersResponse>, Status> {
        let referral_token = self.fleet.put_boot_parameters(request.get_ref());
        Ok(Response::new(PutBootParametersResponse { referral_token }))
    }

    async fn get_configurations(
        &self,
        request: Request<GetConfigurationsRequest>,
    ) -> Result<Response<GetConfigurationsResponse>, Status> {
        let nodes = self.fleet.configurations(&request.get_ref().ids);
        Ok(Response::new(GetConfigurationsResponse { nodes }))
    }

    async fn watch_configurations(
        &self,
        _: Request<WatchConfigurationsRequest>,
    ) -> Result<Response<Self::WatchConfigurationsStream>, Status> {
        Ok(self.watch(self.fleet.watch_configurations()))
    }

    async fn set_configurations(
        &self,
        request: Request<SetConfigurationsRequest>,
    ) -> Result<Response<SetConfigurationsResponse>, Status> {
        let request = request.into_inner();
        let wanted = WantedConfiguration {
            name: request.desired_configuration.into(),
            enabled: request.enabled,
            clear_state: request.clear_state,
        };
        self.fleet.configure(&wanted, &request.ids);
        Ok(Response::new(SetConfigurationsResponse {}))
    }

    async fn get_image(
        &self,
        request: Request<GetImageRequest>,
    ) -> Result<Response<GetImageResponse>, Status> {
        let path = request.into_inner().path;
        let image = boot::image(&path).ok_or_else(|| Fault::not_found("image manifest", &path))?;
        Ok(Response::new(image))
    }

    async fn list_faults(
        &self,
        _: Request<ListFaultsRequest>,
    ) -> Result<Response<ListFaultsResponse>, Status> {
        Ok(Response::new(ListFaultsResponse { faults: self.fleet.faults() }))
    }
}

fn command(operation: TransitionOperation) -> Result<PowerCommand, Status> {
    match operation {
        TransitionOperation::Unspecified => Err(Status::invalid_argument("operation: must be specified")),
        TransitionOperation::On => Ok(PowerCommand::On),
        TransitionOperation::SoftOff => Ok(PowerCommand::SoftOff),
        TransitionOperation::ForceOff => Ok(PowerCommand::ForceOff),
    }
}

fn accepted(transition: Transition) -> AcceptedTransition {
    let operation = match transition.command {
        PowerCommand::On => TransitionOperation::On,
        PowerCommand::SoftOff => TransitionOperation::SoftOff,
        PowerCommand::ForceOff => TransitionOperation::ForceOff,
    };
    AcceptedTransition {
        transition_id: transition.id,
        operation: operation.into(),
        ids: transition.members.iter().map(ToString::to_string).collect(),
        created_at: Some(transition.created_at.into()),
    }
}
