//! The service of every part that lists the peers of its process.

use proto::peer::{
    ListPeersRequest, ListPeersResponse, Peer, PeerState as WireState,
    peer_service_server::{PeerService, PeerServiceServer},
};
use tonic::{Request, Response, Status};

use crate::{
    mesh::time,
    process::peers::{PeerStanding, PeerState, standings},
};

/// Returns the service.
pub(crate) fn service() -> PeerServiceServer<impl PeerService> {
    PeerServiceServer::new(PeerRpc)
}

struct PeerRpc;

#[tonic::async_trait]
impl PeerService for PeerRpc {
    async fn list_peers(&self, _: Request<ListPeersRequest>) -> Result<Response<ListPeersResponse>, Status> {
        let peers = standings().into_iter().map(to_wire).collect();
        Ok(Response::new(ListPeersResponse { peers }))
    }
}

fn to_wire(PeerStanding { name, address, state }: PeerStanding) -> Peer {
    let (state, since, error) = match state {
        PeerState::NotCalled => (WireState::NotCalled, None, String::new()),
        PeerState::Works(since) => (WireState::Works, Some(since), String::new()),
        PeerState::Fails { since, error } => (WireState::Fails, Some(since), error),
    };
    Peer { name, address, state: state.into(), since: since.map(time::to_wire), error }
}
