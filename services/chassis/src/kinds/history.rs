//! Kinds of resources with durable events: the service that keeps them, and the words for their events.

use domain::{
    boot::{bos::option_event, component, power, session, template},
    device::{enrolment, event::DeviceEventReason, fleet},
};

/// Service that keeps events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOwner {
    /// The component registry.
    Registry,
    /// The session manager.
    Sessions,
    /// The power controller.
    Power,
    /// The fleet manager.
    Fleets,
}

/// Kind of resources with events.
#[derive(Debug, PartialEq, Eq)]
pub struct HistoryKind {
    /// Word for the kind of resources.
    pub resource: &'static str,
    /// Service that keeps the events.
    pub owner: HistoryOwner,
    /// Words for the kinds of events.
    pub words: &'static [&'static str],
}

/// Every kind of resources with events. Of events at the same time those of an earlier kind count as newer.
pub const HISTORY_KINDS: [HistoryKind; 11] = [
    HistoryKind { resource: COMPONENT, owner: HistoryOwner::Registry, words: &component::event::KINDS },
    HistoryKind { resource: SESSION, owner: HistoryOwner::Sessions, words: &session::event::KINDS },
    HistoryKind { resource: TRANSITION, owner: HistoryOwner::Power, words: &power::event::KINDS },
    HistoryKind {
        resource: "session_template",
        owner: HistoryOwner::Sessions,
        words: &template::event::KINDS,
    },
    HistoryKind { resource: "options", owner: HistoryOwner::Registry, words: &option_event::KINDS },
    HistoryKind { resource: HOST, owner: HistoryOwner::Registry, words: &HOST_WORDS },
    HistoryKind { resource: "host_document", owner: HistoryOwner::Registry, words: &OBJECT_WORDS },
    HistoryKind { resource: "host_secret", owner: HistoryOwner::Registry, words: &OBJECT_WORDS },
    HistoryKind { resource: "device", owner: HistoryOwner::Registry, words: &DeviceEventReason::WORDS },
    HistoryKind { resource: "fleet", owner: HistoryOwner::Fleets, words: &fleet::event::KINDS },
    HistoryKind {
        resource: "enrolment_request",
        owner: HistoryOwner::Fleets,
        words: &enrolment::event::KINDS,
    },
];

/// Word for components.
pub const COMPONENT: &str = "component";

/// Word for sessions.
pub const SESSION: &str = "session";

/// Word for power transitions.
pub const TRANSITION: &str = "transition";

/// Word for hosts.
pub const HOST: &str = "host";

/// Words for the events of any record of the kinds of hosts.
pub const OBJECT_WORDS: [&str; 5] = ["created", "deleted", "deletion_requested", "requested", "spec_changed"];

/// Words for the events of hosts.
pub const HOST_WORDS: [&str; 7] =
    ["created", "deleted", "deletion_requested", "life_cycle", "requested", "spec_changed", "state_changed"];

/// Most digits of a revision in the text of a position: more might not fit into 63 bits.
pub const REVISION_DIGITS: usize = 18;

/// Most digits of an index in the text of a position.
pub const INDEX_DIGITS: usize = 9;

/// Separator of tenant and name in the key of a session or a template. It sorts before every character of a tenant, so
/// that keys are in the order of tenant and name. Names never contain it, so that the last separator in a key ends the
/// tenant.
pub const SEPARATOR: char = '\t';

impl HistoryKind {
    /// Returns the kind of that word.
    pub fn named(resource: &str) -> Option<&'static Self> {
        HISTORY_KINDS.iter().find(|kind| kind.resource == resource)
    }
}

/// Returns the key of a session or a template.
pub fn session_key(tenant: &str, name: &str) -> String {
    format!("{tenant}{SEPARATOR}{name}")
}
