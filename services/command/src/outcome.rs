//! Result of a session, and its progress in one line.

use crate::{
    error::ExitReason,
    record::{SessionEnd, SessionRecord, SessionStatus, span},
};

/// Result of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOutcome {
    /// Every node reached what it should.
    Succeeded,
    /// The session staged states that its nodes act on later.
    Staged,
    /// Some nodes failed.
    PartlyFailed,
    /// Every node failed, or the session itself.
    Failed,
    /// The session ended without nodes.
    NothingDone,
    /// An operator cancelled the session.
    Cancelled,
}

impl SessionOutcome {
    /// Returns the result that the service gives, with `end`; `None`: the session goes on. A service without results, such
    /// as BOS, leaves it to the record of the session and the status of its nodes.
    pub(crate) fn of(session: &SessionRecord, nodes: &SessionStatus, end: &SessionEnd) -> Option<Self> {
        match end.result.as_str() {
            "succeeded" => Some(Self::Succeeded),
            "partial" => Some(Self::PartlyFailed),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            "superseded" | "nothing_to_do" => Some(Self::NothingDone),
            _ => Self::of_nodes(session, nodes),
        }
    }

    fn of_nodes(session: &SessionRecord, nodes: &SessionStatus) -> Option<Self> {
        match session.status.status.as_str() {
            "complete" if !session.status.error.is_empty() => Some(Self::Failed),
            "complete" | "running" if session.stage => Some(Self::Staged),
            "complete" if nodes.managed_components_count == 0 => Some(Self::NothingDone),
            "complete" if nodes.percent_failed <= 0.0 => Some(Self::Succeeded),
            "complete" if nodes.percent_failed >= 100.0 => Some(Self::Failed),
            "complete" => Some(Self::PartlyFailed),
            _ => None,
        }
    }

    pub(crate) fn reason(self) -> ExitReason {
        match self {
            Self::Succeeded | Self::Staged => ExitReason::Done,
            Self::PartlyFailed => ExitReason::PartlyFailed,
            Self::Failed => ExitReason::SessionFailed,
            Self::NothingDone => ExitReason::NothingDone,
            Self::Cancelled => ExitReason::Cancelled,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Staged => "staged",
            Self::PartlyFailed => "partly failed",
            Self::Failed => "failed",
            Self::NothingDone => "ended without nodes: there was nothing to do, or other sessions took them",
            Self::Cancelled => "was cancelled",
        }
    }
}

/// Returns the progress in one line: counts of nodes, and what most of them wait for.
pub(crate) fn progress(session: &SessionRecord, nodes: &SessionStatus, end: &SessionEnd) -> String {
    let mut parts = Vec::new();
    match session.status.status.as_str() {
        "pending" => parts.push("pending".to_owned()),
        _ => parts.push(counts(nodes)),
    }
    if let Some(standing) = end.rollout.as_ref().and_then(|rollout| rollout.standing.as_ref()) {
        parts.push(standing.text.clone());
    }
    if let Some(pause) = &end.pause {
        let reason = if pause.reason.is_empty() { String::new() } else { format!(": {}", pause.reason) };
        parts.push(format!(
            "paused by {}{reason}; `reveille session resume {}` lets it go on",
            pause.by, session.name
        ));
    }
    if !session.status.waiting_for.is_empty() {
        parts.push(format!("waiting for {}", session.status.waiting_for));
    }
    let most =
        nodes.error_summary.iter().filter(|(text, _)| !text.is_empty()).max_by_key(|(_, nodes)| nodes.count);
    if let Some((text, nodes)) = most {
        parts.push(format!("{} with: {text}", node_count(nodes.count)));
    }
    parts.join("; ")
}

