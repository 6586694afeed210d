//! Live changes as server-sent events: components, sessions and what happens to them, resumable where a stream broke.

mod place;
mod shown;
mod source;
mod stream;
mod wanted;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::mesh::call_class::CallClass;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

use self::{
    place::LivePlace,
    stream::LiveStream,
    wanted::{LiveFilter, parameters},
};
use super::history::{refuse_tenant, refused};
use crate::{
    http::{document::ApiOperation, problem::RequestProblem, query::QueryParameters},
    mesh::MeshHandle,
};

/// Path of the live changes.
pub(super) const PATH: &str = "/reveille/v1/live";

/// Media type of server-sent events.
const MEDIA_TYPE: &str = "text/event-stream";

pub(super) fn operation() -> ApiOperation {
    ApiOperation::new(
        "Changes of components and sessions, and their events, as server-sent events without end",
    )
    .answers_text_of(MEDIA_TYPE)
    .asks(parameters())
    .refuses(StatusCode::FORBIDDEN, "A tenant asks; live changes are for administrators")
}

/// The admission class of a request for live changes.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path == PATH && *method != Method::OPTIONS).then_some(CallClass::Watch)
}

pub(super) async fn follow(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    refuse_tenant(&headers, "live changes")?;
    let filter = LiveFilter::read(&query)?;
    let place = LivePlace::read(&headers)?;
    let stream = LiveStream::begin(&mesh, filter, place).await.map_err(refused)?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(stream.chunks())).into_response())
}
