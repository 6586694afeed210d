//! gRPC service of the fleet: parse, call, map.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use chassis::Fault;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use proto::power::TaskOutcome;
use proto::simulation::{
    AcceptedTransition, CreateTransitionRequest, CreateTransitionResponse, GetConfigurationsRequest,
    GetConfigurationsResponse, GetImageRequest, GetImageResponse, GetPowerRequest, GetPowerResponse,
    GetTransitionRequest, GetTransitionResponse, ListFaultsRequest, ListFaultsResponse, ListHardwareRequest,
    ListHardwareResponse, ListTransitionsRequest, ListTransitionsResponse, NodeTask,
    PutBootParametersRequest, PutBootParametersResponse, SetConfigurationsRequest, SetConfigurationsResponse,
    TransitionOperation, WatchConfigurationsRequest, WatchConfigurationsResponse, WatchPowerRequest,
    WatchPowerResponse, fleet_service_server::FleetService,
};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    boot,
    fleet::SimulatedFleet,
    node::{PowerCommand, WantedConfiguration},
    transitions::{MemberResult, RecordedTransition},
};

/// Pieces of hardware in one message of a listing.
const PAGE: usize = 1000;

/// Serves the fleet until shutdown, which ends all streams. Clones serve the same fleet.
#[derive(Clone)]
pub struct FleetRpc {
    pub(crate) fleet: Arc<SimulatedFleet>,
    pub(crate) shutdown: CancellationToken,
}

type Stream<T> = BoxStream<'static, Result<T, Status>>;

impl FleetRpc {
    /// Sets whether the power service reaches a node; transitions of an unreachable node fail.
    pub fn set_reachable(&self, id: &str, reachable: bool) {
        self.fleet.set_reachable(id, reachable);
    }

    /// Holds the transitions of these nodes: they are accepted, and executed once a later call no longer names them.
    pub fn hold(&self, held: HashSet<String>) {
        self.fleet.hold(held);
    }

    /// Streams changes. A lagging subscriber gets an error, and has to subscribe and read everything again.
    fn watch<T: Clone + Send + 'static>(&self, changes: broadcast::Receiver<T>) -> Response<Stream<T>> {
        let changes = BroadcastStream::new(changes).map(|change| {
            change.map_err(|_| Status::out_of_range("too far behind; subscribe and read again"))
        });
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
        let page =
            |hardware: &[_]| ListHardwareResponse { hardware: hardware.to_vec(), ..Default::default() };
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
        Ok(Response::new(ListTransitionsResponse { transitions, now: Some(SystemTime::now().into()) }))
    }

    async fn get_transition(
        &self,
        request: Request<GetTransitionRequest>,
    ) -> Result<Response<GetTransitionResponse>, Status> {
        let id = request.into_inner().transition_id;
        let missing = || Fault::not_found("transition", &id);
        let AcceptedTransition { operation, created_at, .. } =
            accepted(self.fleet.transition(&id).ok_or_else(missing)?);
        let tasks = self.fleet.tasks(&id).ok_or_else(missing)?;
        let ended = tasks.iter().all(|(_, task)| *task != MemberResult::Pending);
        let tasks = tasks.into_iter().map(|(id, task)| node_task(&id, task)).collect();
        Ok(Response::new(GetTransitionResponse { tasks, ended, operation, created_at }))
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

fn node_task(id: &str, task: MemberResult) -> NodeTask {
    let (outcome, error, asked) = match task {
        MemberResult::Pending => (TaskOutcome::Unspecified, String::new(), false),
        MemberResult::Succeeded => (TaskOutcome::Succeeded, String::new(), false),
        MemberResult::Failed(why) => (TaskOutcome::Failed, why, false),
        MemberResult::TimedOut(why) => (TaskOutcome::Failed, why, true),
    };
    NodeTask { id: id.to_owned(), outcome: outcome.into(), error, asked }
}

fn accepted(transition: RecordedTransition) -> AcceptedTransition {
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

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{fleet::FleetBlueprint, hardware::NodeTiming, topology};

    fn rpc() -> FleetRpc {
        let blueprint = FleetBlueprint {
            hardware: topology::generate(1500),
            groups: topology::groups(&topology::generate(1500)),
            timing: NodeTiming::new(1, 0.0).expect("no delay is allowed"),
            faults: vec![None; 1500],
            up: true,
        };
        let fleet = Arc::new(SimulatedFleet::new(blueprint, mpsc::unbounded_channel().0));
        FleetRpc { fleet, shutdown: CancellationToken::new() }
    }

    #[tokio::test]
    async fn refusals_name_the_reason() {
        let rpc = rpc();
        let transition = |operation: TransitionOperation, ids: &[&str]| CreateTransitionRequest {
            operation: operation.into(),
            ids: ids.iter().map(ToString::to_string).collect(),
        };
        let mut seen = String::new();
        for request in [
            transition(TransitionOperation::Unspecified, &["x1000c0s0b0n0"]),
            transition(TransitionOperation::On, &[]),
            transition(TransitionOperation::On, &["x1000c0s0b0n0", "x7c0s0b0n0"]),
        ] {
            let status = rpc.create_transition(Request::new(request)).await.expect_err("must be refused");
            seen += &format!("{:?}: {}\n", status.code(), status.message());
        }
        let image = rpc.get_image(Request::new(GetImageRequest { path: "s3://nowhere".into() })).await;
        let status = image.expect_err("must be refused");
        seen += &format!("{:?}: {}\n", status.code(), status.message());
        expect![[r#"
            InvalidArgument: operation: must be specified
            InvalidArgument: ids: must name at least one node
            InvalidArgument: ids: x7c0s0b0n0 is not a node of the fleet
            NotFound: image manifest 's3://nowhere' does not exist
        "#]]
        .assert_eq(&seen);
    }

    #[tokio::test]
    async fn hardware_is_listed_in_pages() {
        let stream = rpc().list_hardware(Request::new(ListHardwareRequest {})).await.expect("listed");
        let pages: Vec<_> = stream.into_inner().map(|page| page.expect("a page")).collect().await;
        let sizes: Vec<_> = pages.iter().map(|page| (page.hardware.len(), page.groups.len())).collect();
        assert_eq!(sizes, [(1000, 0), (500, 0), (0, 2)]);
    }

    #[tokio::test]
    async fn a_lagging_subscriber_has_to_start_over() {
        let changes = broadcast::Sender::new(2);
        let stream = rpc().watch(changes.subscribe());
        (0..5).for_each(|change| drop(changes.send(change)));
        let first = stream.into_inner().next().await.expect("the stream has something to say");
        let status = first.expect_err("changes were lost");
        expect!["OutOfRange: too far behind; subscribe and read again"].assert_eq(&format!(
            "{:?}: {}",
            status.code(),
            status.message()
        ));
    }

    #[tokio::test]
    async fn shutdown_ends_streams() {
        let rpc = rpc();
        let stream = rpc.watch_power(Request::new(WatchPowerRequest {})).await.expect("subscribed");
        rpc.shutdown.cancel();
        assert!(stream.into_inner().next().await.is_none());
    }
}
