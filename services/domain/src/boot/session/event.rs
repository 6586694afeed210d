//! Events of a session.

use std::sync::Arc;

use crate::{
    boot::{
        session::{Progress, Session, SessionResult},
        template::Operation,
    },
    core::{
        event::{EventContent, EventSession},
        rollout::BatchProgress,
        text::text,
        trouble::recorded::{RecordedTrouble, TroubleChange},
    },
};

/// Words for the kinds of events of a session.
pub const KINDS: [&str; 13] = [
    "batch_opened",
    "cancelled",
    "complete",
    "created",
    "deleted",
    "paused",
    "resumed",
    "rollout_finished",
    "rollout_held",
    "running",
    "trouble_began",
    "trouble_ended",
    "written",
];

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
        /// Name of the session that it retries; empty: none.
        retry_of: Arc<str>,
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
        /// Result of the session; `None`: a version that knows no results completed it.
        result: Option<SessionResult>,
    },
    /// An operator cancelled the session. Its components are released, and then it is complete.
    Cancelled {
        /// Reason that the operator gave; empty: none.
        reason: Arc<str>,
    },
    /// A client paused the session: nothing begins for its components.
    Paused {
        /// Client that paused it.
        by: Arc<str>,
        /// Reason that the client gave; empty: none.
        reason: Arc<str>,
    },
    /// A client resumed the session.
    Resumed,
    /// A batch of the rollout was opened.
    BatchOpened {
        /// Number of the batch, from 1.
        batch: usize,
        /// Number of batches.
        of: usize,
        /// Number of members of the batch.
        members: usize,
    },
    /// A batch missed its threshold, and the next one is not opened.
    RolloutHeld {
        /// Number of the batch, from 1.
        batch: usize,
        /// Number of batches.
        of: usize,
        /// Whether the rollout is stopped, so that nobody can let it go on.
        is_stopped: bool,
    },
    /// All batches were opened, and the last one met its threshold or the session is over.
    RolloutFinished {
        /// Number of batches.
        of: usize,
    },
    /// A wait or an error ended, which began before; or the session is over.
    TroubleEnded(RecordedTrouble),
    /// The session waits, or cannot do its work; it is not over.
    TroubleBegan(RecordedTrouble),
    /// The session was changed in another way by a patch.
    Written,
    /// The session was deleted.
    Deleted,
}

/// Returns the session that the events of a change name: itself.
pub fn session(before: Option<&Session>, after: Option<&Session>) -> Option<EventSession> {
    let session = after.or(before)?;
    Some(EventSession { name: text(&session.name), tenant: text(session.tenant.as_str()) })
}

/// Returns the events of a change.
pub fn events(before: Option<&Session>, after: Option<&Session>) -> Vec<SessionEvent> {
    match (before, after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![created(after)],
        // A name that is taken again at once, in one transaction, is another session.
        (Some(before), Some(after)) if before.id != after.id => {
            deleted(before).chain([created(after)]).collect()
        }
        (Some(before), Some(after)) => changed(before, after),
        (Some(before), None) => deleted(before).collect(),
    }
}

/// No trouble outlives its session.
fn deleted(session: &Session) -> impl Iterator<Item = SessionEvent> {
    let ended = session.recorded_trouble().map(SessionEvent::TroubleEnded);
    ended.into_iter().chain([SessionEvent::Deleted])
}

fn created(session: &Session) -> SessionEvent {
    SessionEvent::Created {
        operation: session.operation,
        template: text(&session.template_name),
        limit: text(&session.limit),
        stage: session.stage,
        retry_of: text(session.retry_of.as_ref().map(|one| one.name.as_str()).unwrap_or_default()),
    }
}

fn changed(before: &Session, after: &Session) -> Vec<SessionEvent> {
    let moved = (before.progress != after.progress).then(|| match after.progress {
        Progress::Pending => SessionEvent::Written,
        Progress::Running => SessionEvent::Running { members: after.components.len() },
        Progress::Complete => {
            let error = text(after.error.as_deref().unwrap_or_default());
            SessionEvent::Complete { error, result: after.result.clone() }
        }
    });
    let trouble: Vec<_> = trouble(before, after).collect();
    let cancellation = after.cancellation.as_ref().filter(|_| before.cancellation.is_none());
    let cancelled = cancellation.map(|one| SessionEvent::Cancelled { reason: Arc::clone(&one.reason) });
    let steered = paused(before, after);
    let is_written = moved.is_none()
        && cancelled.is_none()
        && steered.is_none()
        && trouble.is_empty()
        && (before.components != after.components
            || before.start_time != after.start_time
            || before.end_time != after.end_time
            || before.error != after.error);
    cancelled
        .into_iter()
        .chain(rolled(before, after))
        .chain(steered)
        .chain(moved)
        .chain(trouble)
        .chain(is_written.then_some(SessionEvent::Written))
        .collect()
}

