//! Sessions: one operation on a set of nodes (BOS reference 2.9, 3.6).

pub mod completion;
mod create;
pub mod estimate;
pub mod event;
mod expiry;
mod filter;
pub mod guard;
pub mod inventory;
pub mod lacking;
pub mod limit;
pub mod membership;
pub mod pause;
mod pause_wish;
pub mod plan;
pub mod result;
pub mod rollout;
pub mod staging;
pub mod status;
pub mod steer;

pub use create::{NewSession, RetriedSession, create};
pub use expiry::{expires_at, is_expired, next_expiry, surplus};
pub use filter::SessionFilter;
pub use pause_wish::SessionPause;
pub use plan::PlanHash;
pub use result::{IdleReason, SessionResult};
pub use rollout::{NodeRolloutPolicy, SessionRollout};
pub use steer::Cancellation;

use std::sync::Arc;

use crate::{
    boot::template::Operation,
    core::{
        bos_time,
        id::{ComponentId, Tenant},
        invalid::{Invalid, check_length},
        limits::{LONGEST_ERROR, LONGEST_LIMIT, LONGEST_TIME},
        text::text,
        time::Timestamp,
        trouble::{
            Trouble, TroubleKind,
            recorded::{RecordedTrouble, TroubleBegin},
        },
    },
};

/// Progress of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The members are not known yet.
    #[default]
    Pending,
    /// The members are under way.
    Running,
    /// The session is over, successfully or not.
    Complete,
}

impl Progress {
    /// Returns the word of the REST contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
        }
    }
}

/// Operation on a set of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Name, unique within the tenant as long as the session is kept.
    pub name: String,
    /// Tenant that owns the session.
    pub tenant: Tenant,
    /// Operation of the session.
    pub operation: Operation,
    /// Name of the template of the same tenant; it is read when the session is set up, not before.
    pub template_name: String,
    /// Selection from the template's nodes; empty: all.
    pub limit: String,
    /// Whether the wish is only staged in the members until the session is applied to them.
    pub stage: bool,
    /// Whether nodes that the inventory disables are members too.
    pub include_disabled: bool,
    /// Members; empty until the session runs, then sorted, unless they were patched.
    pub components: Vec<ComponentId>,
    /// Progress of the session.
    pub progress: Progress,
    /// Time of creation in the form for clients; may be patched to any text.
    pub start_time: String,
    /// Time of completion in the form for clients; may be patched to any text.
    pub end_time: Option<String>,
    /// Error of the session itself.
    pub error: Option<String>,
    /// Unique id, as names may be used again.
    pub id: String,
    /// Revision of the last change; the store sets it.
    pub revision: u64,
    /// Revision of the registry that includes the assignment of the members; 0: not assigned.
    pub assigned_revision: u64,
    /// Reason why a pending session is still pending; empty: it is next.
    pub waiting_for: String,
    /// Begin of the trouble that the session shows; `None`: there is none, or an earlier version recorded it.
    pub trouble_begin: Option<Arc<TroubleBegin>>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Result of a complete session; `None`: it is not complete, or an earlier version completed it.
    pub result: Option<SessionResult>,
    /// Wish of an operator that the session ends now, if there is one.
    pub cancellation: Option<Cancellation>,
    /// Wish of an operator that nothing begins for the components, if there is one.
    pub pause: Option<SessionPause>,
    /// Session whose failed components this one retries, if there is one.
    pub retry_of: Option<RetriedSession>,
    /// Hash of the plan that has to hold when the session is set up; `None`: any members and target states are right.
    pub plan: Option<PlanHash>,
    /// Number of nodes that the client confirmed; `None`: none.
    pub confirmed_nodes: Option<u32>,
    /// Rollout in batches; `None`: all members begin at once.
    pub rollout: Option<SessionRollout>,
    /// Time since which the session runs without ever having been paused; `None`: it does not, or an earlier version began it.
    pub undisturbed_since: Option<Timestamp>,
    /// Context of the trace of the request that created the session, which its work continues; empty: none.
    pub trace: Arc<str>,
}