fn counts(nodes: &SessionStatus) -> String {
    let all = nodes.managed_components_count;
    let share = |percent: f64| (percent * f64::from(all) / 100.0).round();
    let settled = share(nodes.percent_successful + nodes.percent_failed + nodes.percent_staged);
    let mut words = vec![format!("{settled}/{all} settled")];
    for (word, percent) in [
        ("failed", nodes.percent_failed),
        ("powering off", nodes.phases.percent_powering_off),
        ("powering on", nodes.phases.percent_powering_on),
        ("configuring", nodes.phases.percent_configuring),
    ] {
        let count = share(percent);
        if count > 0.0 {
            words.push(format!("{count} {word}"));
        }
    }
    words.join(", ")
}

/// Returns the lines that close a session: its result, its errors with the nodes that have them, and the next step.
pub(crate) fn summary(
    outcome: SessionOutcome,
    session: &SessionRecord,
    nodes: &SessionStatus,
    seconds: Option<i64>,
) -> String {
    let mut lines = vec![format!("session {} {}", session.name, outcome.word())];
    if let Some(seconds) = seconds {
        lines[0].push_str(&format!(" after {}", span(seconds)));
    }
    if nodes.managed_components_count > 0 {
        lines.push(format!("  {}", counts(nodes)));
    }
    if !session.status.error.is_empty() {
        lines.push(format!("  {}", session.status.error));
    }
    for (text, nodes) in nodes.error_summary.iter().filter(|(text, _)| !text.is_empty()) {
        lines.push(format!("  {}: {text}", node_count(nodes.count)));
        lines.push(format!("    {}", nodes.list));
    }
    let next = match outcome {
        SessionOutcome::Succeeded => None,
        SessionOutcome::Staged => Some("apply it to nodes with POST /v2/applystaged".to_owned()),
        SessionOutcome::Cancelled => {
            Some(format!("`reveille session retry {}` repeats it for nodes that were not done", session.name))
        }
        SessionOutcome::PartlyFailed | SessionOutcome::Failed if nodes.managed_components_count > 0 => {
            Some(format!(
                "`reveille get components --session {0} --status failed` lists them, `reveille session retry {0}` \
                 repeats it for them",
                session.name
            ))
        }
        SessionOutcome::PartlyFailed | SessionOutcome::Failed | SessionOutcome::NothingDone => {
            Some(format!("`reveille events --session {}` tells what happened", session.name))
        }
    };
    lines.extend(next.map(|next| format!("next: {next}")));
    lines.into_iter().map(|line| line + "\n").collect()
}

