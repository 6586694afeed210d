//! Decisions of people about devices: their end (device reference 3.5), and what goes on after a restored database
//! (device reference 2.7).

use axum::{extract::State, response::Response};
use http::StatusCode;
use proto::device::{DecommissionDeviceRequest, DeviceFilter, ResumeDevicesRequest};

use super::answers;
use crate::{
    flightctl::{
        FlightctlFace,
        problem::FlightctlProblem,
        wire::{
            service::{ResumeAnswer, ResumeRequest},
            spec::Decommission,
        },
    },
    http::{
        answer::json,
        call::{answer, call},
        extract::{JsonBody, PathName},
    },
    mesh::REGISTRY,
};

pub(super) async fn decommission(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(wish): JsonBody<Decommission>,
) -> Result<Response, FlightctlProblem> {
    let request = DecommissionDeviceRequest { name: name.into_text(), target: wish.target.into_text() };
    let ending = answer(REGISTRY, face.mesh.devices.clone().decommission_device(call(request))).await?;
    answers::device(StatusCode::OK, ending.device)
}

pub(super) async fn resume(
    State(face): State<FlightctlFace>,
    JsonBody(wish): JsonBody<ResumeRequest>,
) -> Result<Response, FlightctlProblem> {
    let filter = DeviceFilter {
        label_selector: wish.label_selector.unwrap_or_default(),
        field_selector: wish.field_selector.unwrap_or_default(),
    };
    if filter == DeviceFilter::default() {
        return Err(FlightctlProblem::bad_request("labelSelector, fieldSelector: one of them is needed"));
    }
    let request = ResumeDevicesRequest { filter: Some(filter) };
    let resumed = answer(REGISTRY, face.mesh.devices.clone().resume_devices(call(request))).await?;
    Ok(json(StatusCode::OK, &ResumeAnswer { resumed_devices: resumed.resumed_devices })?)
}
