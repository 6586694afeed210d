//! Calls to the services behind the gateway: their deadline, and the fault of a failed one.

use std::{future::Future, time::Duration};

use chassis::Fault;
use tonic::{Code, Request, Response, Status};

/// Deadline of a service for its answer. Clients of the oldest contract gave up after 30 seconds and expect an answer,
/// good or bad, within that time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Returns a call that its service may abandon once its caller has stopped waiting.
pub(crate) fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

/// Waits for the answer of the service `part`.
///
/// # Errors
/// The refusal of the service, or [`Fault::Unavailable`] when the deadline has passed.
pub(crate) async fn answer<T>(
    part: &'static str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Fault> {
    answer_within(DEADLINE, part, call).await
}

/// Waits for the answer as [`answer`] does, for calls that are only useful when they are quick.
///
/// # Errors
/// As [`answer`].
pub(crate) async fn answer_within<T>(
    deadline: Duration,
    part: &'static str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Fault> {
    let outcome = tokio::time::timeout(deadline, call).await;
    let outcome = outcome.unwrap_or_else(|_| Err(Status::deadline_exceeded("")));
    outcome.map(Response::into_inner).map_err(|status| fault(part, status))
}

/// Returns the fault of a status of the service `part`.
pub(crate) fn fault(part: &'static str, status: Status) -> Fault {
    if status.code() == Code::DeadlineExceeded {
        return Fault::unavailable(part, "did not answer in time");
    }
    match Fault::from(status) {
        // A connection does not know which service is at its other end.
        Fault::Unavailable { what, reason } if what == "service" => Fault::unavailable(part, reason),
        other => other,
    }
}

/// Returns a member that every answer of a service has.
///
/// # Errors
/// [`Fault::Internal`] when the service left it out.
pub(crate) fn promised<T>(member: Option<T>) -> Result<T, Fault> {
    member.ok_or_else(|| Fault::Internal("a service answered without the resource".to_owned()))
}
