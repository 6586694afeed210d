//! `/v2/components` (BOS reference 2.6). Which tenant asks makes no difference yet, but its name has to be one.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use proto::component::{
    Component as Record, DeleteComponentRequest, GetComponentRequest, ListComponentsResponse,
    PatchComponentsRequest, PatchComponentsResponse, PatchEach, PutComponentsRequest,
    patch_components_request::Selection,
};

use super::{json, promised};
use crate::{
    convert::component::{rendered, stored},
    extract::{Json, Name},
    mesh::{Mesh, REGISTRY, answer, call},
    problem::Problem,
    query::Query,
    stream,
    tenant::Tenant,
    wire::{bulk_patch::BulkPatch, component::Component, strict::Object},
};

mod selection;

pub(super) async fn list(State(mut mesh): State<Mesh>, _: Tenant, query: Query) -> Result<Response, Problem> {
    let request = selection::listed(&query, mesh.strict)?;
    let page = |page: ListComponentsResponse| page.components.into_iter().map(rendered).collect();
    Ok(stream::array(REGISTRY, mesh.components.list_components(call(request)), page).await?)
}

pub(super) async fn show(State(mut mesh): State<Mesh>, _: Tenant, id: Name) -> Result<Response, Problem> {
    let request = GetComponentRequest { id: id.of_component()? };
    let answer = answer(REGISTRY, mesh.components.get_component(call(request))).await?;
    json(StatusCode::OK, &rendered(promised(answer.component)?))
}

pub(super) async fn put(
    State(mesh): State<Mesh>,
    _: Tenant,
    id: Name,
    Json(Object(component)): Json<Object<Component>>,
) -> Result<Response, Problem> {
    let mut records = replace(mesh, vec![selection::of_one(id.of_component()?, component)?]).await?;
    json(StatusCode::OK, &stored(promised(records.pop())?))
}

pub(super) async fn put_many(
    State(mesh): State<Mesh>,
    _: Tenant,
    Json(components): Json<Vec<Object<Component>>>,
) -> Result<Response, Problem> {
    let records = replace(mesh, selection::of_each(components)?).await?;
    kept(records)
}

async fn replace(mut mesh: Mesh, components: Vec<Record>) -> Result<Vec<Record>, Problem> {
    let request = PutComponentsRequest { components };
    Ok(answer(REGISTRY, mesh.components.put_components(call(request))).await?.components)
}

pub(super) async fn patch(
    State(mesh): State<Mesh>,
    _: Tenant,
    id: Name,
    Json(Object(component)): Json<Object<Component>>,
) -> Result<Response, Problem> {
    let patches = vec![selection::of_one(id.of_component()?, component)?];
    let request = PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches })),
        skip_bad_ids: false,
        // Node reports come one by one; bulk patches are made by people who know (BOS reference 2.6.4).
        guard_actual_state: true,
    };
    json(StatusCode::OK, &stored(promised(change(mesh, request).await?.components.pop())?))
}

pub(super) async fn patch_many(
    State(mesh): State<Mesh>,
    _: Tenant,
    query: Query,
    Json(patch): Json<BulkPatch>,
) -> Result<Response, Problem> {
    let request = PatchComponentsRequest {
        selection: Some(selection::patched(patch)?),
        skip_bad_ids: query.boolean("skip_bad_ids")?.unwrap_or(false),
        guard_actual_state: false,
    };
    kept(change(mesh, request).await?.components)
}

async fn change(mut mesh: Mesh, request: PatchComponentsRequest) -> Result<PatchComponentsResponse, Problem> {
    Ok(answer(REGISTRY, mesh.components.patch_components(call(request))).await?)
}

pub(super) async fn delete(State(mut mesh): State<Mesh>, _: Tenant, id: Name) -> Result<Response, Problem> {
    let request = DeleteComponentRequest { id: id.of_component()? };
    answer(REGISTRY, mesh.components.delete_component(call(request))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn kept(records: Vec<Record>) -> Result<Response, Problem> {
    json(StatusCode::OK, &records.into_iter().map(stored).collect::<Vec<_>>())
}
