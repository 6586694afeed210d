//! `/devices/{name}/status` (device reference 2.2), and the time at which the agent was last seen.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::Fault;
use http::StatusCode;
use proto::device::{self as record, GetDeviceLastSeenRequest, ReplaceDeviceStatusRequest, StatusDocument};

use super::{
    answers::{self, agreed_name, expected_revision},
    devices::read,
};
use crate::{
    flightctl::{
        FlightctlFace,
        patch::{AttemptFailure, patched, settled},
        problem::FlightctlProblem,
        wire::{
            device::{Device, LastSeen},
            moment::Moment,
            patch::PatchOperation,
        },
    },
    http::{
        answer::json,
        call::{answer, call},
        extract::{JsonBody, PathName},
        problem::RequestProblem,
    },
    mesh::REGISTRY,
};

pub(super) async fn put(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(device): JsonBody<Device>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let expected_revision = expected_revision(&device.metadata)?;
    let document = status_document(&name, device)?;
    let request =
        ReplaceDeviceStatusRequest { name, document: Some(document), expected_revision, is_patch: false };
    answers::device(StatusCode::OK, replaced(&face, request).await?)
}

/// Returns the status document of a device that an agent writes, or a person in its place.
///
/// # Errors
/// When the document is about another device, or has no status.
pub(crate) fn status_document(name: &str, device: Device) -> Result<StatusDocument, RequestProblem> {
    agreed_name(name, &device.metadata)?;
    let status = device.status.ok_or_else(|| RequestProblem::bad_request("status: is missing"))?;
    Ok(status.into_record())
}

async fn replaced(
    face: &FlightctlFace,
    request: ReplaceDeviceStatusRequest,
) -> Result<Option<record::Device>, Fault> {
    let mut client = face.mesh.devices.clone();
    Ok(answer(REGISTRY, client.replace_device_status(call(request))).await?.device)
}

pub(super) async fn patch(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(operations): JsonBody<Vec<PatchOperation>>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    settled(|| patch_once(&face, &name, &operations)).await
}

async fn patch_once(
    face: &FlightctlFace,
    name: &str,
    operations: &[PatchOperation],
) -> Result<Response, AttemptFailure> {
    let (revision, document) = patched_status(read(face, name.to_owned()).await?, operations)?;
    let request = ReplaceDeviceStatusRequest {
        name: name.to_owned(),
        document: Some(document),
        expected_revision: revision,
        is_patch: true,
    };
    Ok(answers::device(StatusCode::OK, replaced(face, request).await?)?)
}

/// Returns the status document that a patch makes of a device, and the revision of the device.
///
/// # Errors
/// When the patch does not fit the device, or changes more than its status.
pub(crate) fn patched_status(
    device: record::Device,
    operations: &[PatchOperation],
) -> Result<(u64, StatusDocument), RequestProblem> {
    let revision = device.revision;
    let verdict = device.reported.as_ref().and_then(|report| report.applications_verdict.clone());
    let before = Device::shown(device)?;
    let after: Device = patched(&before, operations, &["/metadata", "/spec"])?;
    let shown = before.status.map(|status| status.applications_summary);
    let status = after.status.ok_or_else(|| RequestProblem::bad_request("status: cannot be removed"))?;
    let is_verdict_changed = shown.as_ref() != Some(&status.applications_summary);
    let mut document = status.into_record();
    // What is shown may follow from the silence of the agent, and is then no verdict of its own.
    if let Some(report) = document.report.as_mut().filter(|_| !is_verdict_changed) {
        report.applications_verdict = verdict;
    }
    Ok((revision, document))
}

pub(super) async fn last_seen(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    let request = GetDeviceLastSeenRequest { name: name.into_text() };
    let seen = answer(REGISTRY, face.mesh.devices.clone().get_device_last_seen(call(request))).await?;
    match seen.last_seen {
        Some(time) => Ok(json(StatusCode::OK, &LastSeen { last_seen: Moment(time) })?),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}
