//! Rollouts of sessions: the policy that a client gives, and how far a rollout is.

use proto::session::{
    BatchProgress, RolloutBatch, RolloutGrouping, RolloutMissAction, RolloutPolicy, RolloutStanding,
    RolloutWait, SessionRollout,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reveille::instant;

/// Policy of a rollout: the members begin in batches, in the order in which people count their ids. At least one of the canary,
/// the batches and `max_in_flight` is given.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(default)]
pub(super) struct PolicyBody {
    /// Size of the first batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    canary_count: Option<u32>,
    /// Size of the first batch in percent of all members, instead of `canary_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    canary_percent: Option<u32>,
    /// Size of the other batches. Without this, `batch_percent` and `by` they are one batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_count: Option<u32>,
    /// Size of the other batches in percent of all members, instead of `batch_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_percent: Option<u32>,
    /// Places of which each is a batch, instead of a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<BatchPlace>,
    /// Most members of open batches that may be under way at a time; no batch is larger. Absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_in_flight: Option<u32>,
    /// Seconds between the success of a batch and the opening of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    soak: Option<i64>,
    /// Percent of a batch's members that have to succeed before the next one is opened; absent: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold_percent: Option<u32>,
    /// Consequence of a batch in which too many members fail; absent: `pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_miss: Option<MissAction>,
}

/// Kind of places that are batches.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum BatchPlace {
    Cabinet,
    Chassis,
}

/// Consequence of a batch in which too many members fail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum MissAction {
    Pause,
    Stop,
}

impl From<PolicyBody> for RolloutPolicy {
    fn from(body: PolicyBody) -> Self {
        let by = match body.by {
            None => RolloutGrouping::Unspecified,
            Some(BatchPlace::Cabinet) => RolloutGrouping::Cabinet,
            Some(BatchPlace::Chassis) => RolloutGrouping::Chassis,
        };
        let on_miss = match body.on_miss {
            None | Some(MissAction::Pause) => RolloutMissAction::Pause,
            Some(MissAction::Stop) => RolloutMissAction::Stop,
        };
        Self {
            canary_count: body.canary_count,
            canary_percent: body.canary_percent,
            batch_count: body.batch_count,
            batch_percent: body.batch_percent,
            by: by.into(),
            max_in_flight: body.max_in_flight,
            soak: body.soak.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
            threshold_percent: body.threshold_percent,
            on_miss: on_miss.into(),
        }
    }
}

impl From<RolloutPolicy> for PolicyBody {
    fn from(policy: RolloutPolicy) -> Self {
        let by = match policy.by() {
            RolloutGrouping::Unspecified => None,
            RolloutGrouping::Cabinet => Some(BatchPlace::Cabinet),
            RolloutGrouping::Chassis => Some(BatchPlace::Chassis),
        };
        let on_miss = match policy.on_miss() {
            RolloutMissAction::Unspecified | RolloutMissAction::Pause => MissAction::Pause,
            RolloutMissAction::Stop => MissAction::Stop,
        };
        Self {
            canary_count: policy.canary_count,
            canary_percent: policy.canary_percent,
            batch_count: policy.batch_count,
            batch_percent: policy.batch_percent,
            by,
            max_in_flight: policy.max_in_flight,
            soak: policy.soak.map(|soak| soak.seconds),
            threshold_percent: policy.threshold_percent,
            on_miss: Some(on_miss),
        }
    }
}

/// Rollout of a session, as far as it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownRollout {
    /// Policy.
    policy: PolicyBody,
    /// Number of the latest open batch, from 1; 0: none is open.
    batch: usize,
    /// Batches in their order; empty: the members are not selected yet.
    batches: Vec<ShownBatch>,
    /// Standing of the rollout now. Absent: the session is complete, or is one of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<ShownStanding>,
}

/// Batch of a rollout.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownBatch {
    /// Number of members.
    members: usize,
    /// Progress: `closed`, `open`, `met`, `missed`, or `waived` if a client resumed the session after a miss.
    progress: &'static str,
    /// Time of the opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_at: Option<String>,
}

/// Standing of a rollout: the members of the latest open batch, and what the next one waits for.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownStanding {
    /// Members of the batch that are under way.
    under_way: u32,
    /// Members of the batch that are as wanted.
    succeeded: u32,
    /// Members of the batch that failed.
    failed: u32,
    /// Members of all open batches that are under way.
    in_flight: u32,
    /// Wait: `outcomes` of members, `soak`, room `in_flight`, or the `decision` of a person. Absent: nothing is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// End of the soak.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Standing in words.
    text: String,
}

impl ShownRollout {
    /// Shows a rollout, with its standing where it is known.
    pub(super) fn new(rollout: SessionRollout, standing: Option<RolloutStanding>) -> Self {
        let is_open = |batch: &&RolloutBatch| batch.opened_at.is_some();
        Self {
            policy: rollout.policy.unwrap_or_default().into(),
            batch: rollout.batches.iter().filter(is_open).count(),
            batches: rollout.batches.into_iter().map(ShownBatch::from).collect(),
            standing: standing.map(ShownStanding::from),
        }
    }
}

impl From<RolloutBatch> for ShownBatch {
    fn from(batch: RolloutBatch) -> Self {
        let progress = match batch.progress() {
            BatchProgress::Unspecified | BatchProgress::Closed => "closed",
            BatchProgress::Open => "open",
            BatchProgress::Met => "met",
            BatchProgress::Missed => "missed",
            BatchProgress::Waived => "waived",
        };
        Self { members: batch.components.len(), progress, opened_at: batch.opened_at.map(instant::text) }
    }
}

impl From<RolloutStanding> for ShownStanding {
    fn from(standing: RolloutStanding) -> Self {
        let waits_for = match standing.wait() {
            RolloutWait::Unspecified => None,
            RolloutWait::Outcomes => Some("outcomes"),
            RolloutWait::Soak => Some("soak"),
            RolloutWait::InFlight => Some("in_flight"),
            RolloutWait::Decision => Some("decision"),
        };
        Self {
            under_way: standing.under_way,
            succeeded: standing.succeeded,
            failed: standing.failed,
            in_flight: standing.in_flight,
            waits_for,
            until: standing.until.map(instant::text),
            text: standing.text,
        }
    }
}
