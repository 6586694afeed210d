//! `/devices` (device reference 4.1 to 4.4).

use axum::{extract::State, response::Response};
use chassis::Fault;
use http::StatusCode;
use proto::device::{
    self as record, CountDevicesRequest, CreateDeviceRequest, DeleteDeviceRequest, DeviceFilter,
    GetDeviceRequest, ListDeviceLabelsRequest, ListDevicesRequest, ReplaceDeviceRequest,
};

use super::{
    answers::{self, agreed_name, collected, done, expected_revision, new_name},
    selection::device_filter,
};
use crate::{
    flightctl::{
        FlightctlFace,
        pages::{NamePlace, WantedPage},
        patch::{AttemptFailure, patched, settled},
        problem::FlightctlProblem,
        wire::{
            counts::DevicesSummary,
            device::{Device, DeviceList},
            meta::ListMeta,
            patch::PatchOperation,
        },
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::REGISTRY,
};

/// Field of specs in refusals.
const SPEC: &str = "spec";

pub(super) async fn list(
    State(face): State<FlightctlFace>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let filter = device_filter(&query)?;
    if query.boolean("summaryOnly")?.unwrap_or(false) {
        return summary(&face, &query, filter).await;
    }
    let page = WantedPage::<NamePlace>::read(&query)?;
    let found = listed(&face, &filter, &page).await?;
    let total = match page.place.is_none() && page.is_followed(&found) {
        true => count(&face, filter).await?.total,
        false => 0,
    };
    let (found, metadata) = page.cut_of(found, name_of, total);
    let mut summary = DevicesSummary::default();
    found.iter().for_each(|device| summary.add(device));
    let items = found.into_iter().map(Device::shown).collect::<Result<_, _>>()?;
    Ok(json(StatusCode::OK, &DeviceList::new(metadata, items, summary))?)
}

/// Answers with the numbers of all selected devices.
async fn summary(
    face: &FlightctlFace,
    query: &QueryParameters,
    filter: DeviceFilter,
) -> Result<Response, FlightctlProblem> {
    if let Some(other) = ["limit", "continue"].into_iter().find(|name| query.has(name)) {
        let text = format!("query parameter '{other}': is not possible together with 'summaryOnly'");
        return Err(FlightctlProblem::bad_request(text));
    }
    let summary = count(face, filter).await?;
    Ok(json(StatusCode::OK, &DeviceList::new(ListMeta::default(), Vec::new(), summary))?)
}

/// Returns the devices of a page, and one more if others follow.
async fn listed(
    face: &FlightctlFace,
    filter: &DeviceFilter,
    page: &WantedPage<NamePlace>,
) -> Result<Vec<record::Device>, Fault> {
    let request = ListDevicesRequest {
        filter: Some(filter.clone()),
        start_after: page.after(),
        page_size: page.limit.saturating_add(1),
    };
    let messages = answer(REGISTRY, face.mesh.devices.clone().list_devices(call(request))).await?;
    collected(REGISTRY, messages, |message| message.devices).await
}

fn name_of(device: &record::Device) -> String {
    device.meta.as_ref().map(|meta| meta.name.clone()).unwrap_or_default()
}

async fn count(face: &FlightctlFace, filter: DeviceFilter) -> Result<DevicesSummary, Fault> {
    let request = CountDevicesRequest { filter: Some(filter) };
    let counted = answer(REGISTRY, face.mesh.devices.clone().count_devices(call(request))).await?;
    Ok(DevicesSummary::of_counts(promised(counted.counts)?))
}

pub(super) async fn show(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    answers::device(StatusCode::OK, Some(read(&face, name.into_text()).await?))
}

/// Returns a device.
pub(super) async fn read(face: &FlightctlFace, name: String) -> Result<record::Device, Fault> {
    let request = GetDeviceRequest { name };
    promised(answer(REGISTRY, face.mesh.devices.clone().get_device(call(request))).await?.device)
}

pub(super) async fn create(
    State(face): State<FlightctlFace>,
    JsonBody(device): JsonBody<Device>,
) -> Result<Response, FlightctlProblem> {
    let name = new_name(&device.metadata)?;
    answers::device(StatusCode::CREATED, created(&face, name, device).await?)
}

async fn created(
    face: &FlightctlFace,
    name: String,
    device: Device,
) -> Result<Option<record::Device>, FlightctlProblem> {
    let request = CreateDeviceRequest {
        name,
        labels: device.metadata.labels.unwrap_or_default(),
        spec: Some(device.spec.unwrap_or_default().into_record(SPEC)?),
    };
    Ok(answer(REGISTRY, face.mesh.devices.clone().create_device(call(request))).await?.device)
}

/// Replaces a device, or creates it.
pub(super) async fn put(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(device): JsonBody<Device>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    agreed_name(&name, &device.metadata)?;
    let expected = expected_revision(&device.metadata)?;
    match replaced(&face, name.clone(), device.clone(), expected).await {
        Ok(replaced) => answers::device(StatusCode::OK, replaced),
        Err(ReplaceFailure::Missing) => {
            answers::device(StatusCode::CREATED, created(&face, name, device).await?)
        }
        Err(ReplaceFailure::Failed(fault)) => Err(fault.into()),
        Err(ReplaceFailure::Refused(problem)) => Err(problem.into()),
    }
}

/// Reason why a device was not replaced.
enum ReplaceFailure {
    Missing,
    Failed(Fault),
    Refused(RequestProblem),
}

async fn replaced(
    face: &FlightctlFace,
    name: String,
    device: Device,
    expected_revision: u64,
) -> Result<Option<record::Device>, ReplaceFailure> {
    let spec = device.spec.unwrap_or_default().into_record(SPEC).map_err(ReplaceFailure::Refused)?;
    let labels = device.metadata.labels.unwrap_or_default();
    let request = ReplaceDeviceRequest { name, labels, spec: Some(spec), expected_revision };
    let replaced = answer(REGISTRY, face.mesh.devices.clone().replace_device(call(request))).await;
    replaced.map(|answer| answer.device).map_err(|fault| match fault {
        Fault::NotFound { .. } => ReplaceFailure::Missing,
        other => ReplaceFailure::Failed(other),
    })
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
    let before = Device::shown(read(face, name.to_owned()).await?)?;
    let mut after = patched(&before, operations, &["/status"])?;
    if after.metadata.resource_version != before.metadata.resource_version {
        let fault = Fault::Conflict { kind: "device".to_owned(), name: name.to_owned() };
        return Err(AttemptFailure::Refused(fault.into()));
    }
    keep_end(&before, &mut after);
    let expected = expected_revision(&before.metadata)?;
    match replaced(face, name.to_owned(), after, expected).await {
        Ok(replaced) => Ok(answers::device(StatusCode::OK, replaced)?),
        Err(ReplaceFailure::Missing) => Err(Fault::not_found("device", name).into()),
        Err(ReplaceFailure::Failed(fault)) => Err(fault.into()),
        Err(ReplaceFailure::Refused(problem)) => Err(problem.into()),
    }
}

/// Leaves out the request for the end of the device, if it is the one that the device had before: only a patch that
/// brings one is at fault by that.
fn keep_end(before: &Device, after: &mut Device) {
    let known = before.spec.as_ref().and_then(|spec| spec.decommissioning.as_ref());
    if let Some(spec) = &mut after.spec
        && spec.decommissioning.as_ref() == known
    {
        spec.decommissioning = None;
    }
}

pub(super) async fn delete(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let request = DeleteDeviceRequest { name: name.clone() };
    answer(REGISTRY, face.mesh.devices.clone().delete_device(call(request))).await?;
    done(format!("Device of name \"{name}\" deleted"))
}

pub(super) async fn labels(
    State(face): State<FlightctlFace>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    match query.text("kind", 0..=100)? {
        Some("Device") | None => {}
        Some(_) => return Err(FlightctlProblem::bad_request("query parameter 'kind': is not Device")),
    }
    let limit = WantedPage::<NamePlace>::read(&query)?.limit as usize;
    let request = ListDeviceLabelsRequest { filter: Some(device_filter(&query)?) };
    let listed = answer(REGISTRY, face.mesh.devices.clone().list_device_labels(call(request))).await?;
    let labels: Vec<_> = listed.labels.into_iter().take(limit).collect();
    Ok(json(StatusCode::OK, &labels)?)
}
