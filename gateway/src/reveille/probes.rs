//! Probes and metrics, for operators of the gateway.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{STARTED, process::telemetry};
use futures_util::future::join_all;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use proto::peer::{Peer, PeerState};
use tonic::{Code, Status};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tower::ServiceExt;

use super::{instant, peers};
use crate::{
    http::{
        answer::json,
        call::answer_within,
        document::{ApiOperation, BoundedText, query},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{MeshChannel, MeshHandle, MeshPart},
};

/// Deadline of a service for its answer. Probes give up after a second or two, and a later answer is of no use.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// State of what works.
const READY: &str = "ready";

/// Name of a service as a whole in checks of health.
const WHOLE: &str = "";

/// Most bytes of the reasons why a service is not ready.
const LONGEST_WHY: usize = 64 << 10;

pub(super) async fn live() -> &'static str {
    "ok\n"
}

pub(super) async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::METRICS_TYPE)], telemetry::metrics())
}

/// Parameter that asks also about parts that the gateway can do without.
const VERBOSE: &str = "verbose";

/// Longest value of that parameter, such as `true`.
const LONGEST_VERBOSE: usize = 5;

pub(super) fn ready_operation() -> ApiOperation {
    let about = "Given: shows every part, and not only what is needed, and every system outside the mesh";
    let verbose = query::<BoundedText<0, LONGEST_VERBOSE>>(VERBOSE, about);
    ApiOperation::new("What is needed is ready").answers::<BTreeMap<String, String>>().asks([verbose])
}

/// Succeeds if every service that the contract needs is ready; the answer shows each part, ready or with its reason.
pub(super) async fn ready(
    State(mesh): State<MeshHandle>,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let is_verbose = query.text(VERBOSE, 0..=LONGEST_VERBOSE)?.is_some();
    let asked = mesh.parts.iter().filter(|part| part.is_needed || is_verbose);
    let (mut health, peers) = tokio::join!(check_all(asked, WHOLE), async {
        if is_verbose { peers::read(&mesh).await.0 } else { Vec::new() }
    });
    for peer in &peers {
        let Some(state) = peer_state(peer) else { continue };
        // A system at several addresses is as ready as the worst of them.
        let shown = health.shown.entry(peer.name.clone()).or_insert_with(|| state.clone());
        if shown == READY {
            *shown = state;
        }
    }
    health.answer()
}

/// Returns the state of a peer without its error, which may name what not everybody may know. `None`: it was not called yet.
fn peer_state(peer: &Peer) -> Option<String> {
    let since = peer.since.map(instant::text).unwrap_or_default();
    match peer.state() {
        PeerState::Fails => Some(format!("fails since {since}")),
        PeerState::Works => Some(READY.to_owned()),
        PeerState::NotCalled | PeerState::Unspecified => None,
    }
}

/// Succeeds if every service that the contract needs has started, whatever the state of its database. Load balancers
/// use it: while a database fails, another gateway could do no more, and this one still answers firmware.
pub(super) async fn started(State(mesh): State<MeshHandle>) -> Result<Response, RequestProblem> {
    check_all(mesh.parts.iter().filter(|part| part.is_needed), STARTED).await.answer()
}

/// Health of parts, as the answer shows it.
struct MeshHealth {
    is_ready: bool,
    /// State of each part, by its name.
    shown: BTreeMap<String, String>,
}

impl MeshHealth {
    fn answer(&self) -> Result<Response, RequestProblem> {
        let status = if self.is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json(status, &self.shown)
    }
}

/// Checks parts beside one another.
async fn check_all(parts: impl Iterator<Item = &MeshPart>, what: &'static str) -> MeshHealth {
    let checked = join_all(parts.map(|part| async move {
        let outcome = check(part.name, part.channel.clone(), what).await;
        (part, outcome)
    }))
    .await;
    let is_ready = checked.iter().all(|(part, outcome)| outcome.is_ok() || !part.is_needed);
    let shown = checked.into_iter().map(|(part, outcome)| (part.name.to_owned(), shown(outcome)));
    MeshHealth { is_ready, shown: shown.collect() }
}

fn shown(outcome: Result<(), String>) -> String {
    outcome.err().unwrap_or_else(|| READY.to_owned())
}

async fn check(part: &'static str, channel: MeshChannel, what: &'static str) -> Result<(), String> {
    match answer_within(PROBE_DEADLINE, part, ask(channel.clone(), what)).await {
        Ok(ServingStatus::Serving) => Ok(()),
        Ok(_) => {
            let why = tokio::time::timeout(PROBE_DEADLINE, why(channel)).await;
            Err(why.ok().flatten().unwrap_or_else(|| "not ready".to_owned()))
        }
        Err(fault) => Err(fault.to_string()),
    }
}

/// Returns the health of a service. A service of an older version knows only its health as a whole.
async fn ask(channel: MeshChannel, what: &'static str) -> Result<tonic::Response<ServingStatus>, Status> {
    let mut health = HealthClient::new(channel);
    let question = |service: &str| HealthCheckRequest { service: service.to_owned() };
    let answer = match health.check(question(what)).await {
        Err(unknown) if unknown.code() == Code::NotFound => health.check(question(WHOLE)).await,
        answer => answer,
    };
    answer.map(|answer| answer.map(|answer| answer.status()))
}

/// Returns the reasons why a service is not ready, over plain HTTP because checks of health have no texts.
async fn why(channel: MeshChannel) -> Option<String> {
    let question = Request::get("/readyz").body(tonic::body::Body::empty()).ok()?;
    let answer = channel.oneshot(question).await.ok()?;
    if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let words = to_bytes(Body::new(answer.into_body()), LONGEST_WHY).await.ok()?;
    Some(String::from_utf8_lossy(&words).trim().to_owned()).filter(|words| !words.is_empty())
}
