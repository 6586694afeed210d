//! Explanations: why a node, session, host or device is as it is.

mod shown;

use axum::{extract::State, response::Response};
use chassis::{Fault, limits::LONGEST_NAME, mesh::call_class::CallClass};
use http::{HeaderMap, Method, StatusCode};
use proto::insight::{
    ExplainComponentRequest, ExplainDeviceRequest, ExplainHostRequest, ExplainSessionRequest, Explanation,
};

use self::shown::ShownExplanation;
use super::history;
use crate::{
    http::{
        answer::json,
        call::{answer, call, promised},
        document::{ApiOperation, BoundedText, query},
        extract::{PathName, PathNames},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{INSIGHT, MeshHandle},
};

/// Path of the explanation of a component.
pub(super) const COMPONENT_PATH: &str = "/reveille/v1/explain/components/{id}";
/// Path of the explanation of a session.
pub(super) const SESSION_PATH: &str = "/reveille/v1/explain/sessions/{name}";

/// Path of the explanation of a bare-metal host.
pub(super) const HOST_PATH: &str = "/reveille/v1/explain/hosts/{namespace}/{name}";
/// Path of the explanation of an edge device.
pub(super) const DEVICE_PATH: &str = "/reveille/v1/explain/devices/{name}";

/// Beginning of the paths.
const BEGINNING: &str = "/reveille/v1/explain/";

type ResourceName = BoundedText<1, LONGEST_NAME>;

pub(super) fn component_operation() -> ApiOperation {
    operation("Why a node is as it is, with the evidence and the next step", "There is no such component")
}

pub(super) fn session_operation() -> ApiOperation {
    let tenant =
        query::<BoundedText<0, LONGEST_NAME>>("tenant", "Tenant of the session; absent or empty: none");
    operation("Why a session is as it is, with the causes of its nodes", "There is no such session")
        .asks([tenant])
}

pub(super) fn host_operation() -> ApiOperation {
    operation(
        "Why a bare-metal host is as it is, with the evidence and the next step",
        "There is no such host",
    )
}

pub(super) fn device_operation() -> ApiOperation {
    operation(
        "Why an edge device, or its request for enrolment, is as it is",
        "There is no such device, and no request for its enrolment",
    )
}

fn operation(summary: &'static str, unknown: &'static str) -> ApiOperation {
    ApiOperation::new(summary)
        .answers::<ShownExplanation>()
        .refuses(StatusCode::NOT_FOUND, unknown)
        .refuses(StatusCode::FORBIDDEN, "A tenant asks; explanations are for administrators")
}

/// The admission class of a request for an explanation.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path.starts_with(BEGINNING) && *method != Method::OPTIONS).then_some(CallClass::Operator)
}

pub(super) async fn component(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    id: PathName<ResourceName>,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "explanations")?;
    let request = ExplainComponentRequest { component_id: id.into_text() };
    let explained = answer(INSIGHT, mesh.explanations.clone().explain_component(call(request))).await;
    respond(explained.map(|answer| answer.explanation))
}

pub(super) async fn session(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: PathName<ResourceName>,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "explanations")?;
    let tenant = query.text("tenant", 0..=LONGEST_NAME)?.unwrap_or_default().to_owned();
    let request = ExplainSessionRequest { name: name.into_text(), tenant };
    let explained = answer(INSIGHT, mesh.explanations.clone().explain_session(call(request))).await;
    respond(explained.map(|answer| answer.explanation))
}

pub(super) async fn host(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    names: PathNames,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "explanations")?;
    let (namespace, name) = names.into_texts();
    let request = ExplainHostRequest { namespace, name };
    let explained = answer(INSIGHT, mesh.explanations.clone().explain_host(call(request))).await;
    respond(explained.map(|answer| answer.explanation))
}

pub(super) async fn device(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: PathName<ResourceName>,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "explanations")?;
    let request = ExplainDeviceRequest { name: name.into_text() };
    let explained = answer(INSIGHT, mesh.explanations.clone().explain_device(call(request))).await;
    respond(explained.map(|answer| answer.explanation))
}

fn respond(explained: Result<Option<Explanation>, Fault>) -> Result<Response, RequestProblem> {
    let explanation = explained.and_then(promised).map_err(refused)?;
    json(StatusCode::OK, &ShownExplanation::from(explanation))
}

fn refused(fault: Fault) -> RequestProblem {
    match fault {
        Fault::NotFound { .. } => RequestProblem::of_status(StatusCode::NOT_FOUND, fault.to_string()),
        other => history::refused(other),
    }
}
