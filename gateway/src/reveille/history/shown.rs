//! Events as the answer shows them.

use std::collections::BTreeMap;

use chassis::kinds::history::SEPARATOR;
use proto::{
    event::Event,
    insight::{SessionOrigin, TimelineEntry},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reveille::instant;

/// Event with the session behind it.
#[derive(Serialize, JsonSchema)]
pub(in crate::reveille) struct ShownEntry {
    #[serde(flatten)]
    event: ShownEvent,
    /// Session whose desired state the resource had, or the session itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<ShownOrigin>,
}

/// Session behind an event, with its creation as far as that is on record.
#[derive(Serialize, JsonSchema)]
pub(in crate::reveille) struct ShownOrigin {
    /// Name of the session.
    name: String,
    /// Tenant of the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
    /// Operation of the session, such as `boot`.
    #[serde(skip_serializing_if = "String::is_empty")]
    operation: String,
    /// Name of its template.
    #[serde(skip_serializing_if = "String::is_empty")]
    template: String,
    /// Author of the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    actor: String,
    /// Id of the request that created the session, as in logs.
    #[serde(skip_serializing_if = "String::is_empty")]
    request_id: String,
    /// Time of its creation, to the millisecond.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

/// Change that a person asks about later.
#[derive(Serialize, JsonSchema)]
pub(in crate::reveille) struct ShownEvent {
    /// Time of the change, to the millisecond.
    time: String,
    /// Kind of the resource, such as `component`, `session`, `transition` or `host`.
    resource: String,
    /// Id of the component or transition, name of the session or template, namespace and name of the host.
    name: String,
    /// Tenant of the session or template.
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

impl From<TimelineEntry> for ShownEntry {
    fn from(entry: TimelineEntry) -> Self {
        let event = entry.event.unwrap_or_default();
        let body = event.body.as_ref().filter(|body| !body.session.is_empty());
        let session = body.map(|body| {
            let origin = entry.origin.unwrap_or_default();
            ShownOrigin::of(body.session.clone(), body.session_tenant.clone(), origin)
        });
        Self { session, event: event.into() }
    }
}

impl ShownOrigin {
    fn of(name: String, tenant: String, origin: SessionOrigin) -> Self {
        let SessionOrigin { operation, template, actor, request_id, created_at } = origin;
        Self {
            name,
            tenant,
            operation,
            template,
            actor,
            request_id,
            created_at: created_at.map(instant::text),
        }
    }
}

impl From<Event> for ShownEvent {
    fn from(event: Event) -> Self {
        let body = event.body.unwrap_or_default();
        let (tenant, name) = match event.key.rsplit_once(SEPARATOR) {
            Some((tenant, name)) => (tenant.to_owned(), name.to_owned()),
            None => (String::new(), event.key),
        };
        Self {
            time: instant::text(event.time.unwrap_or_default()),
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
    use super::*;

    #[test]
    fn session_is_shown_by_tenant_and_name() {
        let event = |key: &str| ShownEvent::from(Event { key: key.to_owned(), ..Event::default() });
        let shown = [event("blue\ts"), event("\ts"), event("x1"), event("metal/host-1")];
        let shown = shown.map(|event| (event.tenant, event.name));
        let expected = [("blue", "s"), ("", "s"), ("", "x1"), ("", "metal/host-1")];
        assert_eq!(shown, expected.map(|(tenant, name)| (tenant.to_owned(), name.to_owned())));
    }
}
