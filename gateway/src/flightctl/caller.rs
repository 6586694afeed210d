//! Agents, as the certificates of their connections prove them (device reference 3.4).

use axum::{
    extract::{FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use chassis::{
    kinds::agent::{AgentCertificates, AgentDenial, AgentIdentity, AgentRefusal},
    mesh::tls::ClientCertificate,
    process::pause,
};
use http::{StatusCode, request::Parts};

use super::problem::FlightctlProblem;
use crate::http::{
    document::{ApiOperation, HandlerInput},
    extract::PathName,
    problem::RequestProblem,
};

/// Passes a request on with its caller as an extension. The certificate is judged anew with each request: a connection may
/// outlast it.
pub(super) async fn identified(
    State(certificates): State<AgentCertificates>,
    mut request: Request,
    next: Next,
) -> Response {
    match certificates.identify(request.extensions().get::<ClientCertificate>()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => {
            tracing::debug!(reason = %refusal, path = request.uri().path(), "agent refused");
            FlightctlProblem::from(refusal).into_response()
        }
    }
}

/// Agent of an enrolled device.
pub(super) struct DeviceCaller {
    caller: AgentIdentity,
    /// Name of the device.
    pub name: String,
}

impl DeviceCaller {
    /// Checks the name that a document gives the device; a document may leave it out.
    ///
    /// # Errors
    /// When the document is about another device.
    pub(super) fn check_document(&self, name: Option<&str>) -> Result<(), FlightctlProblem> {
        name.map_or(Ok(()), |name| self.caller.check_device(name)).map_err(FlightctlProblem::from)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for DeviceCaller {
    type Rejection = FlightctlProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, FlightctlProblem> {
        let caller = caller(parts)?;
        let name = caller.device()?.to_string();
        Ok(Self { caller, name })
    }
}

/// Agent of the device that the path names.
pub(super) struct OwnDevice(pub DeviceCaller);

impl<S: Send + Sync> FromRequestParts<S> for OwnDevice {
    type Rejection = FlightctlProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, FlightctlProblem> {
        let name = PathName::<String>::from_request_parts(parts, state).await?.into_text();
        let caller = caller(parts)?;
        caller.check_device(&name)?;
        Ok(Self(DeviceCaller { caller, name }))
    }
}

/// Agent that asks to be enrolled.
pub(super) struct EnrollingCaller;

impl<S: Send + Sync> FromRequestParts<S> for EnrollingCaller {
    type Rejection = FlightctlProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, FlightctlProblem> {
        caller(parts)?.check_enrolling()?;
        Ok(Self)
    }
}

fn caller(parts: &Parts) -> Result<AgentIdentity, FlightctlProblem> {
    let caller = parts.extensions.get::<AgentIdentity>().cloned();
    caller.ok_or_else(|| RequestProblem::internal("a request of an agent without its caller").into())
}

impl From<AgentDenial> for FlightctlProblem {
    fn from(denial: AgentDenial) -> Self {
        Self::of_status(StatusCode::FORBIDDEN, denial.to_string())
    }
}

impl From<AgentRefusal> for FlightctlProblem {
    fn from(refusal: AgentRefusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            AgentRefusal::NoCertificate
            | AgentRefusal::Unreadable
            | AgentRefusal::Ended
            | AgentRefusal::NoName
            | AgentRefusal::ForeignSerial(_)
            | AgentRefusal::Decommissioned(_) => Self::of_status(StatusCode::UNAUTHORIZED, text),
            // Agents enrol anew by this answer.
            AgentRefusal::Deleted(_) => Self::of_status(StatusCode::NOT_FOUND, text),
            AgentRefusal::RevocationsUnknown => RequestProblem::busy(text, pause::retry_after()).into(),
        }
    }
}

impl HandlerInput for DeviceCaller {
    fn describe(operation: &mut ApiOperation) {
        describe_caller(operation);
    }
}

impl HandlerInput for OwnDevice {
    fn describe(operation: &mut ApiOperation) {
        PathName::<String>::describe(operation);
        describe_caller(operation);
    }
}

impl HandlerInput for EnrollingCaller {
    fn describe(operation: &mut ApiOperation) {
        describe_caller(operation);
    }
}

fn describe_caller(operation: &mut ApiOperation) {
    operation.may_answer(StatusCode::UNAUTHORIZED, "The certificate does not count");
    operation.may_answer(StatusCode::FORBIDDEN, "The certificate is for another caller");
}
