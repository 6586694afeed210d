//! `/v2/applystaged` (BOS reference 2.7).

use axum::{extract::State, response::Response};
use chassis::limits::MOST_APPLIED;
use http::StatusCode;
use proto::session::{ApplyStagedRequest, ApplyStagedResponse};

use super::json;
use crate::{
    extract::{Json, at},
    mesh::{Mesh, SESSIONS, answer, call},
    problem::Problem,
    tenant::Tenant,
    wire::{
        staging::{Applied, StagedNodes},
        strict::Object,
    },
};

pub(super) async fn apply(
    State(mesh): State<Mesh>,
    tenant: Tenant,
    Json(Object(StagedNodes { xnames })): Json<Object<StagedNodes>>,
) -> Result<Response, Problem> {
    // The session manager says the same, of a field that callers of this contract do not know.
    if xnames.len() > MOST_APPLIED {
        let detail = format!("has {} items but may have at most {MOST_APPLIED}", xnames.len());
        return Err(Problem::bad_request(at("xnames", detail)));
    }
    let component_ids = xnames.into_iter().map(|id| id.0).collect();
    let request = ApplyStagedRequest { tenant: tenant.0.clone(), component_ids };
    let answer = answer(SESSIONS, mesh.sessions.clone().apply_staged(call(request))).await;
    let ApplyStagedResponse { succeeded_ids, failed_ids, ignored_ids } =
        answer.map_err(|fault| tenant.without_scope_of_many(fault))?;
    json(StatusCode::OK, &Applied { failed: failed_ids, ignored: ignored_ids, succeeded: succeeded_ids })
}
