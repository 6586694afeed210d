//! Mark of a component whose session is paused.
//!
//! The session manager writes and removes the mark for all components that a session owns. While the mark stands, no power
//! action begins, and nothing is prepared or configured; an action that has begun is followed to its end.

use std::sync::Arc;

use crate::core::{
    bos_time,
    time::Timestamp,
    trouble::{Trouble, TroubleKind},
};

/// Mark of a component whose session is paused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PauseMark {
    /// Client that paused the session; never empty.
    pub by: Arc<str>,
    /// Time at which the session was paused.
    pub since: Timestamp,
}

impl PauseMark {
    /// Returns the trouble that a component of `session` shows while the pause keeps an action from beginning.
    pub fn trouble(&self, session: &str) -> Trouble {
        Trouble::own(TroubleKind::Paused, &self.text(session))
    }

    /// Returns the words for people.
    pub fn text(&self, session: &str) -> String {
        format!("session {session} is paused by {} since {}Z", self.by, bos_time::text(self.since))
    }
}
