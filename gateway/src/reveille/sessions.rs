//! Sessions with their results, and the interventions of operators: cancel, pause, resume and retry.

mod rollout;
mod shown;
mod wish;

use axum::{extract::State, response::Response};
use chassis::{Fault, mesh::call_class::CallClass};
use http::{Extensions, HeaderMap, Method, StatusCode};
use proto::session::{
    CancelSessionRequest, GetSessionRequest, ListSessionsRequest, ListSessionsResponse, PauseSessionRequest,
    ResumeSessionRequest, RetrySessionRequest, SessionFilter,
};

use self::wish::NewSession;
pub(super) use self::{shown::ShownSession, wish::SessionOperation};
use super::{TENANT, at, history};
use crate::{
    http::{
        answer::json,
        call::{answer, call, promised},
        document::{ApiOperation, ApiParameter, BoundedText, query},
        endpoint::ApiEndpoint,
        extract::{JsonBody, PathName},
        problem::RequestProblem,
        query::QueryParameters,
        stream,
    },
    identity::RequestCaller,
    mesh::{MeshHandle, SESSIONS},
};

const PATH: &str = "/reveille/v1/sessions";

/// Longest name of a session or tenant.
pub(super) const LONGEST_NAME: usize = chassis::limits::LONGEST_NAME;

/// Longest reason of a cancellation or a pause that fits into an address.
const LONGEST_REASON: usize = 1000;

/// Name of a session in the path.
type SessionName = PathName<BoundedText<1, LONGEST_NAME>>;

pub(super) fn endpoints() -> Vec<ApiEndpoint<MeshHandle>> {
    let named = |about| {
        ApiOperation::new(about)
            .answers::<ShownSession>()
            .asks([tenant_parameter()])
            .refuses(StatusCode::FORBIDDEN, "The tenant that asks is another one")
            .refuses(StatusCode::NOT_FOUND, "There is no such session")
    };
    let steers = |about, conflict| named(about).refuses(StatusCode::CONFLICT, conflict);
    let reason =
        query::<BoundedText<0, LONGEST_REASON>>("reason", "Reason for people, which the event shows");
    vec![
        at(PATH)
            .get(
                list,
                ApiOperation::new("Sessions with their results; absent `tenant`: of everybody")
                    .answers::<Vec<ShownSession>>()
                    .asks([tenant_parameter()])
                    .refuses(StatusCode::FORBIDDEN, "The tenant that asks is another one"),
            )
            .post(
                create,
                ApiOperation::new("Create a session, which may be bound to a plan, and may roll out in batches")
                    .answers_with::<ShownSession>(StatusCode::CREATED)
                    .asks([tenant_parameter()])
                    .refuses(StatusCode::FORBIDDEN, "The tenant that asks is another one")
                    .refuses(StatusCode::CONFLICT, "The name is taken, the plan does not hold any more, or the number of nodes is not confirmed"),
            ),
        at("/reveille/v1/sessions/{name}").get(show, named("A session with its result")),
        at("/reveille/v1/sessions/{name}/cancel").post(
            cancel,
            steers("End a session; its components are released", "The session ended in another way")
                .asks([tenant_parameter(), reason]),
        ),
        at("/reveille/v1/sessions/{name}/pause").post(
            pause,
            steers(
                "Pause a session: nothing begins for its components, and what is under way ends",
                "The session is complete or is being cancelled",
            )
            .asks([tenant_parameter(), reason]),
        ),
        at("/reveille/v1/sessions/{name}/resume").post(
            resume,
            steers("Resume a paused session", "The session is complete or is being cancelled"),
        ),
        at("/reveille/v1/sessions/{name}/retry").post(
            retry,
            steers(
                "Create a session for the components of a session that failed; repeating this answers the same one",
                "The session is not complete, or none of its components failed",
            ),
        ),
    ]
}

pub(super) fn tenant_parameter() -> ApiParameter {
    query::<BoundedText<0, LONGEST_NAME>>(
        "tenant",
        "Tenant of the session; absent: the tenant that asks, or none",
    )
}

