//! `/certificatesigningrequests`: the renewal of an agent's certificate, which is signed at once (device reference 3.4). The
//! latest renewal of a device is on record, and no earlier one.

use axum::{extract::State, response::Response};
use chassis::Fault;
use http::StatusCode;
use proto::fleet::{self as record, RenewCertificateRequest};

use super::{answers::new_name, enrolment};
use crate::{
    flightctl::{
        FlightctlFace, caller::DeviceCaller, problem::FlightctlProblem, wire::renewal::SigningRequest,
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName},
    },
    mesh::FLEETS,
};

/// Kind of resource in faults.
const RENEWAL: &str = "certificate_renewal";

pub(super) async fn create(
    State(face): State<FlightctlFace>,
    caller: DeviceCaller,
    JsonBody(wanted): JsonBody<SigningRequest>,
) -> Result<Response, FlightctlProblem> {
    let renewal_name = new_name(&wanted.metadata)?;
    let request = RenewCertificateRequest { name: caller.name, renewal_name, csr: wanted.spec.pem()? };
    let mut client = face.mesh.enrolment.clone();
    let renewed = promised(answer(FLEETS, client.renew_certificate(call(request))).await?.request)?;
    shown(StatusCode::CREATED, renewed)
}

pub(super) async fn show(
    State(face): State<FlightctlFace>,
    caller: DeviceCaller,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let known = enrolment::read(&face, caller.name).await?;
    match &known.renewal {
        Some(renewal) if renewal.name == name => shown(StatusCode::OK, known),
        Some(_) | None => Err(Fault::not_found(RENEWAL, &name).into()),
    }
}

fn shown(status: StatusCode, request: record::EnrolmentRequest) -> Result<Response, FlightctlProblem> {
    let renewal = promised(request.renewal)?;
    Ok(json(status, &SigningRequest::shown(renewal, &request.certificate))?)
}
