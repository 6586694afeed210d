//! `/v2/sessions` (BOS reference 2.9).

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chassis::{Fault, limits::LONGEST_AGE};
use http::StatusCode;
use proto::session::{
    DeleteSessionRequest, DeleteSessionsRequest, GetSessionRequest, GetSessionStatusRequest,
    ListLeftOutMembersRequest, ListLeftOutMembersResponse, ListSessionsRequest, ListSessionsResponse,
    Progress, SaveSessionStatusRequest, SessionFilter,
};

use crate::{
    bos::{
        convert::session::{creation, shown, status_shown, update},
        face::BosFace,
        parameters::word,
        problem::{BosProblem, TENANT},
        tenant::RequestTenant,
        wire::{
            primitive::{ResourceName, is_name},
            session::{LeftOutMember, NewSession, SessionPatch},
            strict::JsonObject,
        },
    },
    http::{
        answer::json,
        call::{answer, call, promised},
        extract::{JsonBody, PathName, at},
        problem::RequestProblem,
        query::QueryParameters,
        stream,
    },
    mesh::SESSIONS,
};

pub(super) async fn list(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    query: QueryParameters,
) -> Result<Response, BosProblem> {
    let request = ListSessionsRequest { filter: Some(filter(&query, &tenant)?) };
    let strict = face.strict;
    let page = move |page: ListSessionsResponse| {
        page.sessions.into_iter().map(move |session| shown(session, strict))
    };
    Ok(stream::array(SESSIONS, face.mesh.sessions.clone().list_sessions(call(request)), page).await?)
}

/// Returns the filter of the query parameters (BOS reference 2.9.2).
fn filter(query: &QueryParameters, tenant: &RequestTenant) -> Result<SessionFilter, RequestProblem> {
    let age = |name| query.text(name, 1..=LONGEST_AGE).map(|age| age.unwrap_or_default().to_owned());
    Ok(SessionFilter {
        tenant: tenant.filter(),
        min_age: age("min_age")?,
        max_age: age("max_age")?,
        progress: query.parsed("status", word::<Progress>)?.unwrap_or_default().into(),
    })
}

pub(super) async fn create(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    JsonBody(JsonObject(wish)): JsonBody<JsonObject<NewSession>>,
) -> Result<Response, BosProblem> {
    // In a message an empty name asks for a new one, but in a request it is no name.
    if wish.name.as_deref().is_some_and(|name| !is_name(name)) {
        return Err(BosProblem::bad_request(at("name", "is not the name of a session")));
    }
    let request = creation(wish, tenant.0.clone());
    let answer = answer(SESSIONS, face.mesh.sessions.clone().create_session(call(request))).await;
    let answer = answer.map_err(|fault| not_created(fault, &tenant))?;
    Ok(json(StatusCode::CREATED, &shown(promised(answer.session)?, face.strict))?)
}

/// Returns the problem of a creation. A missing resource, if not the tenant, is the template: to the caller a mistake
/// in the body, not in the path.
fn not_created(fault: Fault, tenant: &RequestTenant) -> BosProblem {
    match fault {
        Fault::NotFound { kind, name } if kind != TENANT => {
            BosProblem::bad_request(format!("Session Template Name invalid: {name}"))
        }
        // BOS confirms nothing, so its contract has no place for the number.
        Fault::Locked { reason, .. } => BosProblem::bad_request(format!(
            "{reason} (confirmed_nodes of POST /reveille/v1/sessions, --confirm of the command)"
        )),
        other => BosProblem::of(other, tenant),
    }
}

pub(super) async fn delete_many(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    query: QueryParameters,
) -> Result<Response, BosProblem> {
    let request = DeleteSessionsRequest { filter: Some(doomed(&query, &tenant, face.strict)?) };
    let deleted = answer(SESSIONS, face.mesh.sessions.clone().delete_sessions(call(request))).await;
    // BOS words only one refusal itself here: an age that reaches back too far.
    let prefix = if face.strict { "Error parsing age field: " } else { "" };
    deleted.map_err(|fault| BosProblem::from(fault).prefixed(prefix))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns the filter of the sessions that a deletion removes: those of a list with the same parameters. Without
/// parameters only complete sessions are removed, because a forgotten parameter must not end running sessions; BOS
/// removes all (BOS reference 12, BUG-02).
fn doomed(
    query: &QueryParameters,
    tenant: &RequestTenant,
    strict: bool,
) -> Result<SessionFilter, RequestProblem> {
    let mut filter = filter(query, tenant)?;
    let narrowed = ["min_age", "max_age", "status"].into_iter().any(|name| query.has(name));
    if !narrowed && !strict {
        filter.set_progress(Progress::Complete);
    }
    Ok(filter)
}

pub(super) async fn show(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = GetSessionRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, face.mesh.sessions.clone().get_session(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &shown(promised(answer.session)?, face.strict))?)
}

pub(super) async fn patch(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
    JsonBody(JsonObject(patch)): JsonBody<JsonObject<SessionPatch>>,
) -> Result<Response, BosProblem> {
    let request = update(patch, name.name()?, tenant.0.clone());
    let answer = answer(SESSIONS, face.mesh.sessions.clone().update_session(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &shown(promised(answer.session)?, face.strict))?)
}

pub(super) async fn delete(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = DeleteSessionRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, face.mesh.sessions.clone().delete_session(call(request))).await;
    answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn status(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = GetSessionStatusRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, face.mesh.sessions.clone().get_session_status(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &status_shown(promised(answer.status)?, face.strict))?)
}

/// Lists the nodes that the session leaves out, with the reasons. BOS has no such path.
pub(super) async fn left_out(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = ListLeftOutMembersRequest { name: name.name()?, tenant: tenant.0.clone() };
    let mut sessions = face.mesh.sessions.clone();
    let members = sessions.list_left_out_members(call(request));
    let page = |page: ListLeftOutMembersResponse| page.members.into_iter().map(LeftOutMember::from);
    stream::array(SESSIONS, members, page).await.map_err(|fault| BosProblem::of(fault, &tenant))
}

/// Saves the status of a session. The body is not read (BOS reference 2.9.4).
pub(super) async fn save_status(
    State(face): State<BosFace>,
    tenant: RequestTenant,
    name: PathName<ResourceName>,
) -> Result<Response, BosProblem> {
    let request = SaveSessionStatusRequest { name: name.name()?, tenant: tenant.0.clone() };
    let answer = answer(SESSIONS, face.mesh.sessions.clone().save_session_status(call(request))).await;
    let answer = answer.map_err(|fault| BosProblem::of(fault, &tenant))?;
    Ok(json(StatusCode::OK, &status_shown(promised(answer.status)?, face.strict))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query::tests::query;

    #[tokio::test]
    async fn a_deletion_without_parameters_takes_only_complete_sessions() {
        let any = Progress::Unspecified;
        for (text, strict, tenant, progress) in [
            ("", false, "", Progress::Complete),
            ("", false, "blue", Progress::Complete),
            ("bogus=1", false, "", Progress::Complete),
            ("", true, "", any),
            ("status=running", false, "", Progress::Running),
            ("min_age=1d", false, "", any),
            ("max_age=1d", false, "", any),
            ("status=pending&status=running", true, "blue", Progress::Running),
        ] {
            let tenant = RequestTenant(tenant.to_owned());
            let filter = doomed(&query(text).await, &tenant, strict).unwrap();
            assert_eq!((filter.progress(), &filter.tenant), (progress, &tenant.filter()), "{text} {strict}");
        }
    }
}
