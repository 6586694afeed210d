//! Changes by JSON patch (device reference 4.4): the document that a client sees is patched, and what may be changed of
//! it is written if the resource is still the one that was patched.

use axum::response::Response;
use chassis::Fault;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{problem::FlightctlProblem, wire::patch::PatchOperation};
use crate::http::{extract::parse, problem::RequestProblem};

/// Attempts of a write by a client that names no version, while others write too.
const ATTEMPTS: u32 = 10;

/// Members that no patch may change. Other members that the service writes have no effect.
const IMMUTABLE: [&str; 3] = ["/apiVersion", "/kind", "/metadata/name"];

/// Returns the document after a patch. `further` are places that must stay as they are, beside those that always must.
///
/// # Errors
/// When the patch does not fit the document, changes what must stay, or leaves no document of that form.
pub(crate) fn patched<D: Serialize + DeserializeOwned>(
    document: &D,
    operations: &[PatchOperation],
    further: &[&str],
) -> Result<D, RequestProblem> {
    let internal = |error: serde_json::Error| RequestProblem::internal(&error.to_string());
    let before = serde_json::to_value(document).map_err(internal)?;
    let operations = serde_json::to_value(operations).map_err(internal)?;
    let patch: json_patch::Patch =
        serde_json::from_value(operations).map_err(|error| refused(&error.to_string()))?;
    let mut after = before.clone();
    json_patch::patch(&mut after, &patch).map_err(|error| refused(&error.to_string()))?;
    let changed = IMMUTABLE.iter().chain(further).find(|place| differs(&before, &after, place));
    if let Some(place) = changed {
        let field = place.trim_start_matches('/').replace('/', ".");
        return Err(RequestProblem::bad_request(format!("{field}: cannot be changed")));
    }
    parse(after.to_string().as_bytes())
}

fn differs(before: &Value, after: &Value, place: &str) -> bool {
    before.pointer(place) != after.pointer(place)
}

fn refused(text: &str) -> RequestProblem {
    RequestProblem::bad_request(format!("patch: {text}"))
}

/// Makes attempts until the resource is the one that was read.
///
/// # Errors
/// As an attempt, and when others have changed the resource during each.
pub(crate) async fn settled<F>(mut attempt: impl FnMut() -> F) -> Result<Response, FlightctlProblem>
where
    F: Future<Output = Result<Response, AttemptFailure>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(AttemptFailure::Overtaken) => {}
            Err(AttemptFailure::Refused(problem)) => return Err(problem),
            Ok(response) => return Ok(response),
        }
    }
    attempt().await.map_err(|failure| match failure {
        AttemptFailure::Overtaken => FlightctlProblem::conflict("others change the resource all the time"),
        AttemptFailure::Refused(problem) => problem,
    })
}

/// Reason why an attempt to change a resource failed.
#[derive(Debug)]
pub(crate) enum AttemptFailure {
    /// Conflict with a change of the resource since it was read.
    Overtaken,
    /// Another attempt would not help.
    Refused(FlightctlProblem),
}

impl From<Fault> for AttemptFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Conflict { .. } => Self::Overtaken,
            other => Self::Refused(other.into()),
        }
    }
}

impl From<FlightctlProblem> for AttemptFailure {
    fn from(problem: FlightctlProblem) -> Self {
        Self::Refused(problem)
    }
}

impl From<RequestProblem> for AttemptFailure {
    fn from(problem: RequestProblem) -> Self {
        Self::Refused(problem.into())
    }
}
