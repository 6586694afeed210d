//! Power transitions: requests to the power service, and the operator's word that one of them is over.

mod shown;

use std::time::Duration;

use axum::{extract::State, response::Response};
use chassis::{
    Fault,
    limits::LONGEST_NAME,
    mesh::{call_class::CallClass, request_id},
};
use http::{HeaderMap, Method, StatusCode};
use proto::power::{
    AbandonTransitionRequest, ListTransitionsRequest, ListTransitionsResponse, ReadHoldersRequest,
};

use self::shown::ShownTransition;
use super::{at, history};
use crate::{
    http::{
        answer::json,
        call::{answer, answer_within, call, fault, promised},
        document::{ApiOperation, BoundedText, query},
        endpoint::ApiEndpoint,
        problem::RequestProblem,
        query::QueryParameters,
        stream,
        warnings::with_warnings,
    },
    mesh::{MeshHandle, POWER},
};

const PATH: &str = "/reveille/v1/transitions";
const ABANDON_PATH: &str = "/reveille/v1/transitions/abandon";

/// Deadline of the question which transition holds a component, which the power service answers.
const HOLDER_DEADLINE: Duration = Duration::from_secs(2);

type ResourceName = BoundedText<1, LONGEST_NAME>;

pub(super) fn endpoints() -> Vec<ApiEndpoint<MeshHandle>> {
    let of_administrators = |about| {
        ApiOperation::new(about)
            .refuses(StatusCode::FORBIDDEN, "A tenant asks; transitions are for administrators")
    };
    vec![
        at(PATH).get(
            list,
            of_administrators(
                "Power transitions that Reveille requested or gave up, the oldest first; with `component`, at last the \
                 one of another client that holds it; without an answer of the power service a warning says that it may be missing",
            )
                .answers::<Vec<ShownTransition>>()
                .asks([query::<ResourceName>("component", "Only transitions with that component")]),
        ),
        at(ABANDON_PATH).post(
            abandon,
            of_administrators(
                "Give up a transition that the power service never ends; all of its nodes are acted on again",
            )
            .answers::<ShownTransition>()
            .asks([
                query::<ResourceName>("id", "Id of the transition, here or at the power service"),
                query::<ResourceName>(
                    "component",
                    "In place of `id`: the transition that holds that component, whoever requested it",
                ),
            ])
            .refuses(StatusCode::NOT_FOUND, "There is no such transition, or none that holds the component")
            .refuses(
                StatusCode::CONFLICT,
                "The transition is of another client, and has ended; or that of the component is of Reveille, and its \
                 time is not over",
            ),
        ),
    ]
}

/// Returns the admission class of a request for transitions.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    match path {
        _ if *method == Method::OPTIONS => None,
        PATH => Some(CallClass::List),
        ABANDON_PATH => Some(CallClass::Operator),
        _ => None,
    }
}

async fn list(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "transitions")?;
    let component_id = query.text("component", 1..=LONGEST_NAME)?.unwrap_or_default().to_owned();
    if !component_id.is_empty() {
        return of_component(&mesh, component_id).await;
    }
    let request = ListTransitionsRequest::default();
    let page = |page: ListTransitionsResponse| page.transitions.into_iter().map(ShownTransition::from);
    stream::array(POWER, mesh.power.clone().list_transitions(call(request)), page).await.map_err(refused)
}

/// Lists the transitions of a component. The power service is asked for one of another client that holds the component; the
/// list is wanted while it does not answer, too, and a warning then says that that one may be missing.
async fn of_component(mesh: &MeshHandle, component_id: String) -> Result<Response, RequestProblem> {
    let mut power = mesh.power.clone();
    let request = ReadHoldersRequest { component_ids: vec![component_id.clone()] };
    let holders = answer_within(HOLDER_DEADLINE, POWER, power.read_holders(call(request)));
    let mut power = mesh.power.clone();
    let listed = answer(POWER, power.list_transitions(call(ListTransitionsRequest { component_id })));
    let (holders, listed) = tokio::join!(holders, listed);
    let mut messages = listed.map_err(refused)?;
    let mut transitions = Vec::new();
    while let Some(page) = messages.message().await.map_err(|status| refused(fault(POWER, status)))? {
        transitions.extend(page.transitions);
    }
    let (holders, unread) = match holders {
        Ok(answer) => (answer.holders, answer.unread),
        Err(fault) => (Vec::new(), fault.to_string()),
    };
    let holders = holders.into_iter().filter_map(|holder| holder.transition);
    transitions.extend(holders.filter(|holder| holder.id.is_empty()));
    let shown: Vec<_> = transitions.into_iter().map(ShownTransition::from).collect();
    let warnings = unread_warning(&unread);
    Ok(with_warnings(json(StatusCode::OK, &shown)?, warnings.as_slice()))
}

/// Returns the warning that a list may lack a transition of another client, which could not be read for the reason `unread`.
fn unread_warning(unread: &str) -> Option<String> {
    let warning = || format!("a transition of another client may be missing: {unread}");
    (!unread.is_empty()).then(warning)
}

async fn abandon(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    history::refuse_tenant(&headers, "transitions")?;
    let text = |name| query.text(name, 1..=LONGEST_NAME).map(|text| text.unwrap_or_default().to_owned());
    let (id, component_id) = (text("id")?, text("component")?);
    match (id.is_empty(), component_id.is_empty()) {
        (true, true) => {
            return Err(RequestProblem::of_parameter("id", "is needed, or 'component' in its place"));
        }
        (false, false) => {
            return Err(RequestProblem::of_parameter(
                "id",
                "is given beside 'component', which is one too many",
            ));
        }
        (true, false) | (false, true) => {}
    }
    let request_id = request_id::current().unwrap_or_default();
    let request = AbandonTransitionRequest { id, component_id, request_id };
    let abandoned = answer(POWER, mesh.power.clone().abandon_transition(call(request))).await;
    let transition = abandoned.and_then(|answer| promised(answer.transition)).map_err(refused)?;
    json(StatusCode::OK, &ShownTransition::from(transition))
}

fn refused(fault: Fault) -> RequestProblem {
    match fault {
        Fault::NotFound { .. } => RequestProblem::of_status(StatusCode::NOT_FOUND, fault.to_string()),
        Fault::Locked { .. } => RequestProblem::of_status(StatusCode::CONFLICT, fault.to_string()),
        other => history::refused(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_an_admission_class() {
        let of = |method, path| class_of(&method, path).map(CallClass::word);
        assert_eq!(of(Method::GET, PATH), Some(CallClass::List.word()));
        assert_eq!(of(Method::POST, ABANDON_PATH), Some(CallClass::Operator.word()));
        assert_eq!(of(Method::OPTIONS, PATH), None);
        assert_eq!(of(Method::GET, "/reveille/v1/transitionsx"), None);
    }
}
