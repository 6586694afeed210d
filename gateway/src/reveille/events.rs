//! Events: what happened to a node, a session or a host, in order, by whom and why.

mod merge;
mod position;
mod shown;
mod source;

use std::borrow::Cow;

use axum::{extract::State, response::Response};
use chassis::{Fault, mesh::call_class::CallClass, process::pause};
use chrono::DateTime;
use futures_util::future::try_join_all;
use http::{HeaderMap, Method, StatusCode};
use proto::event::{EventFilter, EventPosition, ListEventsRequest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use self::{
    merge::{SourcePage, merge},
    position::EventPositions,
    shown::ShownEvent,
    source::{EventSource, SOURCES, SeparatedResources},
};
use super::TENANT;
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

/// Parameters with keys, by the kind of resources that they select.
const KEYS: [&str; 3] = ["component", "host", "transition"];

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
        query::<SeparatedTexts<MOST_ITEMS, LONGEST>>(
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
        query::<EventPositions>(
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
    let WantedPage { lists, limit, order } = WantedPage::read(&query)?;
    let pages = lists.into_iter().map(|wanted| wanted.page(&mesh));
    let (events, older) = merge(try_join_all(pages).await?, limit as usize);
    let mut events: Vec<_> = events.into_iter().map(ShownEvent::from).collect();
    match order {
        EventOrder::NewestFirst => {}
        EventOrder::OldestFirst => events.reverse(),
    }
    json(StatusCode::OK, &EventList { events, older: older.text() })
}

/// Refuses a request on behalf of a tenant.
///
/// # Errors
/// When a tenant asks for `what`.
pub(super) fn refuse_tenant(headers: &HeaderMap, what: &str) -> Result<(), RequestProblem> {
    if headers.get_all(TENANT).iter().all(|tenant| tenant.is_empty()) {
        return Ok(());
    }
    let detail =
        format!("{what} are for administrators; a tenant sees the state of its nodes in /v2/components");
    Err(RequestProblem::of_status(StatusCode::FORBIDDEN, detail))
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

/// Request to the history of one kind.
struct WantedList {
    source: &'static EventSource,
    request: ListEventsRequest,
}

/// Requests to the histories of which events are wanted.
struct WantedPage {
    lists: Vec<WantedList>,
    limit: u32,
    order: EventOrder,
}

impl WantedPage {
    fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        let limit = query.integer("limit", 1..=MOST)?.unwrap_or(MOST);
        let order = query.parsed("order", EventOrder::read)?.unwrap_or_default();
        let positions = query.parsed("before", EventPositions::read)?;
        let filter = EventFilter {
            kinds: query.texts("kind", MOST_ITEMS, LONGEST)?,
            reasons: query.texts("reason", MOST_ITEMS, LONGEST)?,
            since: query.parsed("since", time)?,
            ..EventFilter::default()
        };
        let selected = SelectedResources::read(query)?;
        let mut lists = Vec::new();
        for source in &SOURCES {
            let Some(keys) = selected.keys_of(source) else { continue };
            let before = positions.as_ref().map(|positions| positions.of(source));
            // A history without a position has no older events.
            if before == Some(None) {
                continue;
            }
            lists.push(WantedList::new(source, keys, &filter, before.flatten(), limit));
        }
        Ok(Self { lists, limit, order })
    }
}

impl WantedList {
    fn new(
        source: &'static EventSource,
        keys: Vec<String>,
        filter: &EventFilter,
        before: Option<EventPosition>,
        limit: u32,
    ) -> Self {
        let filter = EventFilter { keys, resource: source.resource.to_owned(), ..filter.clone() };
        let request =
            ListEventsRequest { filter: Some(filter), page_size: limit, newest_first: true, before };
        Self { source, request }
    }

    async fn page(self, mesh: &MeshHandle) -> Result<SourcePage, RequestProblem> {
        let Self { source, request } = self;
        let before = request.before;
        Ok(SourcePage::new(source, before, source.page(mesh, request).await?))
    }
}

/// Resources that a request selects.
struct SelectedResources {
    /// Kinds; none: all.
    kinds: Vec<&'static str>,
    /// Keys with their kinds; none: every resource of these kinds.
    keys: Vec<(&'static str, String)>,
}

impl SelectedResources {
    fn read(query: &QueryParameters) -> Result<Self, RequestProblem> {
        let mut keys = Vec::new();
        for kind in KEYS {
            let named = query.texts(kind, MOST_ITEMS, LONGEST)?;
            keys.extend(named.into_iter().map(|key| (kind, key)));
        }
        let tenant = query.text("tenant", 0..=LONGEST_NAME)?.unwrap_or_default();
        let session = query.text("session", 1..=LONGEST_NAME)?;
        keys.extend(session.map(|name| ("session", format!("{tenant}{SEPARATOR}{name}"))));
        let kinds = query.parsed("resource", resources)?.unwrap_or_default();
        Ok(Self { kinds, keys })
    }

    /// Returns the keys of that kind, none for every resource; `None`: the kind is not selected.
    fn keys_of(&self, source: &EventSource) -> Option<Vec<String>> {
        let keys = self.keys.iter().filter(|(kind, _)| *kind == source.resource);
        let keys: Vec<_> = keys.map(|(_, key)| key.clone()).collect();
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&source.resource);
        (is_kind && (self.keys.is_empty() || !keys.is_empty())).then_some(keys)
    }
}

fn resources(text: &str) -> Result<Vec<&'static str>, String> {
    let items: Vec<_> = text.split(',').collect();
    if items.len() > SOURCES.len() {
        return Err(format!("has {} items, more than {}", items.len(), SOURCES.len()));
    }
    let known = |word: &str| EventSource::named(word).ok_or_else(|| format!("'{word}' has no events"));
    items.into_iter().map(|word| known(word).map(|source| source.resource)).collect()
}

fn time(text: &str) -> Result<prost_types::Timestamp, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "is no time such as 2026-01-31T12:00:00Z".to_owned())?;
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
    Ok(prost_types::Timestamp { seconds: time.timestamp(), nanos })
}

