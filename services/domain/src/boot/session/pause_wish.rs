//! Wish that a session is paused. [`super::pause`] says when it may be, and what follows.

use std::sync::Arc;

use crate::{boot::component::PauseMark, core::time::Timestamp};

/// Wish of an operator that nothing begins for the components of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPause {
    /// Client that paused the session.
    pub by: Arc<str>,
    /// Time of the pause.
    pub since: Timestamp,
    /// Reason that the client gave; empty: none.
    pub reason: Arc<str>,
    /// Id of the request that paused the session, as in logs; empty: unknown.
    pub request_id: Arc<str>,
}

impl SessionPause {
    /// Returns the mark of the components.
    pub fn mark(&self) -> PauseMark {
        PauseMark::by(Arc::clone(&self.by), self.since)
    }

    /// Returns the words for people about the session of that name.
    pub fn text(&self, session: &str) -> String {
        self.mark().text(&format!("session {session}"))
    }
}