/// Returns the begin or end of a pause. A session that ends is not resumed.
fn paused(before: &Session, after: &Session) -> Option<SessionEvent> {
    match (&before.pause, &after.pause) {
        (None, Some(pause)) => {
            Some(SessionEvent::Paused { by: Arc::clone(&pause.by), reason: Arc::clone(&pause.reason) })
        }
        (Some(_), None) if after.progress != Progress::Complete => Some(SessionEvent::Resumed),
        (Some(_), _) | (None, None) => None,
    }
}

/// Returns the events of a rollout: the ends of its batches.
fn rolled(before: &Session, after: &Session) -> Vec<SessionEvent> {
    let (Some(old), Some(new)) = (&before.rollout, &after.rollout) else { return Vec::new() };
    let of = new.batches().len();
    let mut events = Vec::new();
    for (number, (members, progress)) in new.batches().enumerate() {
        let was = old.progress().get(number).copied().unwrap_or_default();
        let batch = number + 1;
        if was == BatchProgress::Closed && progress != BatchProgress::Closed {
            events.push(SessionEvent::BatchOpened { batch, of, members: members.len() });
        }
        if matches!(progress, BatchProgress::Missed { .. }) && was != progress {
            events.push(SessionEvent::RolloutHeld { batch, of, is_stopped: new.is_stopped() });
        }
    }
    if is_rolled_out(after) && !is_rolled_out(before) {
        events.push(SessionEvent::RolloutFinished { of });
    }
    events
}

fn is_rolled_out(session: &Session) -> bool {
    let Some(rollout) = &session.rollout else { return false };
    let is_met = matches!(rollout.progress().last(), Some(BatchProgress::Met { .. }));
    !rollout.holds_any() && (is_met || session.progress == Progress::Complete)
}

fn trouble(before: &Session, after: &Session) -> impl Iterator<Item = SessionEvent> {
    let change = TroubleChange::between(before.recorded_trouble(), after.recorded_trouble());
    let ended = change.ended.map(SessionEvent::TroubleEnded);
    ended.into_iter().chain(change.began.map(SessionEvent::TroubleBegan))
}

impl SessionEvent {
    /// Returns the event as it is shown.
    pub fn content(self) -> EventContent {
        let of = EventContent::of;
        match self {
            Self::Created { operation, template, limit, stage, retry_of } => of("created")
                .because(operation.word())
                .with("limit", limit)
                .with("retry_of", retry_of)
                .with("stage", if stage { "true" } else { "" })
                .with("template", template),
            Self::Running { members } => of("running").with("members", members.to_string()),
            Self::Complete { error, result } => {
                let of_error = if error.is_empty() { "" } else { "failed" };
                let reason = result.as_ref().map_or(of_error, SessionResult::word);
                of("complete").because(reason).saying(&error).with("superseded_by", superseded_by(result))
            }
            Self::Cancelled { reason } => of("cancelled").saying(&reason),
            Self::Paused { by, reason } => of("paused").saying(&reason).with("by", by),
            Self::Resumed => of("resumed"),
            Self::BatchOpened { batch, of: batches, members } => of("batch_opened")
                .with("batch", batch.to_string())
                .with("batches", batches.to_string())
                .with("members", members.to_string()),
            Self::RolloutHeld { batch, of: batches, is_stopped } => of("rollout_held")
                .because(if is_stopped { "stopped" } else { "paused" })
                .with("batch", batch.to_string())
                .with("batches", batches.to_string()),
            Self::RolloutFinished { of: batches } => {
                of("rollout_finished").with("batches", batches.to_string())
            }
            Self::TroubleBegan(trouble) => trouble.began(),
            Self::TroubleEnded(trouble) => trouble.ended(),
            Self::Written => of("written"),
            Self::Deleted => of("deleted"),
        }
    }
}

