//! `/enrollmentrequests` (device reference 3.3).

use axum::{extract::State, response::Response};
use chassis::Fault;
use http::StatusCode;
use proto::fleet::{
    self as record, ApproveEnrolmentRequestRequest, DeleteEnrolmentRequestRequest,
    GetEnrolmentRequestRequest, ListEnrolmentRequestsRequest, SubmitEnrolmentRequestRequest,
};

use super::{
    answers::{agreed_name, collected, done, new_name},
    selection::selector,
};
use crate::{
    flightctl::{
        FlightctlFace,
        pages::{NamePlace, WantedPage},
        patch::patched,
        problem::FlightctlProblem,
        wire::{
            enrolment::{EnrolmentDecision, EnrolmentList, EnrolmentRequest},
            meta::api_version,
            patch::PatchOperation,
            words::Word,
        },
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName},
        query::QueryParameters,
    },
    mesh::FLEETS,
};

/// Kind of resource in faults.
const REQUEST: &str = "enrolment_request";

/// Person in approvals: the gateway authenticates no caller.
const PERSON: &str = "user:client";

pub(super) async fn list(
    State(face): State<FlightctlFace>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let page = WantedPage::<NamePlace>::read(&query)?;
    let request = ListEnrolmentRequestsRequest {
        field_selector: selector(&query, "fieldSelector")?,
        start_after: page.after(),
        page_size: page.limit.saturating_add(1),
    };
    let mut client = face.mesh.enrolment.clone();
    let messages = answer(FLEETS, client.list_enrolment_requests(call(request))).await?;
    let found = collected(FLEETS, messages, |message| message.requests).await?;
    let (found, metadata) = page.cut(found, |request| request.name.clone());
    let items = found.into_iter().map(EnrolmentRequest::shown).collect::<Result<_, _>>()?;
    let kind = Word::stored("EnrollmentRequestList");
    Ok(json(StatusCode::OK, &EnrolmentList { api_version: api_version(), kind, metadata, items })?)
}

pub(super) async fn show(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    shown(StatusCode::OK, Some(read(&face, name.into_text()).await?))
}

/// Returns a request.
pub(crate) async fn read(face: &FlightctlFace, name: String) -> Result<record::EnrolmentRequest, Fault> {
    let request = GetEnrolmentRequestRequest { name };
    promised(answer(FLEETS, face.mesh.enrolment.clone().get_enrolment_request(call(request))).await?.request)
}

fn shown(
    status: StatusCode,
    request: Option<record::EnrolmentRequest>,
) -> Result<Response, FlightctlProblem> {
    Ok(json(status, &EnrolmentRequest::shown(promised(request)?)?)?)
}

/// Stores a request.
pub(crate) async fn submit(
    face: &FlightctlFace,
    name: String,
    request: EnrolmentRequest,
) -> Result<Option<record::EnrolmentRequest>, Fault> {
    let request = SubmitEnrolmentRequestRequest { request: Some(request.into_record(name)) };
    Ok(answer(FLEETS, face.mesh.enrolment.clone().submit_enrolment_request(call(request))).await?.request)
}

async fn is_stored(face: &FlightctlFace, name: &str) -> Result<bool, Fault> {
    match read(face, name.to_owned()).await {
        Ok(_) => Ok(true),
        Err(Fault::NotFound { .. }) => Ok(false),
        Err(fault) => Err(fault),
    }
}

pub(super) async fn create(
    State(face): State<FlightctlFace>,
    JsonBody(request): JsonBody<EnrolmentRequest>,
) -> Result<Response, FlightctlProblem> {
    let name = new_name(&request.metadata)?;
    if is_stored(&face, &name).await? {
        return Err(Fault::AlreadyExists { kind: REQUEST.to_owned(), name }.into());
    }
    shown(StatusCode::CREATED, submit(&face, name, request).await?)
}

/// Replaces a request, or creates it.
pub(super) async fn put(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(request): JsonBody<EnrolmentRequest>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    agreed_name(&name, &request.metadata)?;
    let status = if is_stored(&face, &name).await? { StatusCode::OK } else { StatusCode::CREATED };
    shown(status, submit(&face, name, request).await?)
}

pub(super) async fn patch(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(operations): JsonBody<Vec<PatchOperation>>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let before = EnrolmentRequest::shown(read(&face, name.clone()).await?)?;
    let after = patched(&before, &operations, &["/status"])?;
    shown(StatusCode::OK, submit(&face, name, after).await?)
}

pub(super) async fn approve(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(decision): JsonBody<EnrolmentDecision>,
) -> Result<Response, FlightctlProblem> {
    let request = ApproveEnrolmentRequestRequest {
        name: name.into_text(),
        approved: decision.approved,
        labels: decision.labels.unwrap_or_default(),
        replace_labels: decision.replace_labels.unwrap_or(false),
        approved_by: PERSON.to_owned(),
    };
    let mut client = face.mesh.enrolment.clone();
    let approved = answer(FLEETS, client.approve_enrolment_request(call(request))).await?;
    let status = EnrolmentRequest::shown(promised(approved.request)?)?.status;
    Ok(json(StatusCode::OK, &promised(status.and_then(|status| status.approval))?)?)
}

pub(super) async fn delete(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let request = DeleteEnrolmentRequestRequest { name: name.clone() };
    answer(FLEETS, face.mesh.enrolment.clone().delete_enrolment_request(call(request))).await?;
    done(format!("EnrollmentRequest of name \"{name}\" deleted"))
}
