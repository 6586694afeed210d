//! The part of the gateway's answers that tables show. Absent members are empty, so that gateways of other releases, and
//! BOS, can be asked too.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Deserializer};

use crate::table::Tone;

/// Component.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ComponentRecord {
    pub id: String,
    pub enabled: bool,
    #[serde(deserialize_with = "text")]
    pub error: String,
    #[serde(deserialize_with = "text")]
    pub session: String,
    pub status: ComponentStatus,
    pub last_action: LastAction,
    pub desired_state: DesiredState,
    pub event_stats: BTreeMap<String, u32>,
}

/// System outside the mesh.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PeerRecord {
    pub name: String,
    pub address: String,
    pub state: String,
    pub since: String,
    pub error: String,
}

/// Status of a component.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ComponentStatus {
    pub status: String,
    pub phase: String,
}

/// Last action on a component.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LastAction {
    pub action: String,
    pub last_updated: String,
}

/// State in which a component should be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DesiredState {
    pub configuration: String,
    pub boot_artifacts: BootArtifacts,
}

/// Artifacts of a boot.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BootArtifacts {
    pub kernel: String,
}

/// Session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionRecord {
    pub name: String,
    #[serde(deserialize_with = "text")]
    pub tenant: String,
    pub operation: String,
    pub template_name: String,
    #[serde(deserialize_with = "text")]
    pub limit: String,
    pub stage: bool,
    #[serde(deserialize_with = "text")]
    pub components: String,
    pub status: SessionProgress,
    /// Progress that BOS does not show, such as `paused, batch 2/5`; empty: none, or not read.
    #[serde(skip)]
    pub detail: String,
}

/// Result of a session, in the words of the service, and the progress that BOS does not show. BOS, and gateways of earlier
/// releases, have none of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionEnd {
    pub name: String,
    pub tenant: String,
    pub result: String,
    pub pause: Option<SessionPause>,
    pub rollout: Option<SessionRollout>,
    pub estimate: Option<SessionEstimate>,
}

/// Expected end of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionEstimate {
    pub likely_end: String,
    pub late_end: String,
    pub slow: Vec<String>,
    pub slow_count: usize,
}

impl SessionEstimate {
    /// Returns the expectation in words, as seen at `now`.
    pub(crate) fn text(&self, now: DateTime<Utc>) -> String {
        let left =
            |end: &str| Some(span((DateTime::parse_from_rfc3339(end).ok()?.to_utc() - now).num_seconds()));
        let mut text = match left(&self.likely_end).zip(left(&self.late_end)) {
            Some((likely, late)) if likely == late => format!("likely done in {likely}"),
            Some((likely, late)) => format!("likely done in {likely}, late in {late}"),
            None => "takes longer than before".to_owned(),
        };
        if let Some(first) = self.slow.first() {
            let more = if self.slow_count > 1 {
                format!(" and {} more", self.slow_count - 1)
            } else {
                String::new()
            };
            text += &format!("; slow: {first}{more}");
        }
        text
    }
}

/// Pause of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionPause {
    pub by: String,
    pub reason: String,
}

/// Rollout of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionRollout {
    pub batch: usize,
    pub batches: Vec<serde::de::IgnoredAny>,
    pub standing: Option<RolloutStanding>,
}

/// Standing of a rollout.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RolloutStanding {
    pub text: String,
}

/// Progress of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionProgress {
    pub status: String,
    pub start_time: String,
    #[serde(deserialize_with = "text")]
    pub end_time: String,
    #[serde(deserialize_with = "text")]
    pub error: String,
    #[serde(deserialize_with = "text")]
    pub waiting_for: String,
}

/// Status of the nodes of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionStatus {
    pub managed_components_count: u32,
    pub percent_failed: f64,
    pub percent_staged: f64,
    pub percent_successful: f64,
    pub phases: PhaseShares,
    pub error_summary: BTreeMap<String, ErrorSummary>,
}

/// Shares of nodes by phase, in percent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PhaseShares {
    pub percent_configuring: f64,
    pub percent_powering_off: f64,
    pub percent_powering_on: f64,
}

/// Nodes with the same error.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorSummary {
    pub count: u32,
    pub list: String,
}

/// Session template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TemplateRecord {
    pub name: String,
    #[serde(deserialize_with = "text")]
    pub tenant: String,
    #[serde(deserialize_with = "text")]
    pub description: String,
    pub boot_sets: BTreeMap<String, BootSet>,
}

/// Nodes of a template and the state in which they should be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BootSet {
    #[serde(deserialize_with = "text")]
    pub path: String,
    pub node_list: Option<Vec<String>>,
    pub node_groups: Option<Vec<String>>,
    pub node_roles_groups: Option<Vec<String>>,
}

/// Event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventRecord {
    pub time: String,
    pub resource: String,
    pub name: String,
    pub kind: String,
    pub reason: String,
    pub text: String,
    pub actor: String,
    pub request_id: String,
    pub details: BTreeMap<String, String>,
}

/// Entry of the timeline.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EntryRecord {
    #[serde(flatten)]
    pub event: EventRecord,
    pub session: Option<SessionOrigin>,
}

/// Session behind an entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionOrigin {
    pub name: String,
    pub operation: String,
    pub actor: String,
}

