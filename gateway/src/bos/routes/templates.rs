//! `/v2/sessiontemplates` and its neighbours (BOS reference 2.8).

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use proto::template::{
    DeleteSessionTemplateRequest, GetSessionTemplateRequest, ListSessionTemplatesRequest,
    ListSessionTemplatesResponse, PutSessionTemplateRequest, UpdateSessionTemplateRequest,
    ValidateSessionTemplateRequest,
};
use serde_json::json;

use crate::{
    bos::{
        convert::template::named,
        problem::BosProblem,
        tenant::RequestTenant,
        wire::{primitive::ResourceName, strict::JsonObject, template::SessionTemplate},
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName, at},
        stream,
    },
    mesh::{MeshHandle, SESSIONS},
};

mod wording;

use wording::TemplateWording;

pub(super) async fn list(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
) -> Result<Response, BosProblem> {
    let request = ListSessionTemplatesRequest { tenant: tenant.filter() };
    let page =
        |page: ListSessionTemplatesResponse| page.session_templates.into_iter().map(SessionTemplate::from);
    Ok(stream::array(SESSIONS, mesh.templates.clone().list_session_templates(call(request)), page).await?)
}

pub(super) async fn show(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = GetSessionTemplateRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, mesh.templates.clone().get_session_template(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &SessionTemplate::from(promised(answer.session_template)?))?)
}

pub(super) async fn put(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
    JsonBody(JsonObject(template)): JsonBody<JsonObject<SessionTemplate>>,
) -> Result<Response, BosProblem> {
    store(mesh, tenant, name, template, false).await
}

/// Shows the template as [`put`] would store it.
pub(super) async fn judge(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
    JsonBody(JsonObject(template)): JsonBody<JsonObject<SessionTemplate>>,
) -> Result<Response, BosProblem> {
    store(mesh, tenant, name, template, true).await
}

async fn store(
    mesh: MeshHandle,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
    template: SessionTemplate,
    validate_only: bool,
) -> Result<Response, BosProblem> {
    if template.boot_sets.is_none() {
        return Err(BosProblem::bad_request("missing field `boot_sets`"));
    }
    check_boot_sets(&template)?;
    let wording = TemplateWording::new("created", &template);
    let session_template = Some(named(template, name.name()?, tenant.0.clone()));
    let request = PutSessionTemplateRequest { session_template, validate_only };
    let answer = answer(SESSIONS, mesh.templates.clone().put_session_template(call(request))).await;
    let answer = answer.map_err(|fault| wording.of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &SessionTemplate::from(promised(answer.session_template)?))?)
}

pub(super) async fn patch(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
    JsonBody(JsonObject(patch)): JsonBody<JsonObject<SessionTemplate>>,
) -> Result<Response, BosProblem> {
    check_boot_sets(&patch)?;
    let wording = TemplateWording::new("patched", &patch);
    let session_template = Some(named(patch, name.name()?, tenant.0.clone()));
    let request = UpdateSessionTemplateRequest { session_template };
    let answer = answer(SESSIONS, mesh.templates.clone().update_session_template(call(request))).await;
    let answer = answer.map_err(|fault| wording.of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &SessionTemplate::from(promised(answer.session_template)?))?)
}

/// Refuses an empty object of boot sets, which a message cannot distinguish from an absent one.
fn check_boot_sets(template: &SessionTemplate) -> Result<(), BosProblem> {
    match &template.boot_sets {
        Some(sets) if sets.0.is_empty() => {
            Err(BosProblem::bad_request(at("boot_sets", "the object needs at least one member")))
        }
        _ => Ok(()),
    }
}

pub(super) async fn delete(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = DeleteSessionTemplateRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, mesh.templates.clone().delete_session_template(call(request))).await;
    answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn validate(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = ValidateSessionTemplateRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, mesh.templates.clone().validate_session_template(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &answer.findings)?)
}

/// Shows a template to copy and fill in (BOS reference 2.8.5).
pub(super) async fn example() -> Result<Response, BosProblem> {
    let set = json!({
        "cfs": { "configuration": "bootset-specific-cfs-override" },
        "etag": "boot-image-s3-etag",
        "kernel_parameters": "your-kernel-parameters",
        "node_list": ["xname1", "xname2", "xname3"],
        "path": "s3://boot-images/boot-image-ims-id/manifest.json",
        "rootfs_provider": "sbps",
        "rootfs_provider_passthrough":
            "sbps:v1:iqn.2023-06.csm.iscsi:_sbps-hsn._tcp.my-system.my-site-domain:300",
        "type": "s3",
    });
    let template = json!({
        "boot_sets": { "name_your_boot_set": set },
        "cfs": { "configuration": "default-sessiontemplate-cfs-config" },
        "enable_cfs": true,
    });
    Ok(json(StatusCode::OK, &template)?)
}
