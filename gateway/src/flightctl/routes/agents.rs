//! Every path of the port of agents (device reference 3.4): an agent reads its own device, polls for its spec, reports its
//! status and renews its certificate; one that is not enrolled asks to be. What an agent may report is what its status
//! document carries (device reference 2.2).

use axum::{extract::State, response::Response};
use chassis::Fault;
use http::StatusCode;
use proto::device::{self as record, ReportDeviceStatusRequest};

use super::{
    answers::{self, expected_revision},
    device_status::{patched_status, status_document},
    devices, enrolment,
    rendered::{self, PollRequest},
    renewals,
};
use crate::{
    flightctl::{
        FlightctlFace,
        caller::{EnrollingCaller, OwnDevice},
        patch::{AttemptFailure, settled},
        problem::FlightctlProblem,
        wire::{device::Device, enrolment::EnrolmentRequest, patch::PatchOperation, renewal::SigningRequest},
    },
    http::{
        call::{answer, call},
        document::ApiOperation,
        endpoint::ApiEndpoint,
        extract::{JsonBody, PathName},
        query::QueryParameters,
    },
    mesh::REGISTRY,
};

/// Tag of the paths.
const AGENTS: &str = "agents of edge devices";

/// The paths of the port of agents.
pub(crate) fn agent_endpoints() -> Vec<ApiEndpoint<FlightctlFace>> {
    let about = ApiOperation::new;
    vec![
        at("/api/v1/devices/{name}").get(show, about("Shows the agent's device").answers::<Device>()),
        at("/api/v1/devices/{name}/rendered")
            .get(poll, about("The rendered spec of the agent's device").answers::<Device>()),
        at("/api/v1/devices/{name}/status")
            .put(report, about("Reports the status of the agent's device").answers::<Device>())
            .patch(patch, about("Patches the status of the agent's device").answers::<Device>()),
        at("/api/v1/enrollmentrequests").post(
            submit,
            about("Asks for a device to be enrolled").answers_with::<EnrolmentRequest>(StatusCode::CREATED),
        ),
        at("/api/v1/enrollmentrequests/{name}")
            .get(enrolment, about("Shows a request to be enrolled").answers::<EnrolmentRequest>()),
        at("/api/v1/certificatesigningrequests").post(
            renewals::create,
            about("Renews the certificate of the agent").answers_with::<SigningRequest>(StatusCode::CREATED),
        ),
        at("/api/v1/certificatesigningrequests/{name}")
            .get(renewals::show, about("Shows the latest renewal").answers::<SigningRequest>()),
    ]
}

fn at(path: &'static str) -> ApiEndpoint<FlightctlFace> {
    ApiEndpoint::at(path, AGENTS)
}

async fn show(
    State(face): State<FlightctlFace>,
    OwnDevice(caller): OwnDevice,
) -> Result<Response, FlightctlProblem> {
    answers::device(StatusCode::OK, Some(devices::read(&face, caller.name).await?))
}

async fn poll(
    State(face): State<FlightctlFace>,
    OwnDevice(caller): OwnDevice,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let known = rendered::known_version(&query)?;
    let request = PollRequest { name: caller.name, known, for_agent: true };
    rendered::rendered(rendered::poll(&face.mesh, request).await?)
}

async fn report(
    State(face): State<FlightctlFace>,
    OwnDevice(caller): OwnDevice,
    JsonBody(device): JsonBody<Device>,
) -> Result<Response, FlightctlProblem> {
    caller.check_document(device.metadata.name.as_deref())?;
    let expected_revision = expected_revision(&device.metadata)?;
    let document = Some(status_document(&caller.name, device)?);
    let request =
        ReportDeviceStatusRequest { name: caller.name, document, expected_revision, is_patch: false };
    answers::device(StatusCode::OK, reported(&face, request).await?)
}

async fn patch(
    State(face): State<FlightctlFace>,
    OwnDevice(caller): OwnDevice,
    JsonBody(operations): JsonBody<Vec<PatchOperation>>,
) -> Result<Response, FlightctlProblem> {
    settled(|| patch_once(&face, &caller.name, &operations)).await
}

async fn patch_once(
    face: &FlightctlFace,
    name: &str,
    operations: &[PatchOperation],
) -> Result<Response, AttemptFailure> {
    let (revision, document) = patched_status(devices::read(face, name.to_owned()).await?, operations)?;
    let request = ReportDeviceStatusRequest {
        name: name.to_owned(),
        document: Some(document),
        expected_revision: revision,
        is_patch: true,
    };
    Ok(answers::device(StatusCode::OK, reported(face, request).await?)?)
}

async fn reported(
    face: &FlightctlFace,
    request: ReportDeviceStatusRequest,
) -> Result<Option<record::Device>, Fault> {
    let mut client = face.mesh.device_agents.clone();
    Ok(answer(REGISTRY, client.report_device_status(call(request))).await?.device)
}

async fn submit(
    State(face): State<FlightctlFace>,
    _: EnrollingCaller,
    request: JsonBody<EnrolmentRequest>,
) -> Result<Response, FlightctlProblem> {
    enrolment::create(State(face), request).await
}

async fn enrolment(
    State(face): State<FlightctlFace>,
    _: EnrollingCaller,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    enrolment::show(State(face), name).await
}
