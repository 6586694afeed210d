//! `/fleets`, and the versions of their templates (device reference 3.1, 3.2).

use axum::{extract::State, response::Response};
use chassis::Fault;
use http::StatusCode;
use proto::{
    device::{CountDevicesRequest, DeviceFilter},
    fleet::{
        self as record, CreateFleetRequest, DeleteFleetRequest, GetFleetRequest, GetTemplateVersionRequest,
        ListFleetsRequest, ListTemplateVersionsRequest, ReplaceFleetRequest,
    },
};

use super::{
    answers::{agreed_name, collected, done, expected_revision, new_name},
    selection::selector,
};
use crate::{
    flightctl::{
        FlightctlFace,
        pages::{NamePlace, WantedPage},
        patch::{AttemptFailure, patched, settled},
        problem::FlightctlProblem,
        wire::{
            counts::DevicesSummary,
            fleet::{Fleet, FleetList, TemplateVersion, TemplateVersionList},
            meta::{api_version, fleet_owner},
            patch::PatchOperation,
            words::Word,
        },
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName, PathNames},
        query::QueryParameters,
    },
    mesh::{FLEETS, REGISTRY},
};

pub(super) async fn list(
    State(face): State<FlightctlFace>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let page = WantedPage::<NamePlace>::read(&query)?;
    let request = ListFleetsRequest {
        label_selector: selector(&query, "labelSelector")?,
        field_selector: selector(&query, "fieldSelector")?,
        start_after: page.after(),
        page_size: page.limit.saturating_add(1),
    };
    let messages = answer(FLEETS, face.mesh.fleets.clone().list_fleets(call(request))).await?;
    let found = collected(FLEETS, messages, |message| message.fleets).await?;
    let (found, metadata) = page.cut(found, |fleet| fleet.name.clone());
    let mut items = found.into_iter().map(Fleet::shown).collect::<Result<Vec<_>, _>>()?;
    if wants_summary(&query)? {
        for fleet in &mut items {
            summarise(&face, fleet).await?;
        }
    }
    let kind = Word::stored("FleetList");
    Ok(json(StatusCode::OK, &FleetList { api_version: api_version(), kind, metadata, items })?)
}

fn wants_summary(query: &QueryParameters) -> Result<bool, FlightctlProblem> {
    Ok(query.boolean("addDevicesSummary")?.unwrap_or(false))
}

/// Adds the numbers of its devices to a fleet.
async fn summarise(face: &FlightctlFace, fleet: &mut Fleet) -> Result<(), Fault> {
    let name = fleet.metadata.name.as_deref().unwrap_or_default();
    let field_selector = format!("metadata.owner={}", fleet_owner(name));
    let filter = Some(DeviceFilter { field_selector, ..DeviceFilter::default() });
    let counted =
        answer(REGISTRY, face.mesh.devices.clone().count_devices(call(CountDevicesRequest { filter })))
            .await?;
    let summary = DevicesSummary::of_counts(promised(counted.counts)?);
    if let Some(status) = &mut fleet.status {
        status.devices_summary = Some(summary);
    }
    Ok(())
}

pub(super) async fn show(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let mut fleet = Fleet::shown(read(&face, name.into_text()).await?)?;
    if wants_summary(&query)? {
        summarise(&face, &mut fleet).await?;
    }
    Ok(json(StatusCode::OK, &fleet)?)
}

async fn read(face: &FlightctlFace, name: String) -> Result<record::Fleet, Fault> {
    let request = GetFleetRequest { name };
    promised(answer(FLEETS, face.mesh.fleets.clone().get_fleet(call(request))).await?.fleet)
}

fn shown(status: StatusCode, fleet: Option<record::Fleet>) -> Result<Response, FlightctlProblem> {
    Ok(json(status, &Fleet::shown(promised(fleet)?)?)?)
}

