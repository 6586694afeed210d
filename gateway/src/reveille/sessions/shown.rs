//! Sessions as the answer shows them.

use proto::session::{
    IdleReason, Operation, Progress, RolloutStanding, Session, SessionEstimate, SessionPause, SessionResult,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::rollout::ShownRollout;
use crate::reveille::instant;

/// Session with its result.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::reveille) struct ShownSession {
    /// Name, unique within the tenant.
    name: String,
    /// Tenant that owns the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
    /// Operation on the members: `boot`, `reboot` or `shutdown`.
    operation: &'static str,
    /// Template with the desired state of the members.
    template_name: String,
    /// Nodes of the template that take part; empty: all.
    limit: String,
    /// True if the session only stages.
    stage: bool,
    /// Number of members.
    members: usize,
    /// Progress as BOS shows it: `pending`, `running` or `complete`.
    progress: &'static str,
    /// Result of a complete session: `succeeded`, `partial`, `failed`, `cancelled`, `superseded` or `nothing_to_do`.
    /// Absent: the session is not complete, or an earlier version completed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    /// Session that took the members over, of a superseded one.
    #[serde(skip_serializing_if = "String::is_empty")]
    superseded_by: String,
    /// Reason why there was nothing to do: `no_nodes` or `no_components`.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_reason: Option<&'static str>,
    /// Cancellation of the session, also while its components are being released.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancellation: Option<ShownCancellation>,
    /// Pause of the session. Absent: it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<ShownPause>,
    /// Rollout in batches. Absent: all members begin at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<ShownRollout>,
    /// Expected end. Absent: the session does not run or is paused, too little is known, or it is one of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<ShownEstimate>,
    /// Session whose failed components this one retries.
    #[serde(skip_serializing_if = "String::is_empty")]
    retry_of: String,
    /// Time of the creation.
    start_time: String,
    /// Time of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
    /// Error of the session itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    /// Reason why the session waits.
    #[serde(skip_serializing_if = "String::is_empty")]
    waiting_for: String,
}

/// Expected end of a session, from how long nodes took in earlier sessions of its operation and template.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SessionEstimate")]
struct ShownEstimate {
    /// Time before which the session ends as likely as not. Absent: every node under way has taken longer than any before.
    #[serde(skip_serializing_if = "Option::is_none")]
    likely_end: Option<String>,
    /// Time before which it ends in nine of ten cases. Absent: as `likely_end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_end: Option<String>,
    /// Number of nodes of earlier sessions that the estimate rests on.
    learned_from: u64,
    /// Number of nodes that have taken longer than 99 of 100 before.
    slow_count: u32,
    /// The first ones of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow: Vec<String>,
}

impl From<SessionEstimate> for ShownEstimate {
    fn from(estimate: SessionEstimate) -> Self {
        Self {
            likely_end: estimate.likely_end.map(instant::text),
            late_end: estimate.late_end.map(instant::text),
            learned_from: estimate.learned_from,
            slow_count: estimate.slow,
            slow: estimate.slow_ids,
        }
    }
}

/// Wish of an operator that the session ends.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownCancellation {
    /// Reason that the operator gave; empty: none.
    reason: String,
}

/// Wish of an operator that nothing begins for the components of the session.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownPause {
    /// Client that paused the session.
    by: String,
    /// Time of the pause.
    since: String,
    /// Reason that the client gave; empty: none.
    reason: String,
}

impl ShownPause {
    fn new(pause: SessionPause) -> Self {
        let since = pause.since.map(instant::text).unwrap_or_default();
        Self { by: pause.by, since, reason: pause.reason }
    }
}

impl From<Session> for ShownSession {
    fn from(session: Session) -> Self {
        Self::single(session, None, None)
    }
}

impl ShownSession {
    /// Shows a session, with the standing of its rollout and its expected end where they are known.
    pub(super) fn single(
        session: Session,
        standing: Option<RolloutStanding>,
        estimate: Option<SessionEstimate>,
    ) -> Self {
        Self {
            operation: operation(session.operation()),
            progress: progress(session.progress()),
            result: result(session.result()),
            idle_reason: idle_reason(session.idle_reason()),
            members: session.components.len(),
            name: session.name,
            tenant: session.tenant,
            template_name: session.template_name,
            limit: session.limit,
            stage: session.stage,
            superseded_by: session.superseded_by,
            cancellation: session.cancellation.map(|one| ShownCancellation { reason: one.reason }),
            pause: session.pause.map(ShownPause::new),
            rollout: session.rollout.map(|rollout| ShownRollout::new(rollout, standing)),
            estimate: estimate.map(ShownEstimate::from),
            retry_of: session.retry_of.map(|one| one.name).unwrap_or_default(),
            start_time: session.start_time,
            end_time: session.end_time,
            error: session.error.unwrap_or_default(),
            waiting_for: session.waiting_for,
        }
    }
}

fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Unspecified => "",
        Operation::Boot => "boot",
        Operation::Reboot => "reboot",
        Operation::Shutdown => "shutdown",
    }
}

fn progress(progress: Progress) -> &'static str {
    match progress {
        Progress::Unspecified => "",
        Progress::Pending => "pending",
        Progress::Running => "running",
        Progress::Complete => "complete",
    }
}

fn result(result: SessionResult) -> Option<&'static str> {
    match result {
        SessionResult::Unspecified => None,
        SessionResult::Succeeded => Some("succeeded"),
        SessionResult::Partial => Some("partial"),
        SessionResult::Failed => Some("failed"),
        SessionResult::Cancelled => Some("cancelled"),
        SessionResult::Superseded => Some("superseded"),
        SessionResult::NothingToDo => Some("nothing_to_do"),
    }
}

fn idle_reason(reason: IdleReason) -> Option<&'static str> {
    match reason {
        IdleReason::Unspecified => None,
        IdleReason::NoNodes => Some("no_nodes"),
        IdleReason::NoComponents => Some("no_components"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::session::{
        BatchProgress, Cancellation, RetriedSession, RolloutBatch, RolloutPolicy, RolloutWait, SessionRollout,
    };

    use super::*;

    #[test]
    fn result_is_shown_beside_progress() {
        let running = Session {
            name: "s".into(),
            operation: Operation::Boot.into(),
            progress: Progress::Running.into(),
            components: vec!["n1".into()],
            ..Session::default()
        };
        let complete = Session { progress: Progress::Complete.into(), ..running.clone() };
        let pause = SessionPause {
            by: "alice".into(),
            since: Some(prost_types::Timestamp { seconds: 7, nanos: 0 }),
            reason: "power cap".into(),
            request_id: "r".into(),
        };
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let batch = |progress: BatchProgress, opened_at| RolloutBatch {
            components: vec!["n1".into()],
            progress: progress.into(),
            opened_at,
            met_at: None,
        };
        let rollout = SessionRollout {
            policy: Some(RolloutPolicy {
                batch_count: Some(1),
                soak: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
                ..RolloutPolicy::default()
            }),
            batches: vec![batch(BatchProgress::Met, at(7)), batch(BatchProgress::Closed, None)],
        };
        let standing = RolloutStanding {
            batch: 1,
            batches: 2,
            succeeded: 1,
            wait: RolloutWait::Soak.into(),
            until: at(67),
            text: "batch 1 of 2 is open".into(),
            ..RolloutStanding::default()
        };
        let rolling = Session { rollout: Some(rollout), ..running.clone() };
        let estimate = SessionEstimate {
            likely_end: at(90),
            late_end: None,
            learned_from: 512,
            slow_ids: vec!["n1".into()],
            slow: 1,
        };
        let single = ShownSession::single(rolling, Some(standing), Some(estimate));
        let mut rows = serde_json::to_string(&single).unwrap() + "\n";
        for session in [
            Session { cancellation: Some(Cancellation { reason: "wrong image".into() }), ..running.clone() },
            Session { pause: Some(pause), ..running.clone() },
            Session { result: SessionResult::Succeeded.into(), ..complete.clone() },
            Session {
                result: SessionResult::Superseded.into(),
                superseded_by: "later".into(),
                retry_of: Some(RetriedSession { name: "earlier".into(), id: "id".into() }),
                ..complete.clone()
            },
            Session {
                result: SessionResult::NothingToDo.into(),
                idle_reason: IdleReason::NoNodes.into(),
                ..complete
            },
        ] {
            rows += &serde_json::to_string(&ShownSession::from(session)).unwrap();
            rows += "\n";
        }
        expect![[r#"
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"running","rollout":{"policy":{"batch_count":1,"soak":60,"on_miss":"pause"},"batch":1,"batches":[{"members":1,"progress":"met","opened_at":"1970-01-01T00:00:07.000Z"},{"members":1,"progress":"closed"}],"standing":{"under_way":0,"succeeded":1,"failed":0,"in_flight":0,"waits_for":"soak","until":"1970-01-01T00:01:07.000Z","text":"batch 1 of 2 is open"}},"estimate":{"likely_end":"1970-01-01T00:01:30.000Z","learned_from":512,"slow_count":1,"slow":["n1"]},"start_time":""}
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"running","cancellation":{"reason":"wrong image"},"start_time":""}
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"running","pause":{"by":"alice","since":"1970-01-01T00:00:07.000Z","reason":"power cap"},"start_time":""}
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"complete","result":"succeeded","start_time":""}
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"complete","result":"superseded","superseded_by":"later","retry_of":"earlier","start_time":""}
            {"name":"s","operation":"boot","template_name":"","limit":"","stage":false,"members":1,"progress":"complete","result":"nothing_to_do","idle_reason":"no_nodes","start_time":""}
        "#]].assert_eq(&rows);
    }
}