fn node_count(count: u32) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::record::{RolloutStanding, SessionPause, SessionRollout};

    fn nodes(count: u32, failed: f64, successful: f64, error: &str) -> SessionStatus {
        let errors = if error.is_empty() { json!({}) } else { json!({error: {"count": 2, "list": "x1,x2"}}) };
        let rest = 100.0 - failed - successful;
        serde_json::from_value(json!({
            "managed_components_count": count, "percent_failed": failed, "percent_successful": successful,
            "phases": {"percent_powering_on": if count == 0 { 0.0 } else { rest }}, "error_summary": errors,
        }))
        .unwrap()
    }

    fn session(status: &str, error: &str, waiting_for: &str, stage: bool) -> SessionRecord {
        serde_json::from_value(json!({
            "name": "s", "stage": stage,
            "status": {"status": status, "error": error, "waiting_for": waiting_for},
        }))
        .unwrap()
    }

    #[test]
    fn result_of_the_service_decides() {
        let (session, nodes) = (session("complete", "", "", false), nodes(8, 0.0, 100.0, ""));
        let mut rows = String::new();
        for result in [
            "succeeded",
            "partial",
            "failed",
            "cancelled",
            "superseded",
            "nothing_to_do",
            "of a later release",
            "",
        ] {
            let end = SessionEnd { result: result.to_owned(), ..SessionEnd::default() };
            let outcome = SessionOutcome::of(&session, &nodes, &end).unwrap();
            writeln!(rows, "'{result}': {outcome:?}, {:?}", outcome.reason()).unwrap();
        }
        expect![[r#"
            'succeeded': Succeeded, Done
            'partial': PartlyFailed, PartlyFailed
            'failed': Failed, SessionFailed
            'cancelled': Cancelled, Cancelled
            'superseded': NothingDone, NothingDone
            'nothing_to_do': NothingDone, NothingDone
            'of a later release': Succeeded, Done
            '': Succeeded, Done
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn progress_tells_pause_and_rollout() {
        let pause = SessionPause { by: "rollout".to_owned(), reason: "batch 1 of 3 missed".to_owned() };
        let standing = RolloutStanding { text: "batch 1 of 3 is open, 1 failed".to_owned() };
        let rollout = SessionRollout { standing: Some(standing), ..SessionRollout::default() };
        let end = SessionEnd { pause: Some(pause), rollout: Some(rollout), ..SessionEnd::default() };
        expect!["1/8 settled, 1 failed, 7 powering on; batch 1 of 3 is open, 1 failed; paused by rollout: batch 1 of 3 missed; `reveille session resume s` lets it go on"]
            .assert_eq(&progress(&session("running", "", "", false), &nodes(8, 12.5, 0.0, ""), &end));
    }

    #[test]
    fn session_result_follows_from_its_nodes() {
        let none = SessionStatus::default();
        let mut rows = String::new();
        for (session, nodes) in [
            (session("pending", "", "", false), none.clone()),
            (session("pending", "", "HSM at https://hsm (failing since noon)", false), none.clone()),
            (session("running", "", "", false), nodes(8, 0.0, 25.0, "")),
            (session("running", "", "", false), nodes(8, 25.0, 0.0, "no answer")),
            (session("complete", "", "", false), nodes(8, 0.0, 100.0, "")),
            (session("complete", "", "", false), nodes(8, 25.0, 75.0, "no answer")),
            (session("complete", "", "", false), nodes(2, 100.0, 0.0, "no answer")),
            (session("complete", "", "", false), none.clone()),
            (session("complete", "no such image", "", false), none.clone()),
            (session("pending", "", "", true), none.clone()),
            (session("running", "", "", true), nodes(8, 0.0, 0.0, "")),
            (session("complete", "no such image", "", true), none),
        ] {
            let outcome = SessionOutcome::of(&session, &nodes, &SessionEnd::default());
            writeln!(rows, "{}: {:?}", progress(&session, &nodes, &SessionEnd::default()), outcome).unwrap();
            if let Some(outcome) = outcome {
                rows.push_str(&summary(outcome, &session, &nodes, Some(300)));
            }
        }
        expect![[r#"
            pending: None
            pending; waiting for HSM at https://hsm (failing since noon): None
            2/8 settled, 6 powering on: None
            2/8 settled, 2 failed, 6 powering on; 2 nodes with: no answer: None
            8/8 settled: Some(Succeeded)
            session s succeeded after 5m
              8/8 settled
            8/8 settled, 2 failed; 2 nodes with: no answer: Some(PartlyFailed)
            session s partly failed after 5m
              8/8 settled, 2 failed
              2 nodes: no answer
                x1,x2
            next: `reveille get components --session s --status failed` lists them, `reveille session retry s` repeats it for them
            2/2 settled, 2 failed; 2 nodes with: no answer: Some(Failed)
            session s failed after 5m
              2/2 settled, 2 failed
              2 nodes: no answer
                x1,x2
            next: `reveille get components --session s --status failed` lists them, `reveille session retry s` repeats it for them
            0/0 settled: Some(NothingDone)
            session s ended without nodes: there was nothing to do, or other sessions took them after 5m
            next: `reveille events --session s` tells what happened
            0/0 settled: Some(Failed)
            session s failed after 5m
              no such image
            next: `reveille events --session s` tells what happened
            pending: None
            0/8 settled, 8 powering on: Some(Staged)
            session s staged after 5m
              0/8 settled, 8 powering on
            next: apply it to nodes with POST /v2/applystaged
            0/0 settled: Some(Failed)
            session s failed after 5m
              no such image
            next: `reveille events --session s` tells what happened
        "#]]
        .assert_eq(&rows);
    }
}