pub(super) async fn create(
    State(face): State<FlightctlFace>,
    JsonBody(fleet): JsonBody<Fleet>,
) -> Result<Response, FlightctlProblem> {
    let name = new_name(&fleet.metadata)?;
    created(&face, name, fleet).await
}

async fn created(face: &FlightctlFace, name: String, fleet: Fleet) -> Result<Response, FlightctlProblem> {
    let labels = fleet.metadata.labels.unwrap_or_default();
    let request = CreateFleetRequest { name, labels, spec: Some(fleet.spec.into_record()?) };
    let created = answer(FLEETS, face.mesh.fleets.clone().create_fleet(call(request))).await?;
    shown(StatusCode::CREATED, created.fleet)
}

/// Replaces a fleet, or creates it.
pub(super) async fn put(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
    JsonBody(fleet): JsonBody<Fleet>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    agreed_name(&name, &fleet.metadata)?;
    let expected = expected_revision(&fleet.metadata)?;
    let request = replacement(name.clone(), fleet.clone(), expected)?;
    match answer(FLEETS, face.mesh.fleets.clone().replace_fleet(call(request))).await {
        Ok(replaced) => shown(StatusCode::OK, replaced.fleet),
        Err(Fault::NotFound { .. }) => created(&face, name, fleet).await,
        Err(fault) => Err(fault.into()),
    }
}

fn replacement(
    name: String,
    fleet: Fleet,
    expected_revision: u64,
) -> Result<ReplaceFleetRequest, FlightctlProblem> {
    let labels = fleet.metadata.labels.unwrap_or_default();
    Ok(ReplaceFleetRequest { name, labels, spec: Some(fleet.spec.into_record()?), expected_revision })
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
    let before = Fleet::shown(read(face, name.to_owned()).await?)?;
    let after = patched(&before, operations, &["/status", "/metadata/resourceVersion"])?;
    let request = replacement(name.to_owned(), after, expected_revision(&before.metadata)?)?;
    let replaced = answer(FLEETS, face.mesh.fleets.clone().replace_fleet(call(request))).await?;
    Ok(shown(StatusCode::OK, replaced.fleet)?)
}

pub(super) async fn delete(
    State(face): State<FlightctlFace>,
    name: PathName<String>,
) -> Result<Response, FlightctlProblem> {
    let name = name.into_text();
    let request = DeleteFleetRequest { name: name.clone() };
    answer(FLEETS, face.mesh.fleets.clone().delete_fleet(call(request))).await?;
    done(format!("Fleet of name \"{name}\" deleted"))
}

pub(super) async fn list_versions(
    State(face): State<FlightctlFace>,
    fleet: PathName<String>,
    query: QueryParameters,
) -> Result<Response, FlightctlProblem> {
    let page = WantedPage::<NamePlace>::read(&query)?;
    let request = ListTemplateVersionsRequest {
        fleet: fleet.into_text(),
        page_size: page.limit.saturating_add(1),
        start_after: page.after(),
    };
    let messages = answer(FLEETS, face.mesh.fleets.clone().list_template_versions(call(request))).await?;
    let found = collected(FLEETS, messages, |message| message.template_versions).await?;
    let (found, metadata) = page.cut(found, |version| version.name.clone());
    let items = found.into_iter().map(TemplateVersion::shown).collect::<Result<_, _>>()?;
    let kind = Word::stored("TemplateVersionList");
    Ok(json(StatusCode::OK, &TemplateVersionList { api_version: api_version(), kind, metadata, items })?)
}

pub(super) async fn show_version(
    State(face): State<FlightctlFace>,
    names: PathNames,
) -> Result<Response, FlightctlProblem> {
    let (fleet, name) = names.into_texts();
    let request = GetTemplateVersionRequest { fleet, name };
    let found = answer(FLEETS, face.mesh.fleets.clone().get_template_version(call(request))).await?;
    Ok(json(StatusCode::OK, &TemplateVersion::shown(promised(found.template_version)?)?)?)
}
