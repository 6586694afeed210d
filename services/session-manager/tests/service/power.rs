//! A power controller that only answers reads of the power, and counts them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use proto::power::{
    power_service_server::{PowerService, PowerServiceServer},
    *,
};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};

type Responses<T> = BoxStream<'static, Result<T, Status>>;

/// Power controller of a world. Clones share it.
#[derive(Clone, Default)]
pub struct PlayedPower {
    nodes: Arc<Mutex<HashMap<String, PowerReading>>>,
    outage: Arc<Mutex<Option<String>>>,
    reads: Arc<AtomicUsize>,
}

impl PlayedPower {
    /// Starts a controller at the address that is returned.
    pub async fn start() -> (Self, String) {
        let power = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tonic::transport::Server::builder().add_service(PowerServiceServer::new(power.clone()));
        tokio::spawn(served.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener)));
        (power, url)
    }

    /// Sets the power of nodes.
    pub fn set(&self, ids: &[&str], reading: PowerReading) {
        self.nodes.lock().extend(ids.iter().map(|&id| (id.to_owned(), reading)));
    }

    /// Lets the upstream fail, in these words.
    pub fn fail(&self, outage: &str) {
        *self.outage.lock() = Some(outage.to_owned());
    }

    /// Returns the number of reads so far.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl PowerService for PlayedPower {
    type ListPowerStatesStream = Responses<ListPowerStatesResponse>;
    type WatchPowerStatesStream = Responses<proto::Encoded<WatchPowerStatesResponse>>;
    type ReadPowerStream = Responses<ReadPowerResponse>;
    type ListTransitionsStream = Responses<ListTransitionsResponse>;

    async fn read_power(
        &self,
        request: Request<ReadPowerRequest>,
    ) -> Result<Response<Self::ReadPowerStream>, Status> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let outages: Vec<_> = self.outage.lock().clone().into_iter().collect();
        let known = self.nodes.lock();
        let ids = request.into_inner().ids.into_iter().filter(|_| outages.is_empty());
        let nodes = ids.filter_map(|id| {
            let reading = (*known.get(&id)?).into();
            Some(NodePower { id, reading, error: String::new() })
        });
        let answer = ReadPowerResponse { nodes: nodes.collect(), outages };
        Ok(Response::new(stream::iter([Ok(answer)]).boxed()))
    }

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
        Err(Status::unimplemented(""))
    }

    async fn list_transitions(
        &self,
        _: Request<ListTransitionsRequest>,
    ) -> Result<Response<Self::ListTransitionsStream>, Status> {
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
