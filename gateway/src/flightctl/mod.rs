//! The contract of Flight Control, for edge devices: clients of that API work against the gateway.
//!
//! - `wire`: the JSON, and its conversion from and to records
//! - `routes`: which path calls which service; `events`: events and their selectors
//! - `patch`: changes by JSON patch; `pages`: tokens of later pages
//! - `version`: the header with the version of the contract; `problem`: refusals
//! - `caller`: agents, as their certificates prove them
//! - `face`: the state of the handlers
//!
//! Agents have a port of their own, whose paths are a few of the contract's: everything that an agent does for its own
//! device, and nothing that people do.

use std::any::Any;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use chassis::{kinds::agent::AgentCertificates, mesh::call_class::CallClass};
use http::{Method, StatusCode};
use tower_http::catch_panic::CatchPanicLayer;

use crate::http::{
    admission::AdmissionPlaces, document::RefusalForm, endpoint::routed, problem::RequestProblem,
};

mod caller;
mod events;
mod face;
mod pages;
mod patch;
mod problem;
mod routes;
mod version;
pub(crate) mod wire;

pub(crate) use face::FlightctlFace;
use problem::FlightctlProblem;
pub(crate) use routes::endpoints;
pub(crate) use version::CONTRACT as VERSION;
use wire::outcome::OutcomeStatus;

/// Prefix of the paths on the common port.
pub(crate) const PREFIX: &str = "/flightctl";

/// Form of refusals in descriptions.
pub(crate) const REFUSALS: RefusalForm = RefusalForm::json::<OutcomeStatus>();

/// Prefix of the paths of the contract.
const BASE: &str = "/api/v1/";

/// Returns the paths of this face.
pub(crate) fn router(face: FlightctlFace, places: &AdmissionPlaces) -> Router {
    in_form(routed(endpoints(), places, class_of).with_state(face))
}

/// Returns the paths of the port of agents.
pub(crate) fn agent_router(
    face: FlightctlFace,
    certificates: AgentCertificates,
    places: &AdmissionPlaces,
) -> Router {
    let paths = routed(routes::agent_endpoints(), places, class_for_agents).with_state(face);
    in_form(paths.layer(from_fn_with_state(certificates, caller::identified)))
}

fn in_form(paths: Router) -> Router {
    paths
        .method_not_allowed_fallback(no_such_method)
        .fallback(async || FlightctlProblem::no_such_path())
        .layer(from_fn(version::negotiated))
        .layer(from_fn(refused_in_form))
        .layer(CatchPanicLayer::custom(panicked))
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable())
}

/// The admission class of a request. A poll for a rendered spec lasts longer than any class has the places for; the
/// registry bounds the polls that wait.
pub(crate) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    let path = path.strip_prefix(PREFIX).unwrap_or(path).strip_prefix(BASE)?;
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        _ if *method == Method::OPTIONS => None,
        ["devices", _, "rendered"] => None,
        ["devices" | "fleets" | "enrollmentrequests" | "events" | "labels"] if reads => Some(CallClass::List),
        ["devices", _, "status"] => Some(CallClass::Report),
        ["devices" | "fleets" | "enrollmentrequests" | "deviceactions", ..] => Some(CallClass::Operator),
        _ => None,
    }
}

/// The admission class of a request of an agent.
fn class_for_agents(_method: &Method, path: &str) -> Option<CallClass> {
    let is_poll = path.ends_with("/rendered");
    // The registry bounds the polls that wait.
    (!is_poll).then_some(CallClass::Report)
}

/// Returns whether a request of an agent needs no place: none does, as polls keep their connections at work.
pub(crate) fn is_vital_for_agents(_method: &Method, _path: &str) -> bool {
    false
}

/// Gives refusals the form of this contract.
async fn refused_in_form(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match response.extensions().get::<RequestProblem>() {
        Some(problem) => problem::in_form(problem.clone(), response.headers()),
        None => response,
    }
}

/// Returns a refusal in the form of this contract.
pub(crate) fn refused(problem: RequestProblem) -> Response {
    let headers = problem.clone().into_response().headers().clone();
    problem::in_form(problem, &headers)
}

/// Answers OPTIONS of every path. The framework lists the methods in the `Allow` header of this answer.
async fn no_such_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    FlightctlProblem::method_not_allowed().into_response()
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let problem = RequestProblem::internal(&format!("panic: {}", text.unwrap_or_default()));
    problem::in_form(problem, &http::HeaderMap::new())
}
