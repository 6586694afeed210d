//! Parts of requests and answers that several paths share.

use axum::response::Response;
use chassis::Fault;
use http::StatusCode;
use proto::device as record;
use tonic::Streaming;

use crate::{
    flightctl::{
        problem::FlightctlProblem,
        wire::{device::Device, meta::ObjectMeta, outcome::OutcomeStatus},
    },
    http::{
        answer::json,
        call::{fault, promised},
        problem::RequestProblem,
    },
};

/// Answers with a device.
pub(super) fn device(
    status: StatusCode,
    device: Option<record::Device>,
) -> Result<Response, FlightctlProblem> {
    Ok(json(status, &Device::shown(promised(device)?)?)?)
}

/// Returns the items of all messages of a list.
///
/// # Errors
/// When the service `part` breaks it off.
pub(super) async fn collected<M, R>(
    part: &'static str,
    mut messages: Streaming<M>,
    items: impl Fn(M) -> Vec<R>,
) -> Result<Vec<R>, Fault> {
    let mut found = Vec::new();
    while let Some(message) = messages.message().await.map_err(|status| fault(part, status))? {
        found.extend(items(message));
    }
    Ok(found)
}

/// Answers that a request was done, where there is no resource to show.
pub(super) fn done(message: impl Into<String>) -> Result<Response, FlightctlProblem> {
    Ok(json(StatusCode::OK, &OutcomeStatus::of(StatusCode::OK, message))?)
}

/// Returns the name of a resource that is written. A document may leave out the name that the path has.
///
/// # Errors
/// When the document has another name.
pub(super) fn agreed_name(path: &str, metadata: &ObjectMeta) -> Result<(), RequestProblem> {
    match metadata.name.as_deref() {
        Some(name) if name != path => {
            let text = format!("metadata.name: is '{name}', but '{path}' in the path");
            Err(RequestProblem::bad_request(text))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the name of a new resource.
///
/// # Errors
/// When the document has none.
pub(super) fn new_name(metadata: &ObjectMeta) -> Result<String, RequestProblem> {
    let name = metadata.name.clone().filter(|name| !name.is_empty());
    name.ok_or_else(|| RequestProblem::bad_request("metadata.name: is missing"))
}

/// Returns the revision that a resource must have; 0: any.
///
/// # Errors
/// When the version is none of ours.
pub(super) fn expected_revision(metadata: &ObjectMeta) -> Result<u64, RequestProblem> {
    let Some(version) = metadata.resource_version.as_deref().filter(|version| !version.is_empty()) else {
        return Ok(0);
    };
    version.parse().map_err(|_| {
        RequestProblem::bad_request(format!(
            "metadata.resourceVersion: '{version}' is no version of a resource"
        ))
    })
}
