//! Pauses of sessions: nothing begins for the components of a paused session, and work that has begun ends.

use crate::{
    boot::{
        component::{Component, PauseMark},
        session::{Progress, Session, SessionPause, SessionRollout, completion::owns, steer::SteerRefusal},
    },
    core::{
        invalid::{Invalid, check_length},
        limits::LONGEST_NAME,
    },
};

/// Returns the session once a client pauses it. Pausing again changes nothing, and the first pause stays.
///
/// # Errors
/// [`SteerRefusal::IsComplete`] or [`SteerRefusal::IsBeingCancelled`].
pub fn pause(session: Session, pause: SessionPause) -> Result<Session, SteerRefusal> {
    check_steerable(&session)?;
    if session.pause.is_some() {
        return Ok(session);
    }
    // The members of a paused session are not selected, so that the session waits for no dependency.
    Ok(Session { pause: Some(pause), waiting_for: String::new(), ..session })
}

/// Returns the session once a client resumes it. Resuming a session that is not paused changes nothing. A rollout that was held
/// because a batch missed its threshold goes on with the next batch.
///
/// # Errors
/// [`SteerRefusal::IsComplete`] or [`SteerRefusal::IsBeingCancelled`].
pub fn resume(session: Session) -> Result<Session, SteerRefusal> {
    check_steerable(&session)?;
    if session.pause.is_none() {
        return Ok(session);
    }
    let rollout = session.rollout.map(SessionRollout::waived);
    Ok(Session { pause: None, rollout, ..session })
}

/// Checks the name of a client that pauses a session.
///
/// # Errors
/// The name is too long.
pub fn check_client(name: &str) -> Result<(), Invalid> {
    check_length("client", name, 0, LONGEST_NAME)
}

fn check_steerable(session: &Session) -> Result<(), SteerRefusal> {
    if session.progress == Progress::Complete {
        return Err(SteerRefusal::IsComplete(session.result.clone()));
    }
    if session.is_being_cancelled() { Err(SteerRefusal::IsBeingCancelled) } else { Ok(()) }
}

/// Change of the mark of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkChange {
    /// The component has the right mark, or needs none.
    None,
    /// The component gets this mark.
    Set(PauseMark),
    /// The component loses its mark.
    Remove,
}