impl Session {
    /// Returns when the session started: its start time, or its time of creation if that cannot be read.
    pub fn started_at(&self) -> Timestamp {
        bos_time::read(&self.start_time).unwrap_or(self.created_at)
    }

    /// Returns whether the session is to end because of a cancellation, and has not ended yet.
    pub fn is_being_cancelled(&self) -> bool {
        self.cancellation.is_some() && self.progress != Progress::Complete
    }

    /// Returns whether the session is not to select and assign its members now. A cancellation goes before a pause.
    pub fn is_setup_paused(&self) -> bool {
        self.pause.is_some() && !self.is_being_cancelled()
    }

    /// Returns whether the session retries the one with that unique `id`.
    pub fn retries(&self, id: &str) -> bool {
        self.retry_of.as_ref().is_some_and(|retried| retried.id == id)
    }

    /// Returns the trouble of a session that is not over: its error, or else its wait.
    pub fn trouble(&self) -> Option<Trouble> {
        if self.progress == Progress::Complete {
            return None;
        }
        let error = Trouble::failed(self.error.as_deref().unwrap_or_default());
        error.or_else(|| Trouble::new(TroubleKind::Waiting, text(&self.waiting_for)))
    }

    pub(crate) fn recorded_trouble(&self) -> Option<RecordedTrouble> {
        Some(RecordedTrouble::new(&self.trouble()?, self.trouble_begin.as_deref()))
    }

    /// Notes at `now`, after a change, when the session began to run, and the trouble that it shows.
    #[must_use]
    pub fn with_begin(self, before: &Self, now: Timestamp) -> Self {
        let (shown, begin) = (before.trouble(), before.trouble_begin.as_ref());
        let trouble_begin = TroubleBegin::after(shown.as_ref(), begin, self.trouble().as_ref(), now);
        let begins = before.progress != Progress::Running;
        let is_undisturbed = self.progress == Progress::Running && self.pause.is_none();
        let undisturbed_since = if begins { Some(now) } else { before.undisturbed_since };
        Self { trouble_begin, undisturbed_since: undisturbed_since.filter(|_| is_undisturbed), ..self }
    }
}

/// Returns the session with its members under way.
#[must_use]
pub fn run(session: Session, mut members: Vec<ComponentId>, assigned_revision: u64) -> Session {
    members.sort_unstable();
    members.dedup();
    let components = members;
    let progress = Progress::Running;
    let rollout = session.rollout.map(|rollout| rollout.cut(&components));
    Session { components, progress, assigned_revision, waiting_for: String::new(), rollout, ..session }
}

/// Returns the running session once it cannot do its work any more. The `error` has the reason, is cut at the limit of
/// the contract, and stays when the session ends.
#[must_use]
pub fn with_error(session: Session, error: &str) -> Session {
    Session { error: Some(error.chars().take(LONGEST_ERROR).collect()), ..session }
}

/// End of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// Reason why the session could not do its work, cut at the limit of the contract; `None`: an earlier error stays.
    pub error: Option<String>,
    /// Result of the session.
    pub result: SessionResult,
}

/// Returns the session as it ends at `now`.
#[must_use]
pub fn complete(session: Session, now: Timestamp, end: SessionEnd) -> Session {
    let error = end.error.map(|text| text.chars().take(LONGEST_ERROR).collect()).or(session.error);
    let progress = Progress::Complete;
    let end_time = Some(bos_time::text(now));
    let result = Some(end.result);
    Session { progress, end_time, error, result, waiting_for: String::new(), pause: None, ..session }
}

/// Change of some members of a session; those that are `None` stay (BOS reference 2.9.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPatch {
    /// Comma-separated ids, which are kept in their order; empty items are left out.
    pub components: Option<String>,
    /// Any progress may follow any other.
    pub progress: Option<Progress>,
    /// Any text.
    pub start_time: Option<String>,
    /// Any text; `Some(None)` removes it.
    pub end_time: Option<Option<String>>,
    /// Any text; `Some(None)` removes it.
    pub error: Option<Option<String>>,
}

