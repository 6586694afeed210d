//! Events: what happened to a node, a session or a host, in order, by whom and why.

use std::borrow::Cow;

use axum::{extract::State, response::Response};
use chassis::{
    kinds::history::{COMPONENT, HOST, SESSION, TRANSITION, session_key},
    mesh::call_class::CallClass,
};
use http::{HeaderMap, Method, StatusCode};
use proto::insight::{ListTimelineRequest, TimelineFilter, TimelineSubject};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::history::{
    self, LONGEST, LONGEST_PLACE, MOST, MOST_ITEMS, ShownEvent, refuse_tenant, refused,
    words::{self, HistoryPlace, SeparatedEvents, SeparatedResources},
};
use crate::{
    http::{
        answer::json,
        document::{ApiOperation, ApiParameter, BoundedText, SeparatedTexts, WholeNumber, ZonedTime, query},
        problem::RequestProblem,
        query::QueryParameters,
    },
    mesh::MeshHandle,
};

/// Path of the events.
pub(super) const PATH: &str = "/reveille/v1/events";

/// Longest name of a session or tenant.
const LONGEST_NAME: usize = chassis::limits::LONGEST_NAME;

/// Parameters with keys, by the kind of resources that they select.
const KEYS: [&str; 3] = [COMPONENT, HOST, TRANSITION];

pub(super) fn operation() -> ApiOperation {
    ApiOperation::new("What happened to components, sessions, hosts and the rest, in the order of time")
        .answers::<EventList>()
        .asks(parameters())
        .refuses(StatusCode::FORBIDDEN, "A tenant asks; events are for administrators")
}

fn parameters() -> [ApiParameter; 12] {
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
            "host",
            "Namespaces and names, such as `metal/host-1`, of at most 100 hosts, separated by commas, whose events are wanted",
        ),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "transition",
            "Ids of at most 100 power transitions, separated by commas, whose events are wanted",
        ),
        query::<SeparatedResources>("resource", "Kinds of resources, separated by commas; absent: all"),
        query::<SeparatedEvents>(
            "kind",
            "At most 100 kinds of events, separated by commas, such as `power_action_began`; absent: all",
        ),
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
            "reason",
            "At most 100 reasons, separated by commas, such as `retries_exhausted`; absent: all",
        ),
        query::<ZonedTime>("since", "Earliest time, such as `2026-01-31T12:00:00Z`"),
        query::<WholeNumber<1, MOST>>("limit", "Most events; the newest are shown. Absent: 1,000"),
        query::<EventOrder>("order", "Order of the events; absent: the oldest first"),
        query::<HistoryPlace>(
            "before",
            "Position before which events are wanted: `older` of an answer to the same parameters. Absent: the newest",
        ),
    ]
}

/// The admission class of a request for events.
pub(super) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    (path == PATH && *method != Method::OPTIONS).then_some(CallClass::Operator)
}

/// Page of events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventList {
    events: Vec<ShownEvent>,
    /// Value of the parameter `before` for the page with older events; absent: there are none. A page may have fewer
    /// events than wanted, or none, and an older page nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    older: Option<String>,
}

pub(super) async fn list(
    State(mesh): State<MeshHandle>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, RequestProblem> {
    refuse_tenant(&headers, "events")?;
    let WantedPage { request, order } = WantedPage::read(&query)?;
    let page = history::page(&mesh, request).await.map_err(refused)?;
    let entries = page.entries.into_iter();
    let mut events: Vec<_> = entries.map(|entry| ShownEvent::from(entry.event.unwrap_or_default())).collect();
    match order {
        EventOrder::NewestFirst => {}
        EventOrder::OldestFirst => events.reverse(),
    }
    let older = Some(page.older).filter(|older| !older.is_empty());
    json(StatusCode::OK, &EventList { events, older })
}

/// Order of the events in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EventOrder {
    #[default]
    OldestFirst,
    NewestFirst,
}

impl EventOrder {
    const OLDEST_FIRST: &str = "oldest_first";
    const NEWEST_FIRST: &str = "newest_first";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            Self::OLDEST_FIRST => Ok(Self::OldestFirst),
            Self::NEWEST_FIRST => Ok(Self::NewestFirst),
            _ => Err(format!("is neither {} nor {}", Self::OLDEST_FIRST, Self::NEWEST_FIRST)),
        }
    }
}

impl JsonSchema for EventOrder {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EventOrder".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": [Self::OLDEST_FIRST, Self::NEWEST_FIRST] })
    }
}

/// Wishes of a client.
struct WantedPage {
    request: ListTimelineRequest,
    order: EventOrder,
}

