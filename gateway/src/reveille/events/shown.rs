//! Events as the answer shows them.

use std::collections::BTreeMap;

use proto::event::Event;
use schemars::JsonSchema;
use serde::Serialize;

use super::SEPARATOR;
use crate::reveille::instant;

/// Change that a person asks about later.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownEvent {
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