/// Returns the admission class of a request for sessions.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    let rest = path.strip_prefix(PATH)?;
    match rest {
        _ if *method == Method::OPTIONS => None,
        "" if *method == Method::POST => Some(CallClass::Operator),
        "" => Some(CallClass::List),
        _ => rest.starts_with('/').then_some(CallClass::Operator),
    }
}

async fn list(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?;
    let filter = SessionFilter { tenant, ..SessionFilter::default() };
    let request = ListSessionsRequest { filter: Some(filter) };
    let page = |page: ListSessionsResponse| page.sessions.into_iter().map(ShownSession::from);
    stream::array(SESSIONS, mesh.sessions.clone().list_sessions(call(request)), page).await.map_err(refused)
}

async fn create(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
    JsonBody(wish): JsonBody<NewSession>,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let answer = answer(SESSIONS, mesh.sessions.clone().create_session(call(wish.request(tenant)?))).await;
    let session = promised(answer.map_err(refused_wish)?.session).map_err(refused)?;
    json(StatusCode::CREATED, &ShownSession::from(session))
}

async fn show(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: SessionName,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let request = GetSessionRequest { name: name.into_text(), tenant };
    let answer = answer(SESSIONS, mesh.sessions.clone().get_session(call(request))).await.map_err(refused)?;
    let session = promised(answer.session).map_err(refused)?;
    json(StatusCode::OK, &ShownSession::single(session, answer.rollout, answer.estimate))
}

async fn cancel(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: SessionName,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let reason = query.text("reason", 0..=LONGEST_REASON)?.unwrap_or_default().to_owned();
    let request = CancelSessionRequest { name: name.into_text(), tenant, reason };
    let answer = answer(SESSIONS, mesh.sessions.clone().cancel_session(call(request))).await;
    shown(answer.map_err(refused)?.session)
}

async fn pause(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: SessionName,
    query: QueryParameters,
    extensions: Extensions,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let reason = query.text("reason", 0..=LONGEST_REASON)?.unwrap_or_default().to_owned();
    let caller = extensions.get::<RequestCaller>().and_then(|request| request.caller.as_ref());
    let client = caller.map(|caller| caller.shown().chars().take(LONGEST_NAME).collect()).unwrap_or_default();
    let name = name.into_text();
    let request = PauseSessionRequest { name, tenant, reason, client, expected_revision: 0 };
    let answer = answer(SESSIONS, mesh.sessions.clone().pause_session(call(request))).await;
    shown(answer.map_err(refused)?.session)
}

async fn resume(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: SessionName,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let request = ResumeSessionRequest { name: name.into_text(), tenant, expected_revision: 0 };
    let answer = answer(SESSIONS, mesh.sessions.clone().resume_session(call(request))).await;
    shown(answer.map_err(refused)?.session)
}

async fn retry(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    name: SessionName,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    let tenant = tenant(&headers, &query)?.unwrap_or_default();
    let request = RetrySessionRequest { name: name.into_text(), tenant };
    let answer = answer(SESSIONS, mesh.sessions.clone().retry_session(call(request))).await;
    shown(answer.map_err(refused)?.session)
}

fn shown(session: Option<proto::session::Session>) -> Result<Response, RequestProblem> {
    let session = promised(session).map_err(refused)?;
    json(StatusCode::OK, &ShownSession::from(session))
}

/// Returns the tenant whose sessions a request means: the one that asks by the header, or the one that an administrator
/// names; `None`: neither.
pub(super) fn tenant(headers: &HeaderMap, query: &QueryParameters) -> Result<Option<String>, RequestProblem> {
    let mut asking = headers.get_all(TENANT).iter();
    let first = asking.next().map(|value| std::str::from_utf8(value.as_bytes())).transpose();
    let first =
        first.map_err(|_| RequestProblem::bad_request(format!("header '{TENANT}' is not valid UTF-8")))?;
    if asking.next().is_some() {
        return Err(RequestProblem::bad_request(format!("header '{TENANT}' is there more than once")));
    }
    let named = query.text("tenant", 0..=LONGEST_NAME)?;
    match (first.filter(|tenant| !tenant.is_empty()), named) {
        (Some(asking), Some(named)) if asking != named => {
            let detail = "a tenant may ask for its own sessions only";
            Err(RequestProblem::of_status(StatusCode::FORBIDDEN, detail))
        }
        (Some(tenant), _) | (None, Some(tenant)) => Ok(Some(tenant.to_owned())),
        (None, None) => Ok(None),
    }
}