impl WantedPage {
    fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        let limit = query.integer("limit", 1..=MOST)?.unwrap_or(MOST);
        let order = query.parsed("order", EventOrder::read)?.unwrap_or_default();
        let before = query.text("before", 1..=LONGEST_PLACE)?.unwrap_or_default().to_owned();
        let filter = TimelineFilter {
            subjects: subjects(query)?,
            resources: query.parsed("resource", words::resources)?.unwrap_or_default(),
            events: query.parsed("kind", words::events)?.unwrap_or_default(),
            reasons: query.texts("reason", MOST_ITEMS, LONGEST)?,
            since: query.parsed("since", history::time)?,
            ..TimelineFilter::default()
        };
        let page =
            ListTimelineRequest { filter: Some(filter), page_size: limit, before, after: String::new() };
        Ok(Self { request: page, order })
    }
}

/// Returns the resources that a request selects; none: all.
fn subjects(query: &QueryParameters) -> Result<Vec<TimelineSubject>, RequestProblem> {
    let subject = |resource: &str, key| TimelineSubject {
        resource: resource.to_owned(),
        key,
        ..TimelineSubject::default()
    };
    let mut subjects = Vec::new();
    for kind in KEYS {
        let named = query.texts(kind, MOST_ITEMS, LONGEST)?;
        subjects.extend(named.into_iter().map(|key| subject(kind, key)));
    }
    let tenant = query.text("tenant", 0..=LONGEST_NAME)?.unwrap_or_default();
    let session = query.text(SESSION, 1..=LONGEST_NAME)?;
    subjects.extend(session.map(|name| subject(SESSION, session_key(tenant, name))));
    Ok(subjects)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::http::query::tests::check;

    fn read(query: &QueryParameters) -> Result<String, RequestProblem> {
        let WantedPage { request, order } = WantedPage::read(query)?;
        let filter = request.filter.unwrap_or_default();
        let subjects = filter.subjects.iter().map(|one| format!("{} {:?}", one.resource, one.key));
        let mut line = format!("{} {order:?}", request.page_size);
        for (name, texts) in [
            ("of", subjects.collect()),
            ("resources", filter.resources),
            ("events", filter.events),
            ("reasons", filter.reasons),
            ("since", filter.since.map(|since| since.seconds.to_string()).into_iter().collect()),
            ("before", Some(request.before).into_iter().filter(|text| !text.is_empty()).collect()),
        ] {
            if !texts.is_empty() {
                line.push_str(&format!(" {name} {}", texts.join(" ")));
            }
        }
        Ok(line)
    }

    #[tokio::test]
    async fn parameters_select_resources_and_events() {
        let queries = [
            "",
            "component=x1,x2&kind=prepared,enabled",
            "session=s&tenant=blue&limit=7",
            "session=s&component=x1",
            "host=metal/host-1&reason=error",
            "transition=t&order=newest_first",
            "resource=host,options&since=1970-01-01T01:00:07%2B01:00",
            "before=host:7:1,component:3:0",
            "since=yesterday",
            "limit=0",
            "component=",
            "component=x1,,x2",
            "resource=node",
            "kind=exploded",
            "order=random",
        ];
        check(&queries, read, expect![[r#"
             -> "1000 OldestFirst"
            component=x1,x2&kind=prepared,enabled -> "1000 OldestFirst of component \"x1\" component \"x2\" events prepared enabled"
            session=s&tenant=blue&limit=7 -> "7 OldestFirst of session \"blue\\ts\""
            session=s&component=x1 -> "1000 OldestFirst of component \"x1\" session \"\\ts\""
            host=metal/host-1&reason=error -> "1000 OldestFirst of host \"metal/host-1\" reasons error"
            transition=t&order=newest_first -> "1000 NewestFirst of transition \"t\""
            resource=host,options&since=1970-01-01T01:00:07%2B01:00 -> "1000 OldestFirst resources host options since 7"
            before=host:7:1,component:3:0 -> "1000 OldestFirst before host:7:1,component:3:0"
            since=yesterday -> query parameter 'since': is no time such as 2026-01-31T12:00:00Z
            limit=0 -> query parameter 'limit': 0 is not between 1 and 1000
            component= -> query parameter 'component': has 0 characters, not between 1 and 16384
            component=x1,,x2 -> query parameter 'component': has an empty item
            resource=node -> query parameter 'resource': 'node' has no events
            kind=exploded -> query parameter 'kind': 'exploded' is no kind of event
            order=random -> query parameter 'order': is neither oldest_first nor newest_first
        "#]]).await;
    }
}