/// Returns how the mark of `component` has to change, where `holding` are the sessions that are paused or have closed batches, and
/// are not complete.
///
/// A component that is disabled needs no mark, because no service acts on it, and keeps the one that it has. No mark outlives
/// the pause, the session, or the stay of the component in the session.
pub fn mark_change<'a>(component: &Component, holding: impl IntoIterator<Item = &'a Session>) -> MarkChange {
    let owner = holding.into_iter().find(|session| owns(session, component));
    let mark = owner.and_then(|session| session.mark_of(&component.id));
    match (mark, component.wish.pause.as_deref()) {
        (None, None) => MarkChange::None,
        (None, Some(_)) => MarkChange::Remove,
        (Some(mark), Some(present)) if mark == *present => MarkChange::None,
        (Some(_), _) if !component.is_enabled() => MarkChange::None,
        (Some(mark), _) => MarkChange::Set(mark),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::session::{
        Cancellation, SessionEnd, SessionResult, complete,
        completion::tests::component,
        inventory::tests::ids,
        run,
        tests::{NOW, session},
    };

    fn wish(by: &str) -> SessionPause {
        SessionPause { by: by.into(), since: NOW, reason: "power cap".into(), request_id: "r".into() }
    }

    #[test]
    fn pause_and_resume_depend_on_the_progress() {
        let running = run(session("s"), ids("n0"), 7);
        let waiting = Session { waiting_for: "the inventory".to_owned(), ..session("s") };
        let cancelled = Session { cancellation: Some(Cancellation::default()), ..running.clone() };
        let end = SessionEnd { error: None, result: SessionResult::Partial };
        let over = complete(running.clone(), NOW, end.clone());
        let paused = pause(running.clone(), wish("first")).expect("possible");
        let mut rows = String::new();
        for (name, session) in [
            ("pending", session("s")),
            ("waiting", waiting),
            ("running", running),
            ("paused", paused.clone()),
            ("being cancelled", cancelled.clone()),
            ("paused and being cancelled", Session { pause: paused.pause.clone(), ..cancelled }),
            ("complete", over),
            ("complete after a pause", complete(paused, NOW, end)),
        ] {
            let told = |answer: Result<Session, SteerRefusal>| match answer {
                Ok(after) => {
                    let by = after.pause.map_or("-".into(), |pause| pause.by);
                    format!("{:?}, paused by {by}, waits for '{}'", after.progress, after.waiting_for)
                }
                Err(refusal) => format!("refused: {refusal}"),
            };
            rows += &format!("{name}\n    pause: {}\n", told(pause(session.clone(), wish("alice"))));
            rows += &format!("    resume: {}\n", told(resume(session)));
        }
        expect![[r#"
            pending
                pause: Pending, paused by alice, waits for ''
                resume: Pending, paused by -, waits for ''
            waiting
                pause: Pending, paused by alice, waits for ''
                resume: Pending, paused by -, waits for 'the inventory'
            running
                pause: Running, paused by alice, waits for ''
                resume: Running, paused by -, waits for ''
            paused
                pause: Running, paused by first, waits for ''
                resume: Running, paused by -, waits for ''
            being cancelled
                pause: refused: it is being cancelled
                resume: refused: it is being cancelled
            paused and being cancelled
                pause: refused: it is being cancelled
                resume: refused: it is being cancelled
            complete
                pause: refused: it is complete already, with the result partial
                resume: refused: it is complete already, with the result partial
            complete after a pause
                pause: refused: it is complete already, with the result partial
                resume: refused: it is complete already, with the result partial
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn marks_follow_the_session_that_owns_the_component() {
        let paused = Session { pause: Some(wish("alice")), ..session("s") };
        let marked = |one: Component, by: &str| {
            let pause = SessionPause { by: by.into(), ..wish(by) };
            one.with(|one| one.wish.pause = Some(pause.mark().into()))
        };
        let bare = component("n0", true, "s", "");
        let mut rows = String::new();
        for (name, component) in [
            ("of the session", bare.clone()),
            ("marked", marked(bare.clone(), "alice")),
            ("marked by an earlier pause", marked(bare, "bob")),
            ("disabled", component("n0", false, "s", "")),
            ("disabled and marked", marked(component("n0", false, "s", ""), "alice")),
            ("of another session", component("n0", true, "other", "")),
            ("of another session, and marked", marked(component("n0", true, "other", ""), "alice")),
            ("staged by the session", component("n0", true, "other", "s")),
        ] {
            let changes = [vec![&paused], vec![]].map(|paused| mark_change(&component, paused));
            let told = changes.map(|change| match change {
                MarkChange::None => "nothing".to_owned(),
                MarkChange::Set(mark) => format!("mark by {:?}", mark.holder),
                MarkChange::Remove => "remove".to_owned(),
            });
            rows += &format!("{name}: paused {}; not paused {}\n", told[0], told[1]);
        }
        expect![[r#"
            of the session: paused mark by Client("alice"); not paused nothing
            marked: paused nothing; not paused remove
            marked by an earlier pause: paused mark by Client("alice"); not paused remove
            disabled: paused nothing; not paused nothing
            disabled and marked: paused nothing; not paused remove
            of another session: paused nothing; not paused nothing
            of another session, and marked: paused remove; not paused remove
            staged by the session: paused nothing; not paused nothing
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn pause_has_words_for_people() {
        assert_eq!(wish("alice").text("s"), "session s is paused by alice since 2024-11-20T16:10:12Z");
        assert!(check_client(&"x".repeat(LONGEST_NAME)).is_ok());
        assert!(check_client(&"x".repeat(LONGEST_NAME + 1)).is_err());
    }
}
