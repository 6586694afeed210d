//! Paths about the service, which clients call first. The gateway authenticates no caller.

use axum::response::Response;
use http::StatusCode;

use super::answers::done;
use crate::{
    flightctl::{
        problem::FlightctlProblem,
        wire::service::{OrganizationList, ServiceVersion},
    },
    http::{answer::json, problem::RequestProblem},
};

/// Name of the only organisation.
const ORGANIZATION: &str = "00000000-0000-0000-0000-000000000000";

pub(super) async fn version() -> Result<Response, RequestProblem> {
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    json(StatusCode::OK, &ServiceVersion { version })
}

pub(super) async fn organizations() -> Result<Response, RequestProblem> {
    json(StatusCode::OK, &OrganizationList::of_one(ORGANIZATION, "Reveille"))
}

/// Tells clients to go on without a login.
pub(super) async fn auth_config() -> FlightctlProblem {
    FlightctlProblem::of_status(StatusCode::IM_A_TEAPOT, "authentication is off")
}

pub(super) async fn auth_validate() -> Result<Response, FlightctlProblem> {
    done("authentication is off")
}
