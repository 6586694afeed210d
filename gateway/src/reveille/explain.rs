//! Explanations: why a node or a session is as it is.

mod shown;

use axum::{extract::State, response::Response};
use chassis::{Fault, limits::LONGEST_NAME, mesh::call_class::CallClass};
use http::{HeaderMap, Method, StatusCode};
use proto::insight::{ExplainComponentRequest, ExplainSessionRequest};

use self::shown::ShownExplanation;
use super::history;
use crate::{
    http::{
        answer::json,
        call::{answer, call, promised},
        document::{ApiOperation, BoundedText, query},
        extract::PathName,
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{INSIGHT, MeshHandle},
};

/// Path of the explanation of a component.
pub(super) const COMPONENT_PATH: &str = "/reveille/v1/explain/components/{id}";
/// Path of the explanation of a session.
pub(super) const SESSION_PATH: &str = "/reveille/v1/explain/sessions/{name}";

/// Beginning of both paths.
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
    let explained = explained.and_then(|answer| promised(answer.explanation)).map_err(refused)?;
    json(StatusCode::OK, &ShownExplanation::from(explained))
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
    let explained = explained.and_then(|answer| promised(answer.explanation)).map_err(refused)?;
    json(StatusCode::OK, &ShownExplanation::from(explained))
}

fn refused(fault: Fault) -> RequestProblem {
    match fault {
        Fault::NotFound { .. } => RequestProblem::of_status(StatusCode::NOT_FOUND, fault.to_string()),
        other => history::refused(other),
    }
}
