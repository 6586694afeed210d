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

use crate::{
    bos::{
        convert::component::{rendered, stored},
        face::BosFace,
        problem::BosProblem,
        scope::{TenantScope, without_scope, without_scope_of_many},
        tenant::RequestTenant,
        wire::{bulk_patch::BulkPatch, component::Component, primitive::ComponentId, strict::JsonObject},
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName},
        query::QueryParameters,
        stream,
    },
    mesh::{MeshHandle, REGISTRY},
};

pub(super) mod selection;

pub(super) async fn list(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    query: QueryParameters,
) -> Result<Response, BosProblem> {
    let mut request = selection::listed(&query, &tenant, face.strict)?;
    let about = request.filter.iter().flat_map(|filter| filter.ids.iter().cloned()).collect();
    let (scope, in_doubt_since) = scope(&face.mesh, &tenant, about).await?.shown();
    request.scope = scope;
    let page = |page: ListComponentsResponse| page.components.into_iter().map(rendered);
    let list =
        stream::array(REGISTRY, face.mesh.components.clone().list_components(call(request)), page).await?;
    Ok(TenantScope::mark(in_doubt_since, face.strict, list))
}

pub(super) async fn show(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    id: PathName<ComponentId>,
) -> Result<Response, BosProblem> {
    let id = id.id()?;
    let (scope, in_doubt_since) = scope(&face.mesh, &tenant, vec![id.clone()]).await?.shown();
    let request = GetComponentRequest { id, scope };
    let answer = answer(REGISTRY, face.mesh.components.clone().get_component(call(request))).await?;
    let shown = json(StatusCode::OK, &rendered(promised(answer.component)?))?;
    Ok(TenantScope::mark(in_doubt_since, face.strict, shown))
}

/// Shows components as [`put_many`] would leave them.
pub(super) async fn judge_many(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    JsonBody(components): JsonBody<Vec<JsonObject<Component>>>,
) -> Result<Response, BosProblem> {
    let judged = replace(face, &tenant, selection::of_each(components, &tenant)?, true).await?;
    Ok(json(StatusCode::OK, &judged.into_iter().map(rendered).collect::<Vec<_>>())?)
}

pub(super) async fn put(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    id: PathName<ComponentId>,
    JsonBody(JsonObject(component)): JsonBody<JsonObject<Component>>,
) -> Result<Response, BosProblem> {
    let record = selection::of_one(id.id()?, component, &tenant)?;
    let mut records = replace(face, &tenant, vec![record], false).await?;
    Ok(json(StatusCode::OK, &stored(promised(records.pop())?))?)
}

pub(super) async fn put_many(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    JsonBody(components): JsonBody<Vec<JsonObject<Component>>>,
) -> Result<Response, BosProblem> {
    kept(replace(face, &tenant, selection::of_each(components, &tenant)?, false).await?)
}

/// Replaces components. A tenant can replace its own nodes only. BOS lets it replace any (BOS reference 12, BUG-29).
async fn replace(
    face: BosFace,
    tenant: &RequestTenant,
    components: Vec<Record>,
    validate_only: bool,
) -> Result<Vec<Record>, BosProblem> {
    let scope = match face.strict {
        true => None,
        false => scope(&face.mesh, tenant, selection::ids_of(&components)).await?.confirmed()?,
    };
    let request = PutComponentsRequest { components, scope, validate_only };
    Ok(answer(REGISTRY, face.mesh.components.clone().put_components(call(request))).await?.components)
}

pub(super) async fn patch(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    id: PathName<ComponentId>,
    JsonBody(JsonObject(component)): JsonBody<JsonObject<Component>>,
) -> Result<Response, BosProblem> {
    let patches = vec![selection::of_one(id.id()?, component, &tenant)?];
    let scope = scope(&face.mesh, &tenant, selection::ids_of(&patches)).await?.confirmed()?;
    let request = PatchComponentsRequest {
        selection: Some(Selection::Each(PatchEach { patches })),
        skip_bad_ids: false,
        // Nodes report one by one; bulk patches are made by operators on purpose (BOS reference 2.6.4).
        guard_actual_state: true,
        scope,
    };
    Ok(json(StatusCode::OK, &stored(promised(change(face, request).await?.components.pop())?))?)
}

pub(super) async fn patch_many(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    query: QueryParameters,
    JsonBody(patch): JsonBody<BulkPatch>,
) -> Result<Response, BosProblem> {
    let selection = selection::patched(patch, &tenant)?;
    let skip_bad_ids = query.boolean("skip_bad_ids")?.unwrap_or(false);
    let scope = TenantScope::of(&tenant, &face.mesh, selection::about(&selection)).await;
    let request = PatchComponentsRequest {
        selection: Some(selection),
        skip_bad_ids,
        guard_actual_state: false,
        scope: scope.map_err(|fault| without_scope_of_many(&tenant, fault))?.confirmed()?,
    };
    kept(change(face, request).await?.components)
}

async fn change(
    face: BosFace,
    request: PatchComponentsRequest,
) -> Result<PatchComponentsResponse, BosProblem> {
    Ok(answer(REGISTRY, face.mesh.components.clone().patch_components(call(request))).await?)
}

pub(super) async fn delete(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    id: PathName<ComponentId>,
) -> Result<Response, BosProblem> {
    let id = id.id()?;
    let scope = scope(&face.mesh, &tenant, vec![id.clone()]).await?.confirmed()?;
    let request = DeleteComponentRequest { id, scope };
    answer(REGISTRY, face.mesh.components.clone().delete_component(call(request))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns the components that exist to the tenant, of those that a request is `about`.
async fn scope(
    mesh: &MeshHandle,
    tenant: &RequestTenant,
    about: Vec<String>,
) -> Result<TenantScope, BosProblem> {
    TenantScope::of(tenant, mesh, about).await.map_err(|fault| without_scope(tenant, fault))
}

fn kept(records: Vec<Record>) -> Result<Response, BosProblem> {
    Ok(json(StatusCode::OK, &records.into_iter().map(stored).collect::<Vec<_>>())?)
}
