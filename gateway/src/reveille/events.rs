//! Events: what happened to a node or a session, in order, by whom and why.

use std::collections::BTreeMap;

use axum::{extract::State, response::Response};
use chassis::{Fault, mesh::call_class::CallClass, process::pause};
use chrono::{DateTime, SecondsFormat, Utc};
use http::{HeaderMap, Method, StatusCode};
use proto::event::{Event, EventFilter, ListEventsRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    http::{
        answer::json,
        call::{answer, call},
        document::{ApiOperation, ApiParameter, BoundedText, SeparatedTexts, WholeNumber, ZonedTime, query},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::{EventClient, MeshHandle, REGISTRY, SESSIONS},
};

/// Path of the events.
pub(super) const PATH: &str = "/reveille/v1/events";

/// Header of a request on behalf of a tenant.
const TENANT: &str = "cray-tenant-name";

/// Most events of an answer.
const MOST: u32 = 1000;

/// Most items of a parameter with several.
const MOST_ITEMS: usize = 100;

/// Longest value of a parameter with several items: a hundred names.
const LONGEST: usize = 16 << 10;

/// Longest name of a session or tenant.
const LONGEST_NAME: usize = chassis::limits::LONGEST_NAME;

/// Separator of the tenant and the name in the key of a session.
const SEPARATOR: char = '\t';

pub(super) fn operation() -> ApiOperation {
    ApiOperation::new("What happened to components and sessions, the oldest event first")
        .answers::<EventList>()
        .asks(parameters())
        .refuses(StatusCode::FORBIDDEN, "A tenant asks; events are for administrators")
}

fn parameters() -> [ApiParameter; 6] {
    [
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "component",
            "Ids of at most 100 components, separated by commas, whose events are wanted",
        ),
        query::<BoundedText<1, LONGEST_NAME>>(
            "session",
            "Name of the session whose events are wanted; its components are not included",
        ),
        query::<BoundedText<0, LONGEST_NAME>>("tenant", "Tenant of that session; absent or empty: none"),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "kind",
            "At most 100 kinds of events, separated by commas, such as `power_action_began`; absent: all",
        ),
        query::<ZonedTime>("since", "Earliest time, such as `2026-01-31T12:00:00Z`"),
        query::<WholeNumber<1, MOST>>("limit", "Most events; the newest are shown. Absent: 1,000"),
    ]
}

/// The admission class of a request for events.
pub(crate) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path == PATH && *method != Method::OPTIONS).then_some(CallClass::Operator)
}

/// Events in the order of their times.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventList {
    events: Vec<ShownEvent>,
}

/// Change of a component or a session that a person asks about later.
#[derive(Serialize, JsonSchema)]
struct ShownEvent {
    /// Time of the change, to the millisecond.
    time: String,
    /// Kind of the resource: `component` or `session`.
    resource: String,
    /// Id of the component, or name of the session.
    name: String,
    /// Tenant of the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
    /// Word for the kind of event, such as `power_action_began`.
    kind: String,
    /// Word for the reason, such as `retries_exhausted`.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Text for people, such as the words of an upstream.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    /// Further values, such as the number of an attempt.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    details: BTreeMap<String, String>,
    /// Author: a service of the mesh, or `client` for nodes and operators.
    actor: String,
    /// Id of the request that made the change, as in logs.
    #[serde(skip_serializing_if = "String::is_empty")]
    request_id: String,
}

pub(super) async fn list(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    if headers.get_all(TENANT).iter().any(|tenant| !tenant.is_empty()) {
        let detail = "events are for administrators; a tenant sees the state of its nodes in /v2/components";
        return Err(RequestProblem::of_status(StatusCode::FORBIDDEN, detail));
    }
    let wanted = WantedLists::read(&query)?;
    let (sessions, components) = tokio::try_join!(
        listed(SESSIONS, &mesh.session_events, wanted.sessions),
        listed(REGISTRY, &mesh.component_events, wanted.components),
    )?;
    let mut events: Vec<_> = sessions.into_iter().chain(components).collect();
    // Stable: the events of one service are in the order of their commits.
    events.sort_by_key(|event| event.time.map(|time| (time.seconds, time.nanos)));
    events.drain(..events.len().saturating_sub(wanted.limit as usize));
    json(StatusCode::OK, &EventList { events: events.into_iter().map(ShownEvent::from).collect() })
}

/// Requests to the services; `None`: no event of the service is wanted.
struct WantedLists {
    sessions: Option<ListEventsRequest>,
    components: Option<ListEventsRequest>,
    limit: u32,
}

impl WantedLists {
    fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        let limit = query.integer("limit", 1..=MOST)?.unwrap_or(MOST);
        let ids = query.texts("component", MOST_ITEMS, LONGEST)?;
        let kinds = query.texts("kind", MOST_ITEMS, LONGEST)?;
        let since = query.parsed("since", time)?;
        let tenant = query.text("tenant", 0..=LONGEST_NAME)?.unwrap_or_default();
        let session = query.text("session", 1..=LONGEST_NAME)?;
        let session = session.map(|name| format!("{tenant}{SEPARATOR}{name}"));
        let is_everything = ids.is_empty() && session.is_none();
        let request = |keys: Vec<String>| {
            let is_wanted = is_everything || !keys.is_empty();
            let filter = EventFilter { keys, kinds: kinds.clone(), since, ..EventFilter::default() };
            is_wanted.then_some(ListEventsRequest { filter: Some(filter), page_size: limit })
        };
        let sessions = request(session.into_iter().collect());
        Ok(Self { sessions, components: request(ids), limit })
    }
}

