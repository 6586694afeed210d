//! Result of a session: how a session ended, beside the progress that BOS shows.

use std::{collections::BTreeMap, sync::Arc};

use crate::boot::{
    component::{
        Component,
        status::{ComponentStatus, computed_status},
    },
    session::{
        Session,
        completion::{owns, stages},
    },
};

/// Result of a complete session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionResult {
    /// Every member reached its desired state.
    Succeeded,
    /// Some members reached their desired state, and others did not.
    Partial,
    /// No member reached its desired state, or the session could not do its work.
    Failed,
    /// An operator cancelled the session.
    Cancelled,
    /// Other sessions took members over, and no member reached its desired state or failed before.
    Superseded {
        /// Name of the session that took most of them.
        by: Arc<str>,
    },
    /// The session had no members.
    NothingToDo(IdleReason),
}

/// Reason why a session has no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdleReason {
    /// Template and limit select no node that the session may use; each left-out node has its own reason.
    NoNodes,
    /// None of the selected nodes has a component record.
    NoComponents,
}

impl SessionResult {
    /// Returns the word for the result.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded { .. } => "superseded",
            Self::NothingToDo(_) => "nothing_to_do",
        }
    }
}

/// Standing of a member at the end of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStanding {
    /// The member reached its desired state.
    Reached,
    /// The member failed.
    Failed,
    /// Another session owns the member, or has staged another state in it.
    TakenOver {
        /// Name of the other session.
        by: Arc<str>,
    },
    /// The member was disabled, deleted or taken out of the session before it was done.
    Unfinished,
}

/// Members by their standing at the end of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// Members that reached their desired state.
    pub reached: usize,
    /// Members that failed.
    pub failed: usize,
    /// Members that another session took over.
    pub taken_over: usize,
    /// Members that left the session before they were done.
    pub unfinished: usize,
}

impl MemberCounts {
    /// Counts members with these standings.
    pub fn of<'a>(members: impl IntoIterator<Item = &'a MemberStanding>) -> Self {
        let mut counts = Self::default();
        for member in members {
            match member {
                MemberStanding::Reached => counts.reached += 1,
                MemberStanding::Failed => counts.failed += 1,
                MemberStanding::TakenOver { .. } => counts.taken_over += 1,
                MemberStanding::Unfinished => counts.unfinished += 1,
            }
        }
        counts
    }
}

/// Returns the standing of a member of `session`; `None`: the component does not exist.
pub fn standing(session: &Session, component: Option<&Component>) -> MemberStanding {
    let Some(component) = component else { return MemberStanding::Unfinished };
    if owns(session, component) {
        return match computed_status(component) {
            ComponentStatus::Failed => MemberStanding::Failed,
            // A record without a status was not evaluated yet.
            ComponentStatus::STABLE if component.evaluation.status.is_some() => MemberStanding::Reached,
            ComponentStatus::OnHold | ComponentStatus::Progress(_) | ComponentStatus::Overridden(_) => {
                MemberStanding::Unfinished
            }
        };
    }
    let other = match session.stage {
        true if stages(session, component) => "",
        true => component.wish.staged_session_name(),
        false => component.session_name(),
    };
    match other {
        "" => MemberStanding::Unfinished,
        by => MemberStanding::TakenOver { by: by.into() },
    }
}

/// Decides the result of `session`, which ends with these standings of its members.
///
/// A cancellation decides, then a setup that found no members, then an error of the session itself, then the members.
/// A member that another session took over did not reach what this session wanted.
pub fn result(
    session: &Session,
    idle: Option<IdleReason>,
    members: impl IntoIterator<Item = MemberStanding>,
) -> SessionResult {
    if session.cancellation.is_some() {
        return SessionResult::Cancelled;
    }
    if let Some(reason) = idle {
        return SessionResult::NothingToDo(reason);
    }
    if session.error.as_ref().is_some_and(|error| !error.is_empty()) {
        return SessionResult::Failed;
    }
    let mut tally = MemberTally::default();
    members.into_iter().for_each(|member| tally.count(member));
    tally.result()
}

#[derive(Default)]
struct MemberTally {
    reached: usize,
    failed: usize,
    unfinished: usize,
    taken_over: BTreeMap<Arc<str>, usize>,
}

impl MemberTally {
    fn count(&mut self, member: MemberStanding) {
        match member {
            MemberStanding::Reached => self.reached += 1,
            MemberStanding::Failed => self.failed += 1,
            MemberStanding::Unfinished => self.unfinished += 1,
            MemberStanding::TakenOver { by } => *self.taken_over.entry(by).or_default() += 1,
        }
    }

