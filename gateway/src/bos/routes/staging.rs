//! `/v2/applystaged` (BOS reference 2.7).

use axum::{extract::State, response::Response};
use chassis::limits::MOST_APPLIED;
use http::StatusCode;
use proto::session::{ApplyStagedRequest, ApplyStagedResponse};

use crate::{
    bos::{
        problem::BosProblem,
        scope::without_scope_of_many,
        tenant::RequestTenant,
        wire::{
            staging::{AppliedStages, StagedNodes},
            strict::JsonObject,
        },
    },
    http::{
        answer::json,
        call::{answer, call},
        extract::{JsonBody, at},
    },
    mesh::{MeshHandle, SESSIONS},
};

pub(super) async fn apply(
    State(mesh): State<MeshHandle>,
    tenant: RequestTenant,
    JsonBody(JsonObject(StagedNodes { xnames })): JsonBody<JsonObject<StagedNodes>>,
) -> Result<Response, BosProblem> {
    // The session manager has this limit too, but names a field that callers of this contract do not know.
    if xnames.len() > MOST_APPLIED {
        let detail = format!("has {} items but may have at most {MOST_APPLIED}", xnames.len());
        return Err(BosProblem::bad_request(at("xnames", detail)));
    }
    let component_ids = xnames.into_iter().map(|id| id.0).collect();
    let request = ApplyStagedRequest { tenant: tenant.0.clone(), component_ids };
    let answer = answer(SESSIONS, mesh.sessions.clone().apply_staged(call(request))).await;
    let ApplyStagedResponse { succeeded_ids, failed_ids, ignored_ids } =
        answer.map_err(|fault| without_scope_of_many(&tenant, fault))?;
    Ok(json(
        StatusCode::OK,
        &AppliedStages { failed: failed_ids, ignored: ignored_ids, succeeded: succeeded_ids },
    )?)
}
