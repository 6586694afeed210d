//! Interventions of operators in a session: cancelling a session, and retrying its failed nodes.

use std::sync::Arc;

use crate::{
    boot::session::{
        NewSession, Progress, RetriedSession, Session, SessionEnd, complete,
        result::{MemberStanding, SessionResult},
    },
    core::{
        id::{ComponentId, Tenant},
        invalid::{Invalid, check_length},
        limits::LONGEST_ERROR,
        text::text,
        time::Timestamp,
    },
};

/// Wish of an operator that a session ends now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancellation {
    /// Reason that the operator gave; empty: none.
    pub reason: Arc<str>,
}

/// Reason why a session cannot be cancelled, paused, resumed or retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerRefusal {
    /// A complete session cannot be cancelled.
    #[error("it is complete already{}", .0.as_ref().map(|result| format!(", with the result {}", result.word())).unwrap_or_default())]
    IsComplete(Option<SessionResult>),
    /// A session that is being cancelled is neither paused nor resumed: nothing begins for its components any more.
    #[error("it is being cancelled")]
    IsBeingCancelled,
    /// A session is retried once it is complete.
    #[error("it is not complete yet; wait for its end, or cancel it")]
    NotComplete,
    /// No member of the session failed that the session still owns.
    #[error("none of its components failed that it still owns")]
    NothingFailed,
}

/// Moment of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentBegin {
    /// No member was assigned, and none will be.
    NotBegun,
    /// Members may have been assigned.
    MayHaveBegun,
}

/// Returns the session once an operator cancels it at `now`. A session whose members may be assigned ends only after
/// they are released. Cancelling again changes nothing, and the first reason stays.
///
/// # Errors
/// [`SteerRefusal::IsComplete`] if the session ended in another way.
pub fn cancel(
    session: Session,
    reason: &str,
    assignment: AssignmentBegin,
    now: Timestamp,
) -> Result<Session, SteerRefusal> {
    if session.cancellation.is_some() {
        return Ok(session);
    }
    let cancelled = Session { cancellation: Some(Cancellation { reason: text(reason) }), ..session };
    match (cancelled.progress, assignment) {
        (Progress::Complete, _) => Err(SteerRefusal::IsComplete(cancelled.result)),
        (Progress::Pending, AssignmentBegin::NotBegun) => {
            let end = SessionEnd { error: None, result: SessionResult::Cancelled };
            Ok(complete(cancelled, now, end))
        }
        (Progress::Pending, AssignmentBegin::MayHaveBegun) | (Progress::Running, _) => Ok(cancelled),
    }
}

/// Checks the reason of a cancellation.
///
/// # Errors
/// The reason is too long.
pub fn check_reason(reason: &str) -> Result<(), Invalid> {
    check_length("reason", reason, 0, LONGEST_ERROR)
}