/// Explanation of a node or a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExplanationRecord {
    pub sentence: String,
    pub outcome: String,
    pub next_step: NextStep,
    pub last_stage: String,
    pub missing_stage: String,
    pub causes: Vec<CauseRecord>,
    pub evidence: Vec<EvidenceRecord>,
    pub unanswered: Vec<String>,
    pub explained_at: String,
}

/// Next step of an operator.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NextStep {
    pub text: String,
    pub command: String,
}

/// Cause of an explanation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CauseRecord {
    pub reason: String,
    pub class: String,
    pub sentence: String,
    pub since: String,
    pub until: String,
    pub attempt: Option<AttemptRecord>,
    pub peer: String,
    pub members: Vec<String>,
    pub member_count: u32,
}

/// Number of an attempt; most is 0 if it is unknown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AttemptRecord {
    pub number: u32,
    pub most: u32,
}

/// Evidence of an explanation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EvidenceRecord {
    pub source: String,
    pub verdict: String,
    pub content: String,
    pub age_seconds: Option<i64>,
}

/// Power transition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TransitionRecord {
    pub id: String,
    pub upstream_id: String,
    pub action: String,
    pub delivery: String,
    pub error: String,
    pub created_at: String,
    pub abandoned_at: String,
    pub members: Vec<TransitionMember>,
}

/// Node of a power transition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TransitionMember {
    pub id: String,
    pub error: String,
}

/// Reads a text that may be `null`.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl SessionEnd {
    /// Returns the progress that BOS does not show, such as `paused, batch 2/5`.
    pub(crate) fn detail(&self) -> String {
        let paused = self.pause.as_ref().map(|_| "paused".to_owned());
        let rollout = self.rollout.as_ref().filter(|rollout| !rollout.batches.is_empty());
        let batch = rollout.map(|rollout| format!("batch {}/{}", rollout.batch, rollout.batches.len()));
        paused.into_iter().chain(batch).collect::<Vec<_>>().join(", ")
    }
}

impl ComponentRecord {
    pub(crate) fn tone(&self) -> Tone {
        match self.status.status.as_str() {
            "stable" => Tone::Good,
            "failed" => Tone::Bad,
            _ => Tone::Busy,
        }
    }
}

impl BootSet {
    /// Returns the nodes, groups and roles.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.node_list, &self.node_groups, &self.node_roles_groups];
        lists.into_iter().flatten().flatten().map(String::as_str)
    }
}

/// Returns how long ago a time of BOS was, such as `5m`; empty for a text that is no time.
pub(crate) fn age(time: &str, now: DateTime<Utc>) -> String {
    let Ok(time) = NaiveDateTime::parse_from_str(time.trim_end_matches('Z'), "%Y-%m-%dT%H:%M:%S%.f") else {
        return String::new();
    };
    span((now - time.and_utc()).num_seconds())
}

/// Returns a number of seconds as people read it.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectation_has_its_spread_and_the_slow_nodes() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        for (document, expected) in [
            (
                r#"{"likely_end": "2026-01-02T00:04:10.000Z", "late_end": "2026-01-02T00:07:00.000Z"}"#,
                "likely done in 4m, late in 7m",
            ),
            (
                r#"{"likely_end": "2026-01-02T00:00:09Z", "late_end": "2026-01-02T00:00:09Z", "slow": ["x1", "x2"], "slow_count": 7}"#,
                "likely done in 9s; slow: x1 and 6 more",
            ),
            (r#"{"slow": ["x1"], "slow_count": 1}"#, "takes longer than before; slow: x1"),
        ] {
            let estimate: SessionEstimate = serde_json::from_str(document).unwrap();
            assert_eq!(estimate.text(now), expected);
        }
    }

    #[test]
    fn ages_are_short() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-01-02T00:00:00", "0s"),
            ("2026-01-01T23:58:01", "119s"),
            ("2026-01-01T23:58:00.5Z", "119s"),
            ("2026-01-01T23:00:00", "60m"),
            ("2026-01-01T00:00:00Z", "24h"),
            ("2025-12-01T00:00:00", "32d"),
            ("2026-01-02T00:00:09", "0s"),
            ("", ""),
            ("soon", ""),
        ] {
            assert_eq!(age(time, now), expected, "{time}");
        }
    }

    #[test]
    fn sessions_tell_their_pause_and_batch() {
        for (text, expected) in [
            ("{}", ""),
            (r#"{"pause": {"by": "alice"}}"#, "paused"),
            (r#"{"rollout": {"batch": 0, "batches": []}}"#, ""),
            (r#"{"rollout": {"batch": 2, "batches": [{}, {}, {}]}}"#, "batch 2/3"),
            (r#"{"pause": {}, "rollout": {"batch": 1, "batches": [{}]}}"#, "paused, batch 1/1"),
        ] {
            assert_eq!(serde_json::from_str::<SessionEnd>(text).unwrap().detail(), expected, "{text}");
        }
    }

    #[test]
    fn records_need_no_member() {
        let session =
            r#"{"name": "s", "limit": null, "new": 1, "status": {"error": null, "end_time": null}}"#;
        let session: SessionRecord = serde_json::from_str(session).unwrap();
        assert_eq!((&*session.name, &*session.limit, &*session.status.error), ("s", "", ""));
        assert_eq!(serde_json::from_str::<ComponentRecord>("{}").unwrap().id, "");
    }
}
