//! Systems outside the mesh, as its parts see them.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use axum::{extract::State, response::Response};
use chassis::mesh::call_class::CallClass;
use futures_util::future::join_all;
use http::{HeaderMap, Method, StatusCode};
use prost_types::Timestamp;
use proto::peer::{ListPeersRequest, Peer, PeerState, peer_service_client::PeerServiceClient};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    at, history, instant,
    word::{EnumWord, ShownEnum},
};
use crate::{
    http::{
        answer::json,
        call::{answer_within, call},
        document::ApiOperation,
        endpoint::ApiEndpoint,
        problem::RequestProblem,
        warnings::with_warnings,
    },
    mesh::{MeshHandle, MeshPart},
};

const PATH: &str = "/reveille/v1/peers";

/// Deadline of a part for its answer, which it gives from memory.
const DEADLINE: Duration = Duration::from_secs(1);

pub(super) fn endpoints() -> Vec<ApiEndpoint<MeshHandle>> {
    let about = "Systems outside the mesh that its parts call, and since when each of them works or fails; a warning names \
                 parts that do not answer";
    let list_operation = ApiOperation::new(about)
        .answers::<Vec<ShownPeer>>()
        .refuses(StatusCode::FORBIDDEN, "A tenant asks; peers are for administrators");
    vec![at(PATH).get(list, list_operation)]
}

/// Returns the admission class of a request for peers.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (*method != Method::OPTIONS && path == PATH).then_some(CallClass::List)
}

/// System outside the mesh.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Peer")]
struct ShownPeer {
    /// Name, such as `HSM`.
    name: String,
    /// Host and port.
    address: String,
    /// State: `works`, `fails`, or `not_called` yet.
    state: EnumWord<PeerState>,
    /// Time since which the peer is in that state. Absent: it was not called yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Last error. Absent: the peer does not fail.
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

impl ShownEnum for PeerState {
    const PREFIX: &str = "PEER_STATE_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl From<Peer> for ShownPeer {
    fn from(Peer { name, address, state, since, error }: Peer) -> Self {
        Self { name, address, state: EnumWord::of(state), since: since.map(instant::text), error }
    }
}

async fn list(State(mesh): State<MeshHandle>, headers: HeaderMap) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "peers")?;
    let (peers, silent) = read(&mesh).await;
    let shown: Vec<_> = peers.into_iter().map(ShownPeer::from).collect();
    let warnings: Vec<_> =
        silent.into_iter().map(|part| format!("peers of the {part} are missing")).collect();
    Ok(with_warnings(json(StatusCode::OK, &shown)?, &warnings))
}

/// Asks every part for its peers. Returns each peer once, by name and address, and the names of parts without an answer.
pub(super) async fn read(mesh: &MeshHandle) -> (Vec<Peer>, Vec<&'static str>) {
    let answers = join_all(mesh.parts.iter().map(|part| async { (part.name, of_part(part).await) })).await;
    let (mut peers, mut silent) = (Vec::new(), Vec::new());
    for (part, answer) in answers {
        match answer {
            Some(known) => peers.extend(known),
            None => silent.push(part),
        }
    }
    (merged(peers), silent)
}

async fn of_part(part: &MeshPart) -> Option<Vec<Peer>> {
    let mut client = PeerServiceClient::new(part.channel.clone());
    let answer = answer_within(DEADLINE, part.name, client.list_peers(call(ListPeersRequest {}))).await;
    answer.ok().map(|answer| answer.peers)
}

/// Returns each peer once, in the order of names and addresses. Of several states the worst is kept, and of equal ones the
/// older.
fn merged(peers: Vec<Peer>) -> Vec<Peer> {
    let rank = |peer: &Peer| {
        let Timestamp { seconds, nanos } = peer.since.unwrap_or_default();
        (peer.state, Reverse((seconds, nanos)))
    };
    let mut kept = BTreeMap::<_, Peer>::new();
    for peer in peers {
        let known = kept.entry((peer.name.clone(), peer.address.clone())).or_insert_with(|| peer.clone());
        if rank(&peer) > rank(known) {
            *known = peer;
        }
    }
    kept.into_values().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn peer(name: &str, state: PeerState, since: Option<i64>) -> Peer {
        let error = if state == PeerState::Fails { format!("refused at {since:?}") } else { String::new() };
        let since = since.map(|seconds| Timestamp { seconds, nanos: 0 });
        Peer { name: name.into(), address: "site:80".into(), state: state.into(), since, error }
    }

    #[test]
    fn peer_that_several_parts_call_is_shown_once() {
        use PeerState::{Fails, NotCalled, Works};
        let shown = merged(vec![
            peer("PCS", Works, Some(9)),
            peer("HSM", Works, Some(1)),
            peer("HSM", Fails, Some(8)),
            peer("HSM", Fails, Some(7)),
            peer("CFS", NotCalled, None),
            peer("BSS", NotCalled, None),
            peer("BSS", Works, Some(3)),
        ]);
        let lines =
            shown.into_iter().map(|peer| serde_json::to_string(&ShownPeer::from(peer)).unwrap() + "\n");
        expect![[r#"
            {"name":"BSS","address":"site:80","state":"works","since":"1970-01-01T00:00:03.000Z"}
            {"name":"CFS","address":"site:80","state":"not_called"}
            {"name":"HSM","address":"site:80","state":"fails","since":"1970-01-01T00:00:07.000Z","error":"refused at Some(7)"}
            {"name":"PCS","address":"site:80","state":"works","since":"1970-01-01T00:00:09.000Z"}
        "#]].assert_eq(&lines.collect::<String>());
    }
}