/// Returns the session with `patch` applied, all of it or none. A session that is not complete any more has no result,
/// and is not cancelled. A complete session is not paused.
///
/// # Errors
/// Names the first member of the patch that breaks its limit, or the progress of a session that is being cancelled:
/// its components are released first.
pub fn patch(session: Session, patch: SessionPatch) -> Result<Session, Invalid> {
    if session.is_being_cancelled() && patch.progress.is_some_and(|progress| progress != session.progress) {
        return Err(Invalid::new("status.status", "the session is being cancelled"));
    }
    let components = patch.components.as_deref().map(read_components).transpose()?;
    let start_time = patch.start_time.unwrap_or(session.start_time);
    check_length("status.start_time", &start_time, 0, LONGEST_TIME)?;
    let end_time = patch.end_time.unwrap_or(session.end_time);
    check_length("status.end_time", end_time.as_deref().unwrap_or_default(), 0, LONGEST_TIME)?;
    let error = patch.error.unwrap_or(session.error);
    check_length("status.error", error.as_deref().unwrap_or_default(), 0, LONGEST_ERROR)?;
    // The reason for waiting belongs to the old progress.
    let waiting_for = if patch.progress.is_some() { String::new() } else { session.waiting_for };
    let progress = patch.progress.unwrap_or(session.progress);
    let was_complete = session.progress == Progress::Complete;
    let goes_on = was_complete && progress != Progress::Complete;
    Ok(Session {
        components: components.unwrap_or(session.components),
        progress,
        result: session.result.filter(|_| !goes_on),
        cancellation: session.cancellation.filter(|_| !goes_on),
        pause: session.pause.filter(|_| progress != Progress::Complete),
        start_time,
        end_time,
        error,
        waiting_for,
        ..session
    })
}

