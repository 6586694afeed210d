//! Durable events of hosts as `Event`s.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use proto::event::{
    Event, EventBody, EventFilter, ListEventsRequest, WatchEventsRequest, WatchEventsResponse,
};
use serde_json::json;
use tonic::{Request, Streaming};

use super::{
    super::{
        failure::ApiFailure,
        kinds::{self, ResourceKind},
        object::ApiObject,
        select::FieldSelector,
        store::{RecordCache, VersionBase},
    },
    hosts,
    json::{ShownMembers, shown_time},
    refusal::failed,
};
use crate::{http::call::call, mesh::EventClient};

/// Word of the registry for hosts in events.
const HOST: &str = "host";

/// Kind of the events of decisions about the life of a host.
const LIFE_CYCLE: &str = "life_cycle";

/// Detail of such an event with its severity.
const SEVERITY: &str = "type";

/// Words in kinds and reasons of events that are no good news.
const WARNINGS: [&str; 4] = ["error", "fail", "refus", "trouble"];

/// Reader of events of hosts.
#[derive(Clone)]
pub(crate) struct EventReader {
    client: EventClient,
    hosts: Arc<RecordCache>,
}

/// Events of one moment.
#[derive(Debug)]
pub(crate) struct EventList {
    pub events: Vec<ApiObject>,
    pub version: u64,
}

fn kind() -> &'static ResourceKind {
    kinds::find("", "v1", "events").expect("the table has events")
}

impl EventReader {
    pub(crate) fn new(client: EventClient, hosts: Arc<RecordCache>) -> Self {
        Self { client, hosts }
    }

    /// Returns the events of a namespace, or all, the oldest first.
    ///
    /// # Errors
    /// When the registry does not answer.
    pub(crate) async fn list(
        &self,
        namespace: Option<&str>,
        fields: &FieldSelector,
    ) -> Result<EventList, ApiFailure> {
        let base = self.base()?;
        let filter = Some(filter(namespace, fields));
        let request = ListEventsRequest { filter, ..ListEventsRequest::default() };
        let answer = self.client.clone().list_events(call(request)).await;
        let answer = answer.map_err(|status| failed(kind(), "", status).refused(kind(), ""))?.into_inner();
        let events = answer.events.into_iter().filter_map(|event| self.shown(event, base));
        let events = events.filter(|event| is_within(event, namespace) && fields.matches(event));
        Ok(EventList { events: events.collect(), version: base.version(answer.revision) })
    }

    /// Watches events after a version.
    ///
    /// # Errors
    /// When the registry does not answer, or the version is too old.
    pub(crate) async fn watch(
        &self,
        namespace: Option<&str>,
        fields: &FieldSelector,
        version: u64,
    ) -> Result<Streaming<WatchEventsResponse>, ApiFailure> {
        let base = self.base()?;
        let too_old = || ApiFailure::expired(format!("too old resource version: {version}"));
        let resume_revision = Some(base.revision(version).ok_or_else(too_old)?);
        let filter = Some(filter(namespace, fields));
        let request = Request::new(WatchEventsRequest { filter, resume_revision });
        match self.client.clone().watch_events(request).await {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) if status.code() == tonic::Code::OutOfRange => Err(too_old()),
            Err(status) => Err(failed(kind(), "", status).refused(kind(), "")),
        }
    }

    /// Returns the events of an answer that are selected.
    pub(crate) fn selected(
        &self,
        answer: WatchEventsResponse,
        namespace: Option<&str>,
        fields: &FieldSelector,
    ) -> Vec<ApiObject> {
        let Ok(base) = self.base() else { return Vec::new() };
        let events = answer.events.into_iter().filter_map(|event| self.shown(event, base));
        events.filter(|event| is_within(event, namespace) && fields.matches(event)).collect()
    }

    fn base(&self) -> Result<VersionBase, ApiFailure> {
        let unknown = || ApiFailure::unavailable("the component registry has not answered yet");
        self.hosts.base().ok_or_else(unknown)
    }

    /// Returns an event as an object; none if it is about something else.
    fn shown(&self, event: Event, base: VersionBase) -> Option<ApiObject> {
        let Event { key, resource, revision, time, actor, body, .. } = event;
        let (namespace, name) = key.split_once('/').filter(|_| resource == HOST)?;
        let said = SaidEvent::of(body.unwrap_or_default());
        let time = time.unwrap_or_default();
        let involved = ShownMembers::default()
            .always("apiVersion", hosts::kind().api_version())
            .always("kind", hosts::kind().kind)
            .always("namespace", namespace)
            .always("name", name)
            .maybe("uid", self.hosts.get(namespace, name).map(|host| host.uid.to_string()));
        let metadata = ShownMembers::default()
            .always("name", format!("{name}.{revision:x}.{}", said.reason.to_lowercase()))
            .always("namespace", namespace)
            .always("uid", format!("{namespace}/{name}/{revision}/{}", said.reason))
            .always("resourceVersion", base.version(revision).to_string())
            .always("creationTimestamp", shown_time(time));
        let shown = ShownMembers::default()
            .always("apiVersion", "v1")
            .always("kind", "Event")
            .always("metadata", metadata)
            .always("involvedObject", involved)
            .always("reason", said.reason)
            .always("message", said.message)
            .always("source", json!({ "component": actor }))
            .always("reportingComponent", actor)
            .always("reportingInstance", "")
            .always("type", said.severity)
            .always("count", 1)
            .always("firstTimestamp", shown_time(time))
            .always("lastTimestamp", shown_time(time))
            .always("eventTime", micro_time(time));
        Some(shown.into_map())
    }
}