    fn result(self) -> SessionResult {
        let others = self.failed + self.unfinished + self.taken_over.len();
        if self.reached > 0 {
            return if others == 0 { SessionResult::Succeeded } else { SessionResult::Partial };
        }
        if others == 0 {
            return SessionResult::NothingToDo(IdleReason::NoNodes);
        }
        // Of sessions that took equally many, the last name counts.
        let most = self.taken_over.into_iter().max_by_key(|(_, members)| *members);
        match most {
            Some((by, _)) if self.failed == 0 => SessionResult::Superseded { by },
            Some(_) | None => SessionResult::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::{
        component::{Phase, StagedState, Status},
        session::{Cancellation, completion::tests::component, tests::session},
    };

    fn shown(result: &SessionResult) -> String {
        match result {
            SessionResult::Superseded { by } => format!("superseded by {by}"),
            SessionResult::NothingToDo(reason) => format!("nothing to do: {reason:?}"),
            SessionResult::Succeeded
            | SessionResult::Partial
            | SessionResult::Failed
            | SessionResult::Cancelled => result.word().to_owned(),
        }
    }

    fn members(letters: &str) -> impl Iterator<Item = MemberStanding> {
        letters.chars().map(|letter| match letter {
            'r' => MemberStanding::Reached,
            'f' => MemberStanding::Failed,
            'u' => MemberStanding::Unfinished,
            other => MemberStanding::TakenOver { by: other.to_string().into() },
        })
    }

    #[test]
    fn members_are_counted_by_standing() {
        let members: Vec<_> = members("rrrffuA").collect();
        let counts = MemberCounts { reached: 3, failed: 2, unfinished: 1, taken_over: 1 };
        assert_eq!(MemberCounts::of(&members), counts);
    }

    #[test]
    fn result_follows_from_members_error_and_cancellation() {
        let plain = session("s");
        let failed = Session { error: Some("no such image".to_owned()), ..session("s") };
        let cleared = Session { error: Some(String::new()), ..session("s") };
        let cancelled = Session { cancellation: Some(Cancellation::default()), ..failed.clone() };
        let mut rows = String::new();
        for (name, session, letters) in [
            ("", &plain, ""),
            ("", &plain, "rr"),
            ("", &plain, "rf"),
            ("", &plain, "ru"),
            ("", &plain, "rA"),
            ("", &plain, "ff"),
            ("", &plain, "uu"),
            ("", &plain, "fA"),
            ("", &plain, "AA"),
            ("", &plain, "AuB"),
            ("", &plain, "ABA"),
            ("empty error", &cleared, "rr"),
            ("error", &failed, "rr"),
            ("error", &failed, ""),
            ("cancelled", &cancelled, "rf"),
            ("cancelled", &cancelled, ""),
            ("no members", &failed, "-"),
            ("cancelled", &cancelled, "-"),
        ] {
            let idle = (letters == "-").then_some(IdleReason::NoComponents);
            let result = result(session, idle, members(letters));
            rows += &format!("{name:12}{letters:4}{}\n", shown(&result));
        }
        expect![[r#"
                            nothing to do: NoNodes
                        rr  succeeded
                        rf  partial
                        ru  partial
                        rA  partial
                        ff  failed
                        uu  failed
                        fA  failed
                        AA  superseded by A
                        AuB superseded by B
                        ABA superseded by A
            empty error rr  succeeded
            error       rr  failed
            error           failed
            cancelled   rf  cancelled
            cancelled       cancelled
            no members  -   nothing to do: NoComponents
            cancelled   -   cancelled
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn standing_follows_from_owner_and_status() {
        let own = session("s");
        let staging = Session { stage: true, ..session("s") };
        let with = |phase, status_override: &str, owner: &str, staged: &str| {
            component("n0", false, owner, staged).with(|one| {
                one.evaluation.status =
                    Some(Status { phase: Some(phase), status_override: Some(status_override.into()) });
                if staged.is_empty() {
                    one.wish.staged_state = Some(StagedState::default().into());
                }
            })
        };
        let mut rows = String::new();
        for (name, component) in [
            ("stable", with(Phase::None, "", "s", "")),
            ("failed", with(Phase::PoweringOn, "failed", "s", "")),
            ("disabled", with(Phase::PoweringOn, "", "s", "")),
            ("held", with(Phase::None, "on_hold", "s", "")),
            ("never evaluated", component("n0", false, "s", "")),
            ("of another session", with(Phase::None, "", "other", "")),
            ("of no session", with(Phase::None, "", "", "")),
            ("staged", with(Phase::None, "", "other", "s")),
            ("staged by another session", with(Phase::None, "", "other", "later")),
        ] {
            let [plain, staged] = [&own, &staging].map(|session| standing(session, Some(&component)));
            rows += &format!("{name}: {plain:?}, if staging {staged:?}\n");
        }
        expect![[r#"
            stable: Reached, if staging Reached
            failed: Failed, if staging Failed
            disabled: Unfinished, if staging Unfinished
            held: Unfinished, if staging Unfinished
            never evaluated: Unfinished, if staging Unfinished
            of another session: TakenOver { by: "other" }, if staging Unfinished
            of no session: Unfinished, if staging Unfinished
            staged: TakenOver { by: "other" }, if staging Unfinished
            staged by another session: TakenOver { by: "other" }, if staging TakenOver { by: "later" }
        "#]]
        .assert_eq(&rows);
        assert_eq!(standing(&own, None), MemberStanding::Unfinished);
    }
}
