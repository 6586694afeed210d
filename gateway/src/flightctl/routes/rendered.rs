//! `/devices/{name}/rendered`: the spec for the agent, as a poll that waits for the next one (device reference 3.4).

use std::time::Duration;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{
    Fault,
    mesh::call_class::{self, CallClass},
};
use http::StatusCode;
use proto::device::{self as record, PollRenderedDeviceRequest};
use tonic::Request;

use super::answers;
use crate::{
    flightctl::{FlightctlFace, problem::FlightctlProblem},
    http::{call::answer_within, extract::PathName, problem::RequestProblem, query::QueryParameters},
    mesh::{MeshHandle, REGISTRY},
};

/// Longest wait for another version.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Time beside the wait in which the registry has to answer.
const GRACE: Duration = Duration::from_secs(30);

/// Longest version that an agent may know.
pub(super) const LONGEST_VERSION: usize = 1000;

/// Shows the rendered spec to a person. The device does not count as seen.
pub(super) async fn show(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let known = known_version(&query)?;
    rendered(poll(&face.mesh, PollRequest { name: name.into_text(), known, for_agent: false }).await?)
}

/// Returns the version that the poller has, in its words; none: it wants the spec in any case.
///
/// # Errors
/// When it is longer than any version.
pub(super) fn known_version(query: &QueryParameters) -> Result<Option<String>, RequestProblem> {
    Ok(query.text("knownRenderedVersion", 0..=LONGEST_VERSION)?.map(str::to_owned))
}

/// Poll for the rendered spec of a device.
#[derive(Debug)]
pub(crate) struct PollRequest {
    pub name: String,
    /// Version that the poller has, in its words; none: it wants the spec in any case.
    pub known: Option<String>,
    /// Whether the agent polls, which makes its device count as seen.
    pub for_agent: bool,
}

/// Returns the device with its rendered spec once there is another version than the known one; none: the wait is over.
///
/// # Errors
/// When there is no such device, nothing was rendered for it, or the registry does not answer.
pub(crate) async fn poll(mesh: &MeshHandle, poll: PollRequest) -> Result<Option<record::Device>, Fault> {
    let mut request = Request::new(PollRenderedDeviceRequest {
        name: poll.name,
        known_version: poll.known,
        // As long as the registry allows.
        longest_wait: None,
        is_onlooker: !poll.for_agent,
    });
    let deadline = LONGEST_WAIT + GRACE;
    request.set_timeout(deadline);
    let mut client = mesh.device_agents.clone();
    let answered = answer_within(deadline, REGISTRY, client.poll_rendered_device(request));
    // The registry bounds the polls that wait within this class.
    Ok(call_class::scope(CallClass::Report, answered).await?.device)
}

/// Answers a poll.
pub(crate) fn rendered(device: Option<record::Device>) -> Result<Response, FlightctlProblem> {
    match device {
        Some(_) => answers::device(StatusCode::OK, device),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}