/// Returns the problem of a refused call that names no resource.
pub(super) fn refused(fault: Fault) -> RequestProblem {
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::http::query::tests::check;

    fn shown(WantedList { source, request }: WantedList) -> String {
        let filter = request.filter.unwrap_or_default();
        assert_eq!((&*filter.resource, request.newest_first), (source.resource, true));
        let mut line = source.resource.to_owned();
        for (name, texts) in [("keys", filter.keys), ("kinds", filter.kinds), ("reasons", filter.reasons)] {
            if !texts.is_empty() {
                line.push_str(&format!(" {name} {texts:?}"));
            }
        }
        filter.since.into_iter().for_each(|since| line.push_str(&format!(" since {}", since.seconds)));
        let before = request.before.into_iter();
        before.for_each(|before| line.push_str(&format!(" before {}.{}", before.revision, before.index)));
        line
    }

    fn read(query: &QueryParameters) -> Result<String, RequestProblem> {
        let WantedPage { lists, limit, order } = WantedPage::read(query)?;
        let lists: Vec<_> = lists.into_iter().map(shown).collect();
        Ok(format!("{}; {limit} {order:?}", lists.join(", ")))
    }

    #[tokio::test]
    async fn parameters_select_services_and_events() {
        let queries = [
            "",
            "component=x1,x2&kind=prepared,enabled",
            "session=s&tenant=blue&limit=7",
            "session=s&component=x1",
            "host=metal/host-1&reason=error",
            "transition=t&order=newest_first",
            "resource=host,options&since=1970-01-01T01:00:07%2B01:00",
            "resource=host&component=x1",
            "before=host:7:1,component:3:0",
            "before=host:7:1&component=x1",
            "since=yesterday",
            "limit=0",
            "component=",
            "component=x1,,x2",
            "resource=node",
            "order=random",
            "before=7",
        ];
        check(&queries, read, expect![[r#"
             -> "component, session, transition, session_template, options, host, host_document, host_secret; 1000 OldestFirst"
            component=x1,x2&kind=prepared,enabled -> "component keys [\"x1\", \"x2\"] kinds [\"prepared\", \"enabled\"]; 1000 OldestFirst"
            session=s&tenant=blue&limit=7 -> "session keys [\"blue\\ts\"]; 7 OldestFirst"
            session=s&component=x1 -> "component keys [\"x1\"], session keys [\"\\ts\"]; 1000 OldestFirst"
            host=metal/host-1&reason=error -> "host keys [\"metal/host-1\"] reasons [\"error\"]; 1000 OldestFirst"
            transition=t&order=newest_first -> "transition keys [\"t\"]; 1000 NewestFirst"
            resource=host,options&since=1970-01-01T01:00:07%2B01:00 -> "options since 7, host since 7; 1000 OldestFirst"
            resource=host&component=x1 -> "; 1000 OldestFirst"
            before=host:7:1,component:3:0 -> "component before 3.0, host before 7.1; 1000 OldestFirst"
            before=host:7:1&component=x1 -> "; 1000 OldestFirst"
            since=yesterday -> query parameter 'since': is no time such as 2026-01-31T12:00:00Z
            limit=0 -> query parameter 'limit': 0 is not between 1 and 1000
            component= -> query parameter 'component': has 0 characters, not between 1 and 16384
            component=x1,,x2 -> query parameter 'component': has an empty item
            resource=node -> query parameter 'resource': 'node' has no events
            order=random -> query parameter 'order': is neither oldest_first nor newest_first
            before=7 -> query parameter 'before': '7' is no position such as component:12:0
        "#]]).await;
    }
}
