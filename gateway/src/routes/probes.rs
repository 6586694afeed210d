//! Whether the gateway lives and can do its work, and what it counts, for whoever runs it.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::telemetry;
use http::{StatusCode, header::CONTENT_TYPE};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::json;
use crate::{
    mesh::{Channel, Mesh, REGISTRY, SESSIONS, answer_within},
    problem::Problem,
};

/// Whoever probes gives up after a second or two, and an answer that comes later helps nobody.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);

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
    let (registry, sessions) =
        tokio::join!(check(REGISTRY, mesh.registry_health), check(SESSIONS, mesh.sessions_health));
    let all = registry.is_ok() && sessions.is_ok();
    let told = |outcome: Result<(), String>| outcome.err().unwrap_or_else(|| "ready".to_owned());
    let parts = BTreeMap::from([(REGISTRY, told(registry)), (SESSIONS, told(sessions))]);
    json(if all { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &parts)
}

async fn check(part: &'static str, mut health: HealthClient<Channel>) -> Result<(), String> {
    let question = HealthCheckRequest { service: String::new() };
    let answer = answer_within(PROBE_DEADLINE, part, health.check(question)).await;
    match answer.map(|answer| answer.status()) {
        Ok(ServingStatus::Serving) => Ok(()),
        Ok(_) => Err("not ready".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}
