//! `/v2/components` (BOS reference 2.6). To a tenant only its own nodes exist (BOS reference 9).

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
    tenant::{Tenant, TenantScope},
    wire::{bulk_patch::BulkPatch, component::Component, strict::Object},
};

pub(super) mod selection;

pub(super) async fn list(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    query: Query,
) -> Result<Response, Problem> {
    let mut request = selection::listed(&query, &tenant, mesh.strict)?;
    let about = request.filter.iter().flat_map(|filter| filter.ids.iter().cloned()).collect();
    let (scope, in_doubt_since) = scope(&mesh, &tenant, about).await?.shown();
    request.scope = scope;
    let page = |page: ListComponentsResponse| page.components.into_iter().map(rendered);
    let list = stream::array(REGISTRY, mesh.components.clone().list_components(call(request)), page).await?;
    Ok(TenantScope::mark(in_doubt_since, mesh.strict, list))
}

pub(super) async fn show(State(mesh): State<Mesh>, tenant: Tenant, id: Name) -> Result<Response, Problem> {
    let id = id.of_component()?;
    let (scope, in_doubt_since) = scope(&mesh, &tenant, vec![id.clone()]).await?.shown();
    let request = GetComponentRequest { id, scope };
    let answer = answer(REGISTRY, mesh.components.clone().get_component(call(request))).await?;
    let shown = json(StatusCode::OK, &rendered(promised(answer.component)?))?;
    Ok(TenantScope::mark(in_doubt_since, mesh.strict, shown))
}

/// How components would be shown after [`put_many`].
pub(super) async fn judge_many(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    Json(components): Json<Vec<Object<Component>>>,
) -> Result<Response, Problem> {
    let judged = replace(mesh, &tenant, selection::of_each(components, &tenant)?, true).await?;
    json(StatusCode::OK, &judged.into_iter().map(rendered).collect::<Vec<_>>())
}

pub(super) async fn put(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    id: Name,
    Json(Object(component)): Json<Object<Component>>,
) -> Result<Response, Problem> {
    let record = selection::of_one(id.of_component()?, component, &tenant)?;
    let mut records = replace(mesh, &tenant, vec![record], false).await?;
    json(StatusCode::OK, &stored(promised(records.pop())?))
}

pub(super) async fn put_many(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    Json(components): Json<Vec<Object<Component>>>,
) -> Result<Response, Problem> {
    kept(replace(mesh, &tenant, selection::of_each(components, &tenant)?, false).await?)
}

/// A tenant can replace its own nodes only. BOS lets it replace any (BOS reference 12, BUG-29).
async fn replace(
    mesh: Mesh,
    tenant: &Tenant,
    components: Vec<Record>,
    validate_only: bool,
) -> Result<Vec<Record>, Problem> {
    let scope = match mesh.strict {
        true => None,
        false => scope(&mesh, tenant, selection::ids_of(&components)).await?.confirmed()?,
    };
    let request = PutComponentsRequest { components, scope, validate_only };
    Ok(answer(REGISTRY, mesh.components.clone().put_components(call(request))).await?.components)
}

pub(super) async fn patch(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    id: Name,
    Json(Object(component)): Json<Object<Component>>,
) -> Result<Response, Problem> {
    let patches = vec![selection::of_one(id.of_component()?, component, &tenant)?];
    let scope = scope(&mesh, &tenant, selection::ids_of(&patches)).await?.confirmed()?;
    let request = PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches })),
        skip_bad_ids: false,
        // Node reports come one by one; bulk patches are made by people who know (BOS reference 2.6.4).
        guard_actual_state: true,
        scope,
    };
    json(StatusCode::OK, &stored(promised(change(mesh, request).await?.components.pop())?))
}

pub(super) async fn patch_many(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    query: Query,
    Json(patch): Json<BulkPatch>,
) -> Result<Response, Problem> {
    let selection = selection::patched(patch, &tenant)?;
    let skip_bad_ids = query.boolean("skip_bad_ids")?.unwrap_or(false);
    let scope = tenant.scope(&mesh, selection::about(&selection)).await;
    let request = PatchComponentsRequest {
        selection: Some(selection),
        skip_bad_ids,
        guard_actual_state: false,
        scope: scope.map_err(|fault| tenant.without_scope_of_many(fault))?.confirmed()?,
    };
    kept(change(mesh, request).await?.components)
}

async fn change(mesh: Mesh, request: PatchComponentsRequest) -> Result<PatchComponentsResponse, Problem> {
    Ok(answer(REGISTRY, mesh.components.clone().patch_components(call(request))).await?)
}

pub(super) async fn delete(State(mesh): State<Mesh>, tenant: Tenant, id: Name) -> Result<Response, Problem> {
    let id = id.of_component()?;
    let scope = scope(&mesh, &tenant, vec![id.clone()]).await?.confirmed()?;
    let request = DeleteComponentRequest { id, scope };
    answer(REGISTRY, mesh.components.clone().delete_component(call(request))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The components that exist to the tenant, of those that a request is `about`.
async fn scope(mesh: &Mesh, tenant: &Tenant, about: Vec<String>) -> Result<TenantScope, Problem> {
    tenant.scope(mesh, about).await.map_err(|fault| tenant.without_scope(fault))
}

fn kept(records: Vec<Record>) -> Result<Response, Problem> {
    json(StatusCode::OK, &records.into_iter().map(stored).collect::<Vec<_>>())
}
