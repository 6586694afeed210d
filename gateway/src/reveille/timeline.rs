//! Timeline: who did what to a resource, when and why, with the session behind it.

mod export;
mod wanted;

use axum::{extract::State, response::Response};
use chassis::mesh::call_class::CallClass;
use http::{HeaderMap, Method, StatusCode, header::ACCEPT};
use schemars::JsonSchema;
use serde::Serialize;

use self::wanted::{WantedEntries, parameters};
use super::history::{self, ShownEntry, refuse_tenant, refused};
use crate::{
    http::{answer::json, document::ApiOperation, problem::RequestProblem, query::QueryParameters},
    mesh::MeshHandle,
};

/// Path of the timeline.
pub(super) const PATH: &str = "/reveille/v1/timeline";

pub(super) fn operation() -> ApiOperation {
    ApiOperation::new(
        "Who did what to a resource, when and why, the newest first; or all of it, an entry a line",
    )
    .answers::<ShownTimeline>()
    .or_answers_text(export::MEDIA_TYPE)
    .asks(parameters())
    .refuses(StatusCode::FORBIDDEN, "A tenant asks; the timeline is for administrators")
}

/// The admission class of a request for the timeline, which may export all of it.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path == PATH && *method != Method::OPTIONS).then_some(CallClass::List)
}

/// Page of the timeline.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Timeline")]
pub(crate) struct ShownTimeline {
    /// Entries, the newest first.
    entries: Vec<ShownEntry>,
    /// Value of the parameter `before` for the page with older entries; absent: there are none. A page may have fewer
    /// entries than wanted, or none, and an older page nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    older: Option<String>,
    /// Value of the parameter `after` for the page with newer entries, by now or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<String>,
    /// Services that did not answer, so that the creation of sessions is not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unanswered: Vec<String>,
}

pub(super) async fn list(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    refuse_tenant(&headers, "the timeline")?;
    let wanted = WantedEntries::read(&query)?;
    if wants_lines(&headers) {
        return export::lines(mesh, wanted).await.map_err(refused);
    }
    let page = history::page(&mesh, wanted.page()).await.map_err(refused)?;
    let place = |text: String| Some(text).filter(|text| !text.is_empty());
    let timeline = ShownTimeline {
        entries: page.entries.into_iter().map(ShownEntry::from).collect(),
        older: place(page.older),
        newer: place(page.newer),
        unanswered: page.unanswered,
    };
    json(StatusCode::OK, &timeline)
}

/// Returns whether the client wants an entry a line.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|kind| kind.trim() == export::MEDIA_TYPE))
}
