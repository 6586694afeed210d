//! Plans: what a session would do. Nothing is stored.

mod body;
mod shown;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{limits::LONGEST_LIMIT, mesh::call_class::CallClass};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use proto::session::{CreatePlanRequest, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use self::{body::PlanBody, shown::ShownPlan};
use super::sessions::{LONGEST_NAME, SessionOperation, refused_wish, tenant, tenant_parameter};
use crate::{
    http::{
        call::{answer, call},
        document::{ApiOperation, BoundedText},
        extract::JsonBody,
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{MeshHandle, SESSIONS},
};

/// Path of plans.
pub(super) const PATH: &str = "/reveille/v1/plans";

/// Request for a plan: the members of a session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPlan {
    /// Operation on the members.
    operation: SessionOperation,
    /// Template with the desired state of the members.
    #[schemars(with = "BoundedText<1, LONGEST_NAME>")]
    template_name: String,
    /// Nodes of the template that take part; absent or empty: all.
    #[serde(default)]
    #[schemars(with = "Option<BoundedText<0, LONGEST_LIMIT>>")]
    limit: Option<String>,
    /// True if the session would only stage.
    #[serde(default)]
    stage: bool,
    /// True if nodes that the inventory disables would take part.
    #[serde(default)]
    include_disabled: bool,
}

pub(super) fn operation() -> ApiOperation {
    ApiOperation::new("What a session would do: nodes, actions, differences and findings. Nothing is changed")
        .answers::<ShownPlan>()
        .asks([tenant_parameter()])
        .refuses(StatusCode::FORBIDDEN, "The tenant that asks is another one")
}

/// Returns the admission class of a request for a plan, which may be as long as a list of all nodes.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path == PATH && *method != Method::OPTIONS).then_some(CallClass::List)
}

pub(super) async fn create(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
    JsonBody(wish): JsonBody<NewPlan>,
) -> Result<Response, RequestProblem> {
    let request = CreatePlanRequest {
        tenant: tenant(&headers, &query)?.unwrap_or_default(),
        operation: Operation::from(wish.operation).into(),
        template_name: wish.template_name,
        limit: wish.limit.unwrap_or_default(),
        stage: wish.stage,
        include_disabled: wish.include_disabled,
    };
    let messages = answer(SESSIONS, mesh.plans.clone().create_plan(call(request))).await;
    let body = PlanBody::begin(messages.map_err(refused_wish)?).await.map_err(refused_wish)?;
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((headers, Body::from_stream(body.chunks())).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_the_members_of_a_session() {
        let read = |text: &str| serde_json::from_str::<NewPlan>(text).map_err(|error| error.to_string());
        let whole = r#"{"operation": "reboot", "template_name": "t", "limit": null, "stage": true}"#;
        let plan = read(whole).unwrap();
        assert_eq!((plan.operation, plan.template_name.as_str()), (SessionOperation::Reboot, "t"));
        assert_eq!((plan.limit, plan.stage, plan.include_disabled), (None, true, false));
        for wrong in [
            r#"{"template_name": "t"}"#,
            r#"{"operation": "Boot", "template_name": "t"}"#,
            r#"{"operation": "boot", "template_name": "t", "plan_hash": "p1"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn plans_are_admitted_as_lists() {
        assert_eq!(class_of(&Method::POST, PATH).map(CallClass::word), Some(CallClass::List.word()));
        assert_eq!(class_of(&Method::OPTIONS, PATH).map(CallClass::word), None);
        assert_eq!(class_of(&Method::POST, "/reveille/v1/plansx").map(CallClass::word), None);
    }
}