fn read_components(text: &str) -> Result<Vec<ComponentId>, Invalid> {
    check_length("components", text, 0, LONGEST_LIMIT)?;
    let parsed = text.split(',').filter(|id| !id.is_empty()).map(ComponentId::parse);
    parsed.collect::<Result<_, _>>().map_err(|e| Invalid::new("components", e.reason))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use inventory::tests::ids;

    /// 2024-11-20T16:10:12Z and a fraction of a second.
    pub(crate) const NOW: Timestamp = Timestamp(1_732_119_012_345);

    /// Returns a pending boot session that was created now.
    pub(crate) fn session(name: &str) -> Session {
        Session {
            name: name.to_owned(),
            tenant: Tenant::none(),
            operation: Operation::Boot,
            template_name: "t".to_owned(),
            limit: String::new(),
            stage: false,
            include_disabled: false,
            components: vec![],
            progress: Progress::Pending,
            start_time: bos_time::text(NOW),
            end_time: None,
            error: None,
            id: format!("{name}-id"),
            revision: 0,
            assigned_revision: 0,
            waiting_for: String::new(),
            trouble_begin: None,
            created_at: NOW,
            result: None,
            cancellation: None,
            pause: None,
            retry_of: None,
            plan: None,
            confirmed_nodes: None,
            rollout: None,
            undisturbed_since: None,
            trace: Arc::default(),
        }
    }

    fn end(error: Option<String>) -> SessionEnd {
        SessionEnd { error, result: SessionResult::Failed }
    }

    #[test]
    fn a_session_runs_and_ends() {
        let waiting = Session { waiting_for: "the inventory".to_owned(), ..session("s") };
        let running = run(waiting.clone(), ids("n1 n0 n1"), 7);
        assert_eq!(
            running,
            Session {
                components: ids("n0 n1"),
                progress: Progress::Running,
                assigned_revision: 7,
                ..session("s")
            }
        );
        let ended = Session {
            progress: Progress::Complete,
            end_time: Some("2024-11-20T16:10:12".to_owned()),
            result: Some(SessionResult::Failed),
            ..running.clone()
        };
        assert_eq!(complete(running, NOW, end(None)), ended);
        let failed = complete(waiting, NOW, end(Some("ä".repeat(LONGEST_ERROR + 1))));
        assert_eq!(failed.error, Some("ä".repeat(LONGEST_ERROR)));
        assert_eq!(failed.waiting_for, "");
    }

    #[test]
    fn error_of_a_running_session_stays_when_it_ends() {
        let running = run(session("s"), ids("n0"), 7);
        for (error, kept) in
            [("gone", "gone".to_owned()), (&"ä".repeat(LONGEST_ERROR + 1), "ä".repeat(LONGEST_ERROR))]
        {
            let failed = with_error(running.clone(), error);
            assert_eq!(failed, Session { error: Some(kept.clone()), ..running.clone() });
            assert_eq!(complete(failed, NOW, end(None)).error, Some(kept));
        }
    }

    #[test]
    fn a_session_has_any_number_of_members() {
        let members: Vec<_> =
            (0..40_000).map(|n| ComponentId::parse(&format!("x{n:014}")).expect("valid")).collect();
        let running = run(session("s"), members.iter().rev().cloned().collect(), 7);
        assert_eq!(running.components, members);
        // Other members can be changed although no client could send the present components: their text would be too
        // long.
        let ended = SessionPatch { progress: Some(Progress::Complete), ..SessionPatch::default() };
        assert_eq!(patch(running, ended).map(|ended| ended.components), Ok(members));
        let text = |length| SessionPatch { components: Some(",".repeat(length)), ..SessionPatch::default() };
        assert!(patch(session("s"), text(LONGEST_LIMIT)).is_ok());
        assert!(patch(session("s"), text(LONGEST_LIMIT + 1)).is_err());
    }

    #[test]
    fn every_progress_may_follow_every_other() {
        for from in [Progress::Pending, Progress::Running, Progress::Complete] {
            for to in [Progress::Pending, Progress::Running, Progress::Complete] {
                let before = Session { progress: from, ..session("s") };
                let change = SessionPatch { progress: Some(to), ..SessionPatch::default() };
                let expected = Session { progress: to, ..session("s") };
                assert_eq!(patch(before, change), Ok(expected), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn patches_replace_members_without_questions() {
        let before = complete(run(session("s"), ids("n0"), 3), NOW, end(Some("bad".to_owned())));
        assert_eq!(patch(before.clone(), SessionPatch::default()), Ok(before.clone()));
        let change = SessionPatch {
            components: Some("n2,n1,,n2".to_owned()),
            progress: Some(Progress::Running),
            start_time: Some("long ago".to_owned()),
            end_time: Some(None),
            error: Some(Some(String::new())),
        };
        let expected = Session {
            components: ids("n2 n1 n2"),
            progress: Progress::Running,
            start_time: "long ago".to_owned(),
            end_time: None,
            error: Some(String::new()),
            result: None,
            ..before.clone()
        };
        assert_eq!(patch(before.clone(), change), Ok(expected.clone()));
        assert_eq!(expected.started_at(), NOW);
        let waiting = Session { waiting_for: "the inventory".to_owned(), ..session("s") };
        assert_eq!(patch(waiting.clone(), SessionPatch::default()), Ok(waiting.clone()));
        let again = SessionPatch { progress: Some(Progress::Pending), ..SessionPatch::default() };
        assert_eq!(patch(waiting, again), Ok(session("s")));
        let fields = [
            SessionPatch { components: Some("x".repeat(128)), ..SessionPatch::default() },
            SessionPatch { start_time: Some("x".repeat(128)), ..SessionPatch::default() },
            SessionPatch { end_time: Some(Some("x".repeat(128))), ..SessionPatch::default() },
            SessionPatch { error: Some(Some("x".repeat(65_537))), ..SessionPatch::default() },
        ]
        .map(|change| patch(before.clone(), change).expect_err("too long").field);
        assert_eq!(fields, ["components", "status.start_time", "status.end_time", "status.error"]);
    }
}
