//! Whether the gateway lives and can do its work, and what it counts, for whoever runs it.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{STARTED, telemetry};
use http::{Request, StatusCode, header::CONTENT_TYPE};
use tonic::{Code, Status};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tower::ServiceExt;

use crate::{
    http::{answer::json, call::answer_within, problem::Problem},
    mesh::{Mesh, MeshChannel, REGISTRY, SESSIONS},
};

/// Whoever probes gives up after a second or two, and an answer that comes later helps nobody.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// What stands for a service as a whole in checks of health.
const WHOLE: &str = "";

/// Most bytes that a service may need to say why it is not ready.
const LONGEST_WHY: usize = 64 << 10;

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// The metrics of the process, for Prometheus.
pub(super) async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::METRICS_TYPE)], telemetry::metrics())
}

/// Every service that the contract needs is ready; if not, which is not and why.
pub(super) async fn ready(State(mesh): State<Mesh>) -> Result<Response, Problem> {
    check_all(mesh, WHOLE).await
}

/// Every service that the contract needs has started, whatever its database does. It is for whoever takes a gateway out of
/// service: another one could do no more, and this one still answers firmware.
pub(super) async fn started(State(mesh): State<Mesh>) -> Result<Response, Problem> {
    check_all(mesh, STARTED).await
}

async fn check_all(mesh: Mesh, what: &'static str) -> Result<Response, Problem> {
    let (registry, sessions) = tokio::join!(
        check(REGISTRY, mesh.registry.clone(), what),
        check(SESSIONS, mesh.manager.clone(), what)
    );
    let all = registry.is_ok() && sessions.is_ok();
    let told = |outcome: Result<(), String>| outcome.err().unwrap_or_else(|| "ready".to_owned());
    let parts = BTreeMap::from([(REGISTRY, told(registry)), (SESSIONS, told(sessions))]);
    json(if all { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &parts)
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

/// How the part is. One of an older version knows only of the whole.
async fn ask(channel: MeshChannel, what: &'static str) -> Result<tonic::Response<ServingStatus>, Status> {
    let mut health = HealthClient::new(channel);
    let question = |service: &str| HealthCheckRequest { service: service.to_owned() };
    let answer = match health.check(question(what)).await {
        Err(unknown) if unknown.code() == Code::NotFound => health.check(question(WHOLE)).await,
        answer => answer,
    };
    answer.map(|answer| answer.map(|answer| answer.status()))
}

/// What the part says about why it is not ready, over plain HTTP, because there are no words in checks of health.
async fn why(channel: MeshChannel) -> Option<String> {
    let question = Request::get("/readyz").body(tonic::body::Body::empty()).ok()?;
    let answer = channel.oneshot(question).await.ok()?;
    if answer.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let words = to_bytes(Body::new(answer.into_body()), LONGEST_WHY).await.ok()?;
    Some(String::from_utf8_lossy(&words).trim().to_owned()).filter(|words| !words.is_empty())
}