/// Event in the words of the contract.
struct SaidEvent {
    reason: String,
    message: String,
    severity: String,
}

impl SaidEvent {
    /// Returns the words of an event. Decisions about the life of a host bring the reason and the severity of the contract
    /// along; what people and parts do otherwise has a word of ours.
    fn of(event: EventBody) -> Self {
        let EventBody { kind, reason, text, details, .. } = event;
        let (severity, details): (Vec<_>, Vec<_>) =
            details.into_iter().partition(|detail| detail.name == SEVERITY);
        let is_warning = WARNINGS.iter().any(|warning| kind.contains(warning) || reason.contains(warning));
        let usual = if is_warning { "Warning" } else { "Normal" };
        let severity = severity.into_iter().next().map_or_else(|| usual.to_owned(), |detail| detail.value);
        let (word, reason) = match kind == LIFE_CYCLE {
            true => (reason, String::new()),
            false => (camel(&kind), reason),
        };
        let details = details.iter().map(|detail| format!("{}={}", detail.name, detail.value));
        let said: Vec<_> =
            [text, reason].into_iter().filter(|text| !text.is_empty()).chain(details).collect();
        let message = match said.is_empty() {
            true => kind.replace('_', " "),
            false => said.join(", "),
        };
        Self { reason: word, message, severity }
    }
}

fn filter(namespace: Option<&str>, fields: &FieldSelector) -> EventFilter {
    EventFilter {
        keys: keys(namespace, fields),
        key_prefix: namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default(),
        resource: HOST.to_owned(),
        ..EventFilter::default()
    }
}

/// Returns the keys of the hosts that a selector asks for; none: any host.
fn keys(namespace: Option<&str>, fields: &FieldSelector) -> Vec<String> {
    let namespace = namespace.or_else(|| fields.wanted("involvedObject.namespace"));
    let name = fields.wanted("involvedObject.name").or_else(|| involved(fields.wanted("metadata.name")?));
    namespace.zip(name).map(|(namespace, name)| format!("{namespace}/{name}")).into_iter().collect()
}

/// Returns the name of the host that an event of this name is about: the name, a revision and a reason, with dots between.
fn involved(event: &str) -> Option<&str> {
    event.rsplitn(3, '.').nth(2)
}

fn is_within(event: &ApiObject, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| super::super::object::namespace(event) == namespace)
}

/// Returns a word such as `power_action_began` as `PowerActionBegan`.
fn camel(word: &str) -> String {
    let parts = word.split('_').map(|part| {
        let mut letters = part.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    parts.collect()
}

fn micro_time(time: prost_types::Timestamp) -> String {
    let nanos = u32::try_from(time.nanos).unwrap_or_default();
    let time = DateTime::<Utc>::from_timestamp(time.seconds, nanos).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use proto::event::EventDetail;

    use super::*;

    #[test]
    fn events_are_said_in_the_words_of_the_contract() {
        let detail = |name: &str, value: &str| EventDetail { name: name.into(), value: value.into() };
        let rows = [
            ("life_cycle", "Registered", "known", vec![detail("type", "Normal")], "Registered Normal: known"),
            (
                "life_cycle",
                "ImageAuthParseError",
                "",
                vec![detail("type", "Warning")],
                "ImageAuthParseError Warning: life cycle",
            ),
            (
                "state_changed",
                "",
                "available",
                vec![detail("from", "preparing")],
                "StateChanged Normal: available, from=preparing",
            ),
            ("delete_refused", "held", "", Vec::new(), "DeleteRefused Warning: held"),
        ];
        for (kind, reason, text, details, expected) in rows {
            let said = SaidEvent::of(EventBody {
                kind: kind.into(),
                reason: reason.into(),
                text: text.into(),
                details,
                ..EventBody::default()
            });
            assert_eq!(format!("{} {}: {}", said.reason, said.severity, said.message), expected);
        }
    }
}
