//! The contract of Kubernetes, for bare-metal hosts: clients of that API, such as kubectl, work against the gateway.
//!
//! - `kinds`, `schema`: the table of kinds, and their schemas, from which everything else follows
//! - `request`: paths, parameters, `Accept` and bodies; `failure`, `answer`: refusals, answers
//! - `records`: records of the component registry as objects; `store`: copies of them with their latest changes
//! - `read`: objects, lists, tables, watches; `select`: selectors
//! - `write`: creation, replacement, patches, deletion; `patch`: patches; `apply`: server-side apply
//! - `discovery`, `openapi`: the description; `reviews`: questions about rights

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::any,
};
use chassis::mesh::call_class::CallClass;
use http::{Method, StatusCode};
use tower_http::catch_panic::CatchPanicLayer;

use crate::http::{
    admission::{AdmissionPlaces, Classify, PathAdmission, admit},
    problem::RequestProblem,
};

mod answer;
mod apply;
mod discovery;
mod face;
mod failure;
mod handle;
mod kinds;
mod object;
mod openapi;
mod patch;
mod read;
mod records;
mod request;
mod reviews;
mod schema;
mod select;
mod store;
mod write;

pub(crate) use face::KubernetesFace;
pub(crate) use kinds::HOST_VERSION;
use request::path::{ApiPath, ObjectPath};

/// Prefix of the paths on the common port.
pub(crate) const PREFIX: &str = "/kubernetes";

/// Largest body: Kubernetes allows three megabytes.
const LARGEST_BODY: u64 = 4 << 20;

/// Returns the paths of this face.
pub(crate) fn router(face: KubernetesFace, places: &AdmissionPlaces) -> Router {
    // A watch holds its place for 45 minutes or more, which no class has the number of places for.
    let watches = admitted(face.clone(), places, |_, _| None);
    let others = admitted(face, places, class_of);
    Router::new()
        .fallback(any(divided))
        .with_state((watches, others))
        .layer(from_fn(refused_in_form))
        .layer(CatchPanicLayer::custom(panicked))
}

fn admitted(face: KubernetesFace, places: &AdmissionPlaces, classify: Classify) -> Router {
    let admission =
        PathAdmission { places: places.clone(), classify, route: "/apis", largest_body: LARGEST_BODY };
    let handler = any(handle::handle).layer(from_fn_with_state(Arc::new(admission), admit));
    Router::new().fallback_service(handler.with_state(face))
}

/// Passes a request on to the half that it belongs to.
async fn divided(State((watches, others)): State<(Router, Router)>, request: Request) -> Response {
    let half = if handle::is_watch(request.method(), request.uri()) { watches } else { others };
    let Ok(response) = tower::ServiceExt::oneshot(half, request).await;
    response
}

/// The admission class of a request. Probes and descriptions cost next to nothing.
pub(crate) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    let ApiPath::Objects(ObjectPath { name, .. }) = ApiPath::read(path) else { return None };
    let is_list = *method == Method::GET && name.is_none();
    Some(if is_list { CallClass::List } else { CallClass::Operator })
}

/// Gives refusals of the parts below this face the form of Kubernetes.
async fn refused_in_form(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match response.extensions().get::<RequestProblem>() {
        Some(problem) => refused(problem),
        None => response,
    }
}

/// Returns a refusal in the form of Kubernetes.
pub(crate) fn refused(problem: &RequestProblem) -> Response {
    let failure = failure::ApiFailure::of_code(problem.status, problem.detail.clone());
    problem.retry_after.into_iter().fold(failure, failure::ApiFailure::retried_after).into_response()
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    failure::ApiFailure::internal(&format!("panic: {}", text.unwrap_or_default())).into_response()
}

/// Returns the method and the path of every operation.
#[cfg(test)]
pub(crate) fn operations() -> Vec<(String, String)> {
    let mut operations = ["/version", "/healthz", "/api", "/apis", "/openapi/v2", "/openapi/v3"]
        .map(|path| (format!("{PREFIX}{path}"), "GET".to_owned()))
        .to_vec();
    for kind in kinds::KINDS {
        let root = if kind.is_core() { "api" } else { "apis" };
        let within = if kind.is_namespaced { "/namespaces/namespace" } else { "" };
        let all = format!("{PREFIX}/{root}/{}{within}/{}", kind.api_version(), kind.plural);
        for verb in kind.verbs {
            let is_single = matches!(*verb, "get" | "update" | "patch" | "delete");
            let path = if is_single { format!("{all}/name") } else { all.clone() };
            operations.push((path, reviews::method(verb).unwrap().to_owned()));
        }
    }
    operations
}

/// Answers a probe.
fn healthy() -> Response {
    (StatusCode::OK, "ok").into_response()
}
