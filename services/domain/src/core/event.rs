//! Events: the history of a resource, for people.

use std::{borrow::Cow, sync::Arc};

/// Author of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A node or an operator, through the gateway.
    Client,
    /// A service of the mesh, by its name.
    Service(&'static str),
}

impl Actor {
    /// The word in events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Service(name) => name,
        }
    }
}

/// Content of an event as it is shown and stored. A rule makes it of a typed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventContent {
    /// Word for the kind of event.
    pub kind: &'static str,
    /// Word for the reason; empty: the kind says it all.
    pub reason: Cow<'static, str>,
    /// Text for people; empty: none.
    pub text: Arc<str>,
    /// Further values by name, without those that are empty.
    pub details: Vec<(&'static str, Arc<str>)>,
    /// Session whose desired state the resource had, or the session itself; `None`: none.
    pub session: Option<EventSession>,
}

/// Session that an event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSession {
    /// Name of the session.
    pub name: Arc<str>,
    /// Tenant of the session; empty: none.
    pub tenant: Arc<str>,
}

impl EventContent {
    /// Content that is a kind alone.
    pub fn of(kind: &'static str) -> Self {
        Self { kind, reason: Cow::Borrowed(""), text: Arc::default(), details: Vec::new(), session: None }
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(self, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// Sets the text.
    #[must_use]
    pub fn saying(self, text: &Arc<str>) -> Self {
        Self { text: Arc::clone(text), ..self }
    }

    /// Names the session.
    #[must_use]
    pub fn within(self, session: Option<EventSession>) -> Self {
        Self { session, ..self }
    }

    /// Adds a value, unless it is empty.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Arc<str>>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.details.push((name, value));
        }
        self
    }
}