fn time(text: &str) -> Result<prost_types::Timestamp, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "is no time such as 2026-01-31T12:00:00Z".to_owned())?;
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
    Ok(prost_types::Timestamp { seconds: time.timestamp(), nanos })
}

async fn listed(
    part: &'static str,
    client: &EventClient,
    request: Option<ListEventsRequest>,
) -> Result<Vec<Event>, RequestProblem> {
    let Some(request) = request else { return Ok(Vec::new()) };
    let answer = answer(part, client.clone().list_events(call(request))).await;
    answer.map(|answer| answer.events).map_err(refused)
}

fn refused(fault: Fault) -> RequestProblem {
    match fault {
        Fault::Invalid(invalid) => RequestProblem::bad_request(invalid.to_string()),
        Fault::Violations(_) => RequestProblem::bad_request(fault.to_string()),
        Fault::Busy { reason, retry_after } => RequestProblem::busy(reason, retry_after),
        Fault::Unavailable { .. } => {
            let problem = RequestProblem::of_status(StatusCode::SERVICE_UNAVAILABLE, fault.to_string());
            RequestProblem { retry_after: Some(pause::retry_after()), ..problem }
        }
        Fault::NotFound { .. }
        | Fault::AlreadyExists { .. }
        | Fault::Locked { .. }
        | Fault::Conflict { .. }
        | Fault::Stale { .. }
        | Fault::ResumeExpired(_)
        | Fault::Internal(_) => RequestProblem::internal(&fault.to_string()),
    }
}

impl From<Event> for ShownEvent {
    fn from(event: Event) -> Self {
        let body = event.body.unwrap_or_default();
        let (tenant, name) = match event.key.rsplit_once(SEPARATOR) {
            Some((tenant, name)) => (tenant.to_owned(), name.to_owned()),
            None => (String::new(), event.key),
        };
        let time = event.time.unwrap_or_default();
        let time = DateTime::<Utc>::from_timestamp(time.seconds, time.nanos.try_into().unwrap_or_default());
        Self {
            time: time.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true),
            resource: event.resource,
            name,
            tenant,
            kind: body.kind,
            reason: body.reason,
            text: body.text,
            details: body.details.into_iter().map(|detail| (detail.name, detail.value)).collect(),
            actor: event.actor,
            request_id: event.request_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::http::query::tests::check;

    fn shown(request: &Option<ListEventsRequest>) -> String {
        let Some(request) = request else { return "nothing".to_owned() };
        let filter = request.filter.clone().unwrap_or_default();
        let since = filter.since.map(|since| since.seconds);
        format!(
            "keys {:?}, kinds {:?}, since {since:?}, {} at most",
            filter.keys, filter.kinds, request.page_size
        )
    }

    fn read(query: &QueryParameters) -> Result<String, RequestProblem> {
        let wanted = WantedLists::read(query)?;
        Ok(format!("sessions: {}; components: {}", shown(&wanted.sessions), shown(&wanted.components)))
    }

    #[tokio::test]
    async fn parameters_select_services_and_events() {
        let queries = [
            "",
            "component=x1,x2&kind=prepared,enabled",
            "session=s&tenant=blue&limit=7",
            "session=s&component=x1",
            "since=1970-01-01T01:00:07%2B01:00",
            "since=yesterday",
            "limit=0",
            "component=",
            "component=x1,,x2",
        ];
        check(
            &queries,
            read,
            expect![[r#"
                 -> "sessions: keys [], kinds [], since None, 1000 at most; components: keys [], kinds [], since None, 1000 at most"
                component=x1,x2&kind=prepared,enabled -> "sessions: nothing; components: keys [\"x1\", \"x2\"], kinds [\"prepared\", \"enabled\"], since None, 1000 at most"
                session=s&tenant=blue&limit=7 -> "sessions: keys [\"blue\\ts\"], kinds [], since None, 7 at most; components: nothing"
                session=s&component=x1 -> "sessions: keys [\"\\ts\"], kinds [], since None, 1000 at most; components: keys [\"x1\"], kinds [], since None, 1000 at most"
                since=1970-01-01T01:00:07%2B01:00 -> "sessions: keys [], kinds [], since Some(7), 1000 at most; components: keys [], kinds [], since Some(7), 1000 at most"
                since=yesterday -> query parameter 'since': is no time such as 2026-01-31T12:00:00Z
                limit=0 -> query parameter 'limit': 0 is not between 1 and 1000
                component= -> query parameter 'component': has 0 characters, not between 1 and 16384
                component=x1,,x2 -> query parameter 'component': has an empty item
            "#]],
        )
        .await;
    }

    #[test]
    fn session_is_shown_by_tenant_and_name() {
        let event = |key: &str| ShownEvent::from(Event { key: key.to_owned(), ..Event::default() });
        let shown = [event("blue\ts"), event("\ts"), event("x1")].map(|event| (event.tenant, event.name));
        let expected = [("blue", "s"), ("", "s"), ("", "x1")];
        assert_eq!(shown, expected.map(|(tenant, name)| (tenant.to_owned(), name.to_owned())));
    }
}
