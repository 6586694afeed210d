//! A power controller that has read the power of all nodes.

use std::{collections::BTreeMap, sync::Arc};

use chassis::{Channel, Context, Server, observe::mirror::Mirror};
use domain::boot::component::{Component, Phase};
use futures_util::{StreamExt, stream, stream::BoxStream};
use parking_lot::Mutex;
use proto::{
    Encoded,
    power::{
        AbandonTransitionRequest, AbandonTransitionResponse, ListPowerStatesRequest, ListPowerStatesResponse,
        ListTransitionsRequest, ListTransitionsResponse, PowerReading, PowerState, ReadHoldersRequest,
        ReadHoldersResponse, ReadPowerRequest, ReadPowerResponse, WatchPowerStatesRequest,
        WatchPowerStatesResponse,
        power_service_server::{PowerService, PowerServiceServer},
    },
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

/// Power controller. Clones share it.
#[derive(Clone)]
pub(crate) struct PlayedPower {
    components: Mirror<Component>,
    /// Power of nodes that differs from the usual one of their phase.
    readings: Arc<Mutex<BTreeMap<String, PowerReading>>>,
    revision: Arc<watch::Sender<u64>>,
    shutdown: CancellationToken,
}

impl PlayedPower {
    /// Serves the power of the components of `registry`.
    pub(crate) async fn serve(context: &Context, registry: Channel, listener: TcpListener) -> Self {
        let revision = Arc::new(watch::Sender::new(1));
        let changed = Arc::clone(&revision);
        let components =
            Mirror::start(context, registry, move |_| changed.send_modify(|revision| *revision += 1));
        let shutdown = context.tasks.shutdown();
        let power = Self { components, readings: Arc::default(), revision, shutdown };
        let mut server = Server::default();
        server.add(PowerServiceServer::new(power.clone()));
        chassis::serve(context, "power-controller", listener, server).await.unwrap().now();
        power
    }

    /// Sets the power that is read of a node from now on.
    pub(crate) fn set(&self, id: &str, reading: PowerReading) {
        self.readings.lock().insert(id.to_owned(), reading);
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Returns the current power state of a component. A node that waits to be switched on is usually off.
    fn state(&self, component: &Component, revision: u64) -> PowerState {
        let usual = match component.phase() {
            Phase::PoweringOn => PowerReading::Off,
            Phase::None | Phase::PoweringOff | Phase::Configuring => PowerReading::On,
        };
        let id = component.id.as_str().to_owned();
        PowerState {
            reading: self.readings.lock().get(&id).copied().unwrap_or(usual).into(),
            generation: component.generation,
            spent_power_ons: component.spent_power_ons(),
            revision,
            id,
            ..PowerState::default()
        }
    }
}

#[async_trait]
impl PowerService for PlayedPower {
    type ListPowerStatesStream = BoxStream<'static, Result<ListPowerStatesResponse, Status>>;
    type WatchPowerStatesStream = BoxStream<'static, Result<Encoded<WatchPowerStatesResponse>, Status>>;
    type ReadPowerStream = BoxStream<'static, Result<ReadPowerResponse, Status>>;
    type ListTransitionsStream = BoxStream<'static, Result<ListTransitionsResponse, Status>>;

    async fn list_power_states(
        &self,
        _: Request<ListPowerStatesRequest>,
    ) -> Result<Response<Self::ListPowerStatesStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_power_states(
        &self,
        _: Request<WatchPowerStatesRequest>,
    ) -> Result<Response<Self::WatchPowerStatesStream>, Status> {
        let start = (self.clone(), self.revision.subscribe(), true);
        let responses = stream::unfold(start, async |(power, mut changes, first)| {
            if !first {
                changes.changed().await.ok()?;
            }
            let revision = *changes.borrow_and_update();
            let components = power.components.all();
            let power_states = components.iter().map(|component| power.state(component, revision)).collect();
            let deletions = Vec::new();
            let response = WatchPowerStatesResponse { power_states, deletions, revision, synced: first };
            Some((Ok(response.into()), (power, changes, false)))
        });
        let shutdown = self.shutdown.clone().cancelled_owned();
        Ok(Response::new(responses.take_until(Box::pin(shutdown)).boxed()))
    }

    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<Self::ListTransitionsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn read_power(
        &self,
        _: Request<ReadPowerRequest>,
    ) -> Result<Response<Self::ReadPowerStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn read_holders(
        &self,
        _: Request<ReadHoldersRequest>,
    ) -> Result<Response<ReadHoldersResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn abandon_transition(
        &self,
        _: Request<AbandonTransitionRequest>,
    ) -> Result<Response<AbandonTransitionResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}
