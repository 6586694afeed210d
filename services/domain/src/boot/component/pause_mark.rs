//! Mark of a component for which nothing begins: its session is paused, or has not opened its batch.
//!
//! The session manager writes and removes the mark for all components that a session owns. While the mark stands, no power
//! action begins, and nothing is prepared or configured; an action that has begun is followed to its end.

use std::sync::Arc;

use crate::core::{
    bos_time,
    time::Timestamp,
    trouble::{Trouble, TroubleKind},
};

/// Mark of a component for which nothing begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PauseMark {
    /// Author of the pause.
    pub holder: PauseHolder,
    /// Time at which the session was paused, or created.
    pub since: Timestamp,
}

/// Author of the pause of a component.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PauseHolder {
    /// A client paused the session; the name is never empty.
    Client(Arc<str>),
    /// The session rolls out, and has not opened the batch of the component.
    Rollout,
}

impl PauseMark {
    /// Returns the mark of a session that a client paused.
    pub fn by(client: impl Into<Arc<str>>, since: Timestamp) -> Self {
        Self { holder: PauseHolder::Client(client.into()), since }
    }

    /// Returns the mark of a component whose batch is not open, where the session was created at `since`.
    pub fn of_rollout(since: Timestamp) -> Self {
        Self { holder: PauseHolder::Rollout, since }
    }

    /// Returns the trouble that a component of `session` shows while the mark keeps an action from beginning.
    pub fn trouble(&self, session: &str) -> Trouble {
        Trouble::own(TroubleKind::Paused, &self.text(&format!("session {session}")))
    }

    /// Returns the words for people, where `session` names the session.
    pub fn text(&self, session: &str) -> String {
        match &self.holder {
            PauseHolder::Client(by) => {
                format!("{session} is paused by {by} since {}Z", bos_time::text(self.since))
            }
            PauseHolder::Rollout => format!("{session} has not opened the batch of this node yet"),
        }
    }
}