fn superseded_by(result: Option<SessionResult>) -> Arc<str> {
    match result {
        Some(SessionResult::Superseded { by }) => by,
        Some(
            SessionResult::Succeeded
            | SessionResult::Partial
            | SessionResult::Failed
            | SessionResult::Cancelled
            | SessionResult::NothingToDo(_),
        )
        | None => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        boot::session::{
            Cancellation, RetriedSession, SessionEnd, SessionPause, complete, run,
            tests::{NOW, session},
            with_error,
        },
        core::time::Timestamp,
    };

    fn shown(before: Option<&Session>, after: Option<&Session>) -> String {
        let lines = events(before, after).into_iter().map(|event| {
            let EventContent { kind, reason, text, details, session: _ } = event.content();
            assert!(KINDS.contains(&kind), "{kind}");
            let details: String = details.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("    {kind} '{reason}' '{text}'{details}\n")
        });
        lines.collect()
    }

    #[test]
    fn a_session_has_a_story() {
        let pending = session("s");
        let begun = |one: Session, before: &Session, second| one.with_begin(before, Timestamp(second));
        let waiting = begun(Session { waiting_for: "PCS".to_owned(), ..pending.clone() }, &pending, 1000);
        let still =
            begun(Session { waiting_for: "PCS: refused".to_owned(), ..waiting.clone() }, &waiting, 2000);
        let running = begun(run(still.clone(), Vec::new(), 7), &still, 3000);
        let disturbed = begun(with_error(running.clone(), "lost"), &running, 4000);
        let waits = Session { waiting_for: "the registry".to_owned(), ..disturbed.clone() };
        let renamed = Session { start_time: "noon".to_owned(), ..running.clone() };
        let end = |result| SessionEnd { error: None, result };
        let over = begun(complete(disturbed.clone(), NOW, end(SessionResult::Failed)), &disturbed, 5000);
        let unjudged = Session { result: None, ..over.clone() };
        let superseded = end(SessionResult::Superseded { by: "later".into() });
        let superseded = complete(running.clone(), NOW, superseded);
        let cancellation = Some(Cancellation { reason: "wrong image".into() });
        let cancelling = Session { cancellation, ..running.clone() };
        let cancelled = complete(cancelling.clone(), NOW, end(SessionResult::Cancelled));
        let pause = SessionPause {
            by: "alice".into(),
            since: NOW,
            reason: "power cap".into(),
            request_id: "r".into(),
        };
        let paused = Session { pause: Some(pause), ..running.clone() };
        let over_paused = complete(paused.clone(), NOW, end(SessionResult::Succeeded));
        let retried = RetriedSession { name: "earlier".to_owned(), id: "earlier-id".to_owned() };
        let retry = Session { retry_of: Some(retried), ..pending.clone() };
        let patched = Session { error: None, ..over.clone() };
        let other = Session { id: "later".to_owned(), ..pending.clone() };
        let mut lines = String::new();
        for (name, before, after) in [
            ("creation", None, Some(&pending)),
            ("wait", Some(&pending), Some(&waiting)),
            ("another try", Some(&waiting), Some(&still)),
            ("run", Some(&still), Some(&running)),
            ("error", Some(&running), Some(&disturbed)),
            ("wait after the error", Some(&disturbed), Some(&waits)),
            ("patch", Some(&running), Some(&renamed)),
            ("end", Some(&disturbed), Some(&over)),
            ("end by an earlier version", Some(&disturbed), Some(&unjudged)),
            ("end by another session", Some(&running), Some(&superseded)),
            ("cancellation", Some(&running), Some(&cancelling)),
            ("end of a cancellation", Some(&cancelling), Some(&cancelled)),
            ("cancellation before the setup", Some(&pending), Some(&cancelled)),
            ("pause", Some(&running), Some(&paused)),
            ("resumption", Some(&paused), Some(&running)),
            ("end while paused", Some(&paused), Some(&over_paused)),
            ("retry", None, Some(&retry)),
            ("error removed after the end", Some(&over), Some(&patched)),
            ("deletion", Some(&running), None),
            ("deletion while it waits", Some(&waiting), None),
            ("saved status", Some(&running), Some(&running)),
            ("name taken again", Some(&running), Some(&other)),
        ] {
            lines.push_str(&format!("{name}\n{}", shown(before, after)));
        }
        expect![[r#"
            creation
                created 'boot' '' template=t
            wait
                trouble_began 'waiting' 'PCS' since=1970-01-01T00:00:01Z
            another try
            run
                running '' '' members=0
                trouble_ended 'waiting' 'PCS' since=1970-01-01T00:00:01Z
            error
                trouble_began 'failed' 'lost' since=1970-01-01T00:00:04Z
            wait after the error
            patch
                written '' ''
            end
                complete 'failed' 'lost'
                trouble_ended 'failed' 'lost' since=1970-01-01T00:00:04Z
            end by an earlier version
                complete 'failed' 'lost'
                trouble_ended 'failed' 'lost' since=1970-01-01T00:00:04Z
            end by another session
                complete 'superseded' '' superseded_by=later
            cancellation
                cancelled '' 'wrong image'
            end of a cancellation
                complete 'cancelled' ''
            cancellation before the setup
                cancelled '' 'wrong image'
                complete 'cancelled' ''
            pause
                paused '' 'power cap' by=alice
            resumption
                resumed '' ''
            end while paused
                complete 'succeeded' ''
            retry
                created 'boot' '' retry_of=earlier template=t
            error removed after the end
                written '' ''
            deletion
                deleted '' ''
            deletion while it waits
                trouble_ended 'waiting' 'PCS' since=1970-01-01T00:00:01Z
                deleted '' ''
            saved status
            name taken again
                deleted '' ''
                created 'boot' '' template=t
        "#]]
        .assert_eq(&lines);
    }
}
