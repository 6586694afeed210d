//! Events of a session.

use std::sync::Arc;

use crate::{
    boot::{
        session::{Progress, Session},
        template::Operation,
    },
    core::{event::EventContent, text::text},
};

/// Change of a session that an operator asks about later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// The session was created.
    Created {
        /// Operation of the session.
        operation: Operation,
        /// Name of its template.
        template: Arc<str>,
        /// Selection among the nodes of the template; empty: all.
        limit: Arc<str>,
        /// Whether the desired states are only staged.
        stage: bool,
    },
    /// The members are known and assigned.
    Running {
        /// Number of members.
        members: usize,
    },
    /// The session is over.
    Complete {
        /// Error of the session; empty: none.
        error: Arc<str>,
    },
    /// The session waits, or cannot do its work; it is not over.
    TroubleBegan {
        /// Awaited dependency or error.
        text: Arc<str>,
    },
    /// The session waits no more.
    TroubleEnded,
    /// The session was changed in another way by a patch.
    Written,
    /// The session was deleted.
    Deleted,
}

/// Returns the events of a change.
pub fn events(before: Option<&Session>, after: Option<&Session>) -> Vec<SessionEvent> {
    match (before, after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![created(after)],
        // A name that is taken again at once, in one transaction, is another session.
        (Some(before), Some(after)) if before.id != after.id => vec![SessionEvent::Deleted, created(after)],
        (Some(before), Some(after)) => changed(before, after),
        (Some(_), None) => vec![SessionEvent::Deleted],
    }
}

fn created(session: &Session) -> SessionEvent {
    SessionEvent::Created {
        operation: session.operation,
        template: text(&session.template_name),
        limit: text(&session.limit),
        stage: session.stage,
    }
}

fn changed(before: &Session, after: &Session) -> Vec<SessionEvent> {
    let moved = (before.progress != after.progress).then(|| match after.progress {
        Progress::Pending => SessionEvent::Written,
        Progress::Running => SessionEvent::Running { members: after.components.len() },
        Progress::Complete => {
            SessionEvent::Complete { error: text(after.error.as_deref().unwrap_or_default()) }
        }
    });
    let is_over = after.progress == Progress::Complete;
    let trouble = trouble(before, after).filter(|_| !is_over);
    let is_written = moved.is_none()
        && trouble.is_none()
        && (before.components != after.components
            || before.start_time != after.start_time
            || before.end_time != after.end_time
            || before.error != after.error);
    moved.into_iter().chain(trouble).chain(is_written.then_some(SessionEvent::Written)).collect()
}

/// The text of a wait names the latest error of a dependency, which may change with every try: only the beginning and the
/// end are events.
fn trouble(before: &Session, after: &Session) -> Option<SessionEvent> {
    if before.error != after.error
        && let Some(error) = after.error.as_deref().filter(|error| !error.is_empty())
    {
        return Some(SessionEvent::TroubleBegan { text: text(error) });
    }
    match (before.waiting_for.is_empty(), after.waiting_for.is_empty()) {
        (true, false) => Some(SessionEvent::TroubleBegan { text: text(&after.waiting_for) }),
        (false, true) => Some(SessionEvent::TroubleEnded),
        (true, true) | (false, false) => None,
    }
}

impl SessionEvent {
    /// Returns the event as it is shown.
    pub fn content(self) -> EventContent {
        let of = EventContent::of;
        match self {
            Self::Created { operation, template, limit, stage } => of("created")
                .because(operation.word())
                .with("limit", limit)
                .with("stage", if stage { "true" } else { "" })
                .with("template", template),
            Self::Running { members } => of("running").with("members", members.to_string()),
            Self::Complete { error } => {
                of("complete").because(if error.is_empty() { "" } else { "failed" }).saying(&error)
            }
            Self::TroubleBegan { text } => of("trouble_began").saying(&text),
            Self::TroubleEnded => of("trouble_ended"),
            Self::Written => of("written"),
            Self::Deleted => of("deleted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::session::{
        complete, run,
        tests::{NOW, session},
        with_error,
    };

    #[test]
    fn a_session_has_a_story() {
        let pending = session("s");
        let waiting = Session { waiting_for: "PCS".to_owned(), ..pending.clone() };
        let still = Session { waiting_for: "PCS: refused".to_owned(), ..pending.clone() };
        let running = run(still.clone(), Vec::new(), 7);
        let disturbed = with_error(running.clone(), "lost");
        let renamed = Session { start_time: "noon".to_owned(), ..running.clone() };
        let lost = || text("lost");
        for (name, before, after, expected) in [
            ("creation", None, Some(&pending), vec![created(&pending)]),
            ("wait", Some(&pending), Some(&waiting), vec![SessionEvent::TroubleBegan { text: text("PCS") }]),
            ("another try", Some(&waiting), Some(&still), vec![]),
            (
                "run",
                Some(&still),
                Some(&running),
                vec![SessionEvent::Running { members: 0 }, SessionEvent::TroubleEnded],
            ),
            ("error", Some(&running), Some(&disturbed), vec![SessionEvent::TroubleBegan { text: lost() }]),
            ("patch", Some(&running), Some(&renamed), vec![SessionEvent::Written]),
            (
                "end",
                Some(&disturbed),
                Some(&complete(disturbed.clone(), NOW, None)),
                vec![SessionEvent::Complete { error: lost() }],
            ),
            ("deletion", Some(&running), None, vec![SessionEvent::Deleted]),
            ("saved status", Some(&running), Some(&running), vec![]),
        ] {
            assert_eq!(events(before, after), expected, "{name}");
        }
        let later = Session { id: "later".to_owned(), ..pending.clone() };
        assert_eq!(events(Some(&running), Some(&later)), [SessionEvent::Deleted, created(&later)]);
    }
}
