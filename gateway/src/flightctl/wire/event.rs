//! Events.

use proto::event::{Event as Record, EventBody};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    meta::{ApiVersion, ListMeta, ObjectMeta, api_version},
    moment::Moment,
    words::{EventKind, EventListKind, EventTypes, Word},
};

/// Detail of an event with its weight.
const TYPE: &str = "type";

/// Detail of an event with the parts of the resource that were changed, separated by commas.
const UPDATED_FIELDS: &str = "updated_fields";

/// Actor of the changes that clients make.
const CLIENT: &str = "client";

/// Change of a resource that a person would ask about later.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<EventKind>,
    /// Facts about the event.
    pub metadata: ObjectMeta,
    /// Resource that the event is about.
    pub involved_object: ObjectReference,
    /// Reason, for programs.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Weight.
    #[serde(rename = "type")]
    pub weight: Word<EventTypes>,
    /// Part that noted the event.
    pub source: EventSource,
    /// Author of the change: `user:` or `service:`, and a name.
    pub actor: String,
    /// Further facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<UpdatedDetails>,
}

/// Resource that an event is about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ObjectReference {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Part of the service.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EventSource {
    /// Name.
    pub component: String,
}

/// Facts about the change of a resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdatedDetails {
    /// Form of these details.
    pub detail_type: String,
    /// Parts of the resource that were changed: `spec`, `labels`, `owner`.
    pub updated_fields: Vec<String>,
}

/// Page of events, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceEventList")]
pub(crate) struct EventList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<EventListKind>,
    /// Facts about the page.
    pub metadata: ListMeta,
    /// Events.
    pub items: Vec<Event>,
}

impl Event {
    /// Returns the document of a stored event about a resource of that kind, which `component` has noted.
    pub(crate) fn shown(event: Record, kind: &str, component: &str) -> Self {
        let Record { key, revision, time, actor, body, index, .. } = event;
        let EventBody { kind: reason, text, details, .. } = body.unwrap_or_default();
        let detail = |name: &str| {
            let found = details.iter().find(|detail| detail.name == name);
            found.map(|detail| detail.value.clone()).filter(|value| !value.is_empty())
        };
        let message = if text.is_empty() { format!("{kind} {key}: {reason}") } else { text };
        let details = detail(UPDATED_FIELDS).map(|fields| UpdatedDetails {
            detail_type: "ResourceUpdated".to_owned(),
            updated_fields: fields.split(',').map(str::to_owned).collect(),
        });
        let weight = Word::stored(detail(TYPE).unwrap_or_else(|| "Normal".to_owned()));
        let metadata = ObjectMeta {
            name: Some(format!("{}.{revision}.{index}", kind.to_lowercase())),
            creation_timestamp: time.map(Moment),
            ..ObjectMeta::default()
        };
        Self {
            api_version: api_version(),
            kind: Word::stored("Event"),
            metadata,
            involved_object: ObjectReference { kind: kind.to_owned(), name: key },
            reason,
            message,
            weight,
            source: EventSource { component: component.to_owned() },
            actor: if actor == CLIENT { format!("user:{CLIENT}") } else { format!("service:{actor}") },
            details,
        }
    }
}

impl EventList {
    pub(crate) fn new(metadata: ListMeta, items: Vec<Event>) -> Self {
        Self { api_version: api_version(), kind: Word::stored("EventList"), metadata, items }
    }
}