/// Returns the request for a session that repeats the operation of `session` for the members that failed; after a
/// cancellation, also for those that were not done. A session that failed before it had members is repeated as it was.
/// The new session acts at once, even if `session` only staged.
///
/// # Errors
/// [`SteerRefusal::NotComplete`], or [`SteerRefusal::NothingFailed`].
pub fn retry(
    session: &Session,
    members: impl IntoIterator<Item = (ComponentId, MemberStanding)>,
) -> Result<NewSession, SteerRefusal> {
    if session.progress != Progress::Complete {
        return Err(SteerRefusal::NotComplete);
    }
    let is_cancelled = session.cancellation.is_some();
    let wanted = members.into_iter().filter(|(_, standing)| match standing {
        MemberStanding::Failed => true,
        MemberStanding::Unfinished => is_cancelled,
        MemberStanding::Reached | MemberStanding::TakenOver { .. } => false,
    });
    let ids: Vec<_> = wanted.map(|(id, _)| id.as_str().to_owned()).collect();
    let had_no_members = session.components.is_empty()
        && matches!(session.result, Some(SessionResult::Failed | SessionResult::Cancelled));
    if ids.is_empty() && !had_no_members {
        return Err(SteerRefusal::NothingFailed);
    }
    // A retry counts its own nodes. Without any it is the same session again.
    let confirmed_nodes = match ids.len() {
        0 => session.confirmed_nodes,
        failed => u32::try_from(failed).ok(),
    };
    Ok(NewSession {
        name: String::new(),
        tenant: Tenant::clone(&session.tenant),
        operation: session.operation,
        template_name: session.template_name.clone(),
        limit: if ids.is_empty() { session.limit.clone() } else { ids.join(",") },
        stage: false,
        include_disabled: session.include_disabled,
        retry_of: Some(RetriedSession { name: session.name.clone(), id: session.id.clone() }),
        // A plan is about the members of the first try.
        plan: None,
        confirmed_nodes,
        rollout: session.rollout.as_ref().map(|rollout| rollout.policy().clone()),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::session::{
        inventory::tests::ids,
        run,
        tests::{NOW, session},
    };

    fn ended(session: Session, result: SessionResult) -> Session {
        complete(session, NOW, SessionEnd { error: None, result })
    }

    #[test]
    fn cancellation_depends_on_progress_and_assignment() {
        let running = run(session("s"), ids("n0"), 7);
        let cancelled = ended(
            Session { cancellation: Some(Cancellation::default()), ..running.clone() },
            SessionResult::Cancelled,
        );
        let mut rows = String::new();
        for (name, session) in [
            ("pending", session("s")),
            ("running", running.clone()),
            ("succeeded", ended(running.clone(), SessionResult::Succeeded)),
            (
                "ended by an earlier version",
                Session { result: None, ..ended(running, SessionResult::Failed) },
            ),
            ("cancelled", cancelled),
        ] {
            for assignment in [AssignmentBegin::NotBegun, AssignmentBegin::MayHaveBegun] {
                let answer = match cancel(session.clone(), "wrong image", assignment, NOW) {
                    Ok(after) => {
                        let reason = &after.cancellation.as_ref().expect("cancelled").reason;
                        format!("{:?} {:?} '{reason}'", after.progress, after.result)
                    }
                    Err(refusal) => format!("refused: {refusal}"),
                };
                rows += &format!("{name}, {assignment:?}: {answer}\n");
            }
        }
        expect![[r#"
            pending, NotBegun: Complete Some(Cancelled) 'wrong image'
            pending, MayHaveBegun: Pending None 'wrong image'
            running, NotBegun: Running None 'wrong image'
            running, MayHaveBegun: Running None 'wrong image'
            succeeded, NotBegun: refused: it is complete already, with the result succeeded
            succeeded, MayHaveBegun: refused: it is complete already, with the result succeeded
            ended by an earlier version, NotBegun: refused: it is complete already
            ended by an earlier version, MayHaveBegun: refused: it is complete already
            cancelled, NotBegun: Complete Some(Cancelled) ''
            cancelled, MayHaveBegun: Complete Some(Cancelled) ''
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn second_cancellation_changes_nothing() {
        let running = run(session("s"), ids("n0"), 7);
        let once = cancel(running, "first", AssignmentBegin::MayHaveBegun, NOW).expect("possible");
        let twice = cancel(
            once.clone(),
            "second",
            AssignmentBegin::MayHaveBegun,
            NOW.plus(std::time::Duration::from_secs(9)),
        );
        assert_eq!(twice, Ok(once));
    }

    #[test]
    fn retry_takes_what_failed() {
        let members = || {
            let standings = [
                MemberStanding::Reached,
                MemberStanding::Failed,
                MemberStanding::Unfinished,
                MemberStanding::TakenOver { by: "other".into() },
                MemberStanding::Failed,
            ];
            ids("n0 n1 n2 n3 n4").into_iter().zip(standings).collect::<Vec<_>>()
        };
        let running = Session { stage: true, ..run(session("s"), ids("n0 n1 n2 n3 n4"), 7) };
        let cancelled = Session { cancellation: Some(Cancellation::default()), ..running.clone() };
        let limited = Session { limit: "g,!n0".to_owned(), ..session("s") };
        let fine = || vec![(ids("n0").remove(0), MemberStanding::Reached)];
        let mut rows = String::new();
        for (name, session, members) in [
            ("running", running.clone(), members()),
            ("partial", ended(running.clone(), SessionResult::Partial), members()),
            ("cancelled", ended(cancelled, SessionResult::Cancelled), members()),
            ("succeeded", ended(running, SessionResult::Succeeded), fine()),
            ("failed without members", ended(limited.clone(), SessionResult::Failed), vec![]),
            (
                "nothing to do",
                ended(limited, SessionResult::NothingToDo(crate::boot::session::result::IdleReason::NoNodes)),
                vec![],
            ),
        ] {
            let answer = match retry(&session, members) {
                Ok(wish) => format!("limit '{}', stage {}", wish.limit, wish.stage),
                Err(refusal) => format!("refused: {refusal}"),
            };
            rows += &format!("{name}: {answer}\n");
        }
        expect![[r#"
            running: refused: it is not complete yet; wait for its end, or cancel it
            partial: limit 'n1,n4', stage false
            cancelled: limit 'n1,n2,n4', stage false
            succeeded: refused: none of its components failed that it still owns
            failed without members: limit 'g,!n0', stage false
            nothing to do: refused: none of its components failed that it still owns
        "#]]
        .assert_eq(&rows);
    }
}
