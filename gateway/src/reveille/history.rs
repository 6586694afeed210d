//! Histories of all services, as insight joins them, for the paths that show events.

mod shown;
pub(super) mod words;

use chassis::{Fault, process::pause};
use chrono::DateTime;
use http::{HeaderMap, StatusCode};
use prost_types::Timestamp;
use proto::insight::{ListTimelineRequest, ListTimelineResponse};

pub(super) use self::shown::{ShownEntry, ShownEvent};
use super::TENANT;
use crate::{
    http::{
        call::{answer, call},
        problem::RequestProblem,
    },
    mesh::{INSIGHT, MeshHandle},
};

/// Most events of an answer.
pub(super) const MOST: u32 = 1000;

/// Most items of a parameter with several.
pub(super) const MOST_ITEMS: usize = 100;

/// Longest value of a parameter with several items: a hundred names.
pub(super) const LONGEST: usize = 16 << 10;

/// Longest text of a place.
pub(super) const LONGEST_PLACE: usize = 1 << 10;

/// Asks insight for a page.
///
/// # Errors
/// Insight refuses the request, or a service whose events are wanted does not answer.
pub(super) async fn page(
    mesh: &MeshHandle,
    request: ListTimelineRequest,
) -> Result<ListTimelineResponse, Fault> {
    answer(INSIGHT, mesh.timeline.clone().list_timeline(call(request))).await
}

/// Reads a time.
///
/// # Errors
/// The text is no time with a zone.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "is no time such as 2026-01-31T12:00:00Z".to_owned())?;
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
    Ok(Timestamp { seconds: time.timestamp(), nanos })
}

/// Refuses a request on behalf of a tenant.
///
/// # Errors
/// When a tenant asks for `what`.
pub(in crate::reveille) fn refuse_tenant(headers: &HeaderMap, what: &str) -> Result<(), RequestProblem> {
    if headers.get_all(TENANT).iter().all(|tenant| tenant.is_empty()) {
        return Ok(());
    }
    let detail =
        format!("{what} are for administrators; a tenant sees the state of its nodes in /v2/components");
    Err(RequestProblem::of_status(StatusCode::FORBIDDEN, detail))
}

/// Returns the problem of a refused call that names no resource.
pub(super) fn refused(fault: Fault) -> RequestProblem {
    match fault {
        Fault::Invalid(invalid) => RequestProblem::of_parameter(parameter(&invalid.field), &invalid.reason),
        Fault::Violations(_) => RequestProblem::bad_request(fault.to_string()),
        Fault::Busy { reason, retry_after } => RequestProblem::busy(reason, retry_after),
        Fault::Unavailable { .. } => {
            let problem = RequestProblem::of_status(StatusCode::SERVICE_UNAVAILABLE, fault.to_string());
            RequestProblem { retry_after: Some(pause::retry_after()), ..problem }
        }
        Fault::NotFound { .. }
        | Fault::AlreadyExists { .. }
        | Fault::Locked { .. }
        | Fault::Conflict { .. }
        | Fault::Stale { .. }
        | Fault::ResumeExpired(_)
        | Fault::Internal(_) => RequestProblem::internal(&fault.to_string()),
    }
}

/// Returns the parameter that a field of a request to insight was made of.
fn parameter(field: &str) -> &str {
    match field {
        "events" => "kind",
        "resources" => "resource",
        "subjects" => "name",
        other => other,
    }
}