/// Returns the problem of a refused body: its fields are no parameters.
pub(super) fn refused_wish(fault: Fault) -> RequestProblem {
    match fault {
        Fault::Invalid(_) => RequestProblem::bad_request(fault.to_string()),
        other => refused(other),
    }
}

fn refused(fault: Fault) -> RequestProblem {
    let status = match &fault {
        Fault::NotFound { kind, .. } if kind == "session" => StatusCode::NOT_FOUND,
        // The caller named the session only: its tenant or template is gone.
        Fault::NotFound { .. } => StatusCode::BAD_REQUEST,
        Fault::Locked { .. } | Fault::AlreadyExists { .. } => StatusCode::CONFLICT,
        Fault::Invalid(_)
        | Fault::Violations(_)
        | Fault::Conflict { .. }
        | Fault::Unavailable { .. }
        | Fault::Busy { .. }
        | Fault::Stale { .. }
        | Fault::ResumeExpired(_)
        | Fault::Internal(_) => return history::refused(fault),
    };
    RequestProblem::of_status(status, fault.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::http::query::tests::query;

    #[tokio::test]
    async fn header_or_parameter_names_the_tenant() {
        let mut rows = String::new();
        for (header, parameter) in [
            ("", ""),
            ("", "tenant="),
            ("", "tenant=blue"),
            ("blue", ""),
            ("blue", "tenant=blue"),
            ("blue", "tenant=red"),
            ("blue", "tenant="),
        ] {
            let headers = HeaderMap::from_iter([(TENANT.parse().unwrap(), header.parse().unwrap())]);
            let named = tenant(&headers, &query(parameter).await);
            let named = named.map_err(|problem| (problem.status.as_u16(), problem.detail));
            rows += &format!("'{header}' {parameter}: {named:?}\n");
        }
        expect![[r#"
            '' : Ok(None)
            '' tenant=: Ok(Some(""))
            '' tenant=blue: Ok(Some("blue"))
            'blue' : Ok(Some("blue"))
            'blue' tenant=blue: Ok(Some("blue"))
            'blue' tenant=red: Err((403, "a tenant may ask for its own sessions only"))
            'blue' tenant=: Err((403, "a tenant may ask for its own sessions only"))
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn refusals_have_status_and_text() {
        let locked = Fault::Locked {
            kind: "session".into(),
            name: "s".into(),
            reason: "it is complete already, with the result succeeded".into(),
        };
        let mut rows = String::new();
        for fault in [
            locked,
            Fault::not_found("session", "s"),
            Fault::not_found("session_template", "t"),
            Fault::unavailable("session manager", "connection refused"),
            Fault::Internal("secret".into()),
        ] {
            let problem = refused(fault);
            rows += &format!("{} {}\n", problem.status.as_u16(), problem.detail);
        }
        expect![[r#"
            409 session 's': it is complete already, with the result succeeded
            404 session 's' does not exist
            400 session_template 't' does not exist
            503 session manager: connection refused
            500 the request could not be done; its id is 
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn requests_have_an_admission_class() {
        let of = |method, path| class_of(&method, path).map(CallClass::word);
        assert_eq!(of(Method::GET, PATH), Some(CallClass::List.word()));
        assert_eq!(of(Method::POST, PATH), Some(CallClass::Operator.word()));
        assert_eq!(of(Method::POST, "/reveille/v1/sessions/s/cancel"), Some(CallClass::Operator.word()));
        assert_eq!(of(Method::OPTIONS, PATH), None);
        assert_eq!(of(Method::GET, "/reveille/v1/sessionsx"), None);
    }
}
