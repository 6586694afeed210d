//! Kinds of resources with events, and the services that have them.

use std::{borrow::Cow, ops::Deref};

use proto::event::{ListEventsRequest, ListEventsResponse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    http::{
        call::{answer, call},
        problem::RequestProblem,
    },
    mesh::{EventClient, MeshClients, MeshHandle, POWER, REGISTRY, SESSIONS},
};

/// Kind of resources with events.
#[derive(Debug)]
pub(super) struct EventSource {
    /// Word for the kind.
    pub(super) resource: &'static str,
    /// Name of the service in errors.
    part: &'static str,
    client: fn(&MeshClients) -> &EventClient,
}

/// Every kind of resources with events. Of events at the same time those of an earlier kind count as newer.
pub(super) const SOURCES: [EventSource; 8] = [
    EventSource { resource: "component", part: REGISTRY, client: |mesh| &mesh.component_events },
    EventSource { resource: "session", part: SESSIONS, client: |mesh| &mesh.session_events },
    EventSource { resource: "transition", part: POWER, client: |mesh| &mesh.power_events },
    EventSource { resource: "session_template", part: SESSIONS, client: |mesh| &mesh.session_events },
    EventSource { resource: "options", part: REGISTRY, client: |mesh| &mesh.component_events },
    EventSource { resource: "host", part: REGISTRY, client: |mesh| &mesh.component_events },
    EventSource { resource: "host_document", part: REGISTRY, client: |mesh| &mesh.component_events },
    EventSource { resource: "host_secret", part: REGISTRY, client: |mesh| &mesh.component_events },
];

impl EventSource {
    /// Returns the source of that kind.
    pub(super) fn named(resource: &str) -> Option<&'static Self> {
        SOURCES.iter().find(|source| source.resource == resource)
    }

    /// Asks the service for a page of events.
    ///
    /// # Errors
    /// When the service does not answer, or refuses the request.
    pub(super) async fn page(
        &self,
        mesh: &MeshHandle,
        request: ListEventsRequest,
    ) -> Result<ListEventsResponse, RequestProblem> {
        let mut client = (self.client)(mesh.deref()).clone();
        answer(self.part, client.list_events(call(request))).await.map_err(super::refused)
    }
}

/// Kinds of resources, separated by commas.
pub(super) struct SeparatedResources;

impl JsonSchema for SeparatedResources {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SeparatedResources".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = words();
        let pattern = format!("^{one}(,{one}){{0,{}}}$", SOURCES.len() - 1);
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

/// Returns the words for all kinds as alternatives of a pattern.
pub(super) fn words() -> String {
    let words = SOURCES.each_ref().map(|source| source.resource);
    format!("({})", words.join("|"))
}
