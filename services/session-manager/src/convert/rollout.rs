//! Rollouts of sessions.

use chassis::mesh::time;
use domain::{
    boot::session::{NodeRolloutPolicy, SessionRollout, rollout::RolloutStanding},
    core::{
        id::ComponentId,
        invalid::Invalid,
        rollout::{
            BatchProgress, RolloutStep, RolloutWait,
            policy::{BatchCut, BatchShare, MissAction, PolicyRequest, RolloutPolicy},
        },
        time::Timestamp,
        xname::NodePlace,
    },
};
use proto::session as wire;

/// Reads the policy that a client gives, or a stored one.
///
/// # Errors
/// Names the first field that is out of its bounds, or excludes another one.
pub(super) fn policy_from_wire(policy: wire::RolloutPolicy) -> Result<NodeRolloutPolicy, Invalid> {
    let by = match policy.by() {
        wire::RolloutGrouping::Unspecified => None,
        wire::RolloutGrouping::Cabinet => Some(NodePlace::Cabinet),
        wire::RolloutGrouping::Chassis => Some(NodePlace::Chassis),
    };
    let on_miss = match policy.on_miss() {
        wire::RolloutMissAction::Unspecified | wire::RolloutMissAction::Pause => MissAction::Pause,
        wire::RolloutMissAction::Stop => MissAction::Stop,
    };
    let millis =
        |seconds: i64, nanos: i32| seconds.saturating_mul(1_000).saturating_add(i64::from(nanos / 1_000_000));
    let request = PolicyRequest {
        canary_count: policy.canary_count,
        canary_percent: policy.canary_percent,
        batch_count: policy.batch_count,
        batch_percent: policy.batch_percent,
        by,
        max_in_flight: policy.max_in_flight,
        soak_millis: policy.soak.map(|soak| millis(soak.seconds, soak.nanos)),
        threshold_percent: policy.threshold_percent,
        on_miss,
    };
    RolloutPolicy::parse(request).map_err(|invalid| invalid.within("rollout"))
}

fn policy_to_wire(policy: &NodeRolloutPolicy) -> wire::RolloutPolicy {
    let (canary_count, canary_percent) = share_to_wire(policy.canary);
    let (share, by) = match policy.cut {
        BatchCut::Whole => (None, wire::RolloutGrouping::Unspecified),
        BatchCut::Share(share) => (Some(share), wire::RolloutGrouping::Unspecified),
        BatchCut::Group(NodePlace::Cabinet) => (None, wire::RolloutGrouping::Cabinet),
        BatchCut::Group(NodePlace::Chassis) => (None, wire::RolloutGrouping::Chassis),
    };
    let (batch_count, batch_percent) = share_to_wire(share);
    let on_miss = match policy.on_miss {
        MissAction::Pause => wire::RolloutMissAction::Pause,
        MissAction::Stop => wire::RolloutMissAction::Stop,
    };
    wire::RolloutPolicy {
        canary_count,
        canary_percent,
        batch_count,
        batch_percent,
        by: by.into(),
        max_in_flight: policy.most_in_flight.map(Into::into),
        soak: Some(policy.soak.try_into().expect("a soak of a valid policy fits")),
        threshold_percent: Some(policy.threshold),
        on_miss: on_miss.into(),
    }
}

/// Converts a share to a count and a percentage, of which one is set.
fn share_to_wire(share: Option<BatchShare>) -> (Option<u32>, Option<u32>) {
    match share {
        None => (None, None),
        Some(BatchShare::Count(count)) => (Some(count.into()), None),
        Some(BatchShare::Percent(percent)) => (None, Some(percent.into())),
    }
}

/// Reads a stored rollout.
///
/// # Errors
/// Names the field that cannot be read.
pub(super) fn rollout_from_wire(rollout: wire::SessionRollout) -> Result<SessionRollout, Invalid> {
    let batches = rollout.batches.into_iter().map(|batch| {
        let progress = progress_from_wire(&batch);
        let members = batch.components.iter().map(|id| ComponentId::parse(id)).collect::<Result<_, _>>()?;
        Ok((members, progress))
    });
    let batches = batches.collect::<Result<_, Invalid>>()?;
    Ok(SessionRollout::restored(policy_from_wire(rollout.policy.unwrap_or_default())?, batches))
}

/// Converts a rollout for an answer or for storage.
pub(super) fn rollout_to_wire(rollout: &SessionRollout) -> wire::SessionRollout {
    let batches = rollout.batches().map(|(members, progress)| wire::RolloutBatch {
        components: members.iter().map(|id| id.as_str().to_owned()).collect(),
        progress: progress_to_wire(progress).into(),
        opened_at: progress.opened_at().map(time::to_wire),
        met_at: match progress {
            BatchProgress::Met { at, .. } => Some(time::to_wire(at)),
            BatchProgress::Closed
            | BatchProgress::Open { .. }
            | BatchProgress::Missed { .. }
            | BatchProgress::Waived { .. } => None,
        },
    });
    wire::SessionRollout { policy: Some(policy_to_wire(rollout.policy())), batches: batches.collect() }
}

fn progress_from_wire(batch: &wire::RolloutBatch) -> BatchProgress {
    let at = |time: Option<_>| -> Timestamp { time.map(time::from_wire).unwrap_or_default() };
    let since = at(batch.opened_at);
    match batch.progress() {
        wire::BatchProgress::Unspecified | wire::BatchProgress::Closed => BatchProgress::Closed,
        wire::BatchProgress::Open => BatchProgress::Open { since },
        wire::BatchProgress::Met => BatchProgress::Met { since, at: at(batch.met_at) },
        wire::BatchProgress::Missed => BatchProgress::Missed { since },
        wire::BatchProgress::Waived => BatchProgress::Waived { since },
    }
}

fn progress_to_wire(progress: BatchProgress) -> wire::BatchProgress {
    match progress {
        BatchProgress::Closed => wire::BatchProgress::Closed,
        BatchProgress::Open { .. } => wire::BatchProgress::Open,
        BatchProgress::Met { .. } => wire::BatchProgress::Met,
        BatchProgress::Missed { .. } => wire::BatchProgress::Missed,
        BatchProgress::Waived { .. } => wire::BatchProgress::Waived,
    }
}

/// Converts the standing of a rollout for an answer.
pub(crate) fn standing_to_wire(standing: &RolloutStanding) -> wire::RolloutStanding {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (batch, tally) = match &standing.current {
        None => (0, Default::default()),
        Some((number, view)) => (count(number + 1), view.tally),
    };
    let (wait, until) = match standing.step {
        RolloutStep::Wait(wait) => (wait_to_wire(wait), wait.until()),
        RolloutStep::Open(_)
        | RolloutStep::Meet(_)
        | RolloutStep::Miss(_)
        | RolloutStep::Stopped
        | RolloutStep::Done => (wire::RolloutWait::Unspecified, None),
    };
    wire::RolloutStanding {
        batch,
        batches: count(standing.batches),
        under_way: count(tally.under_way),
        succeeded: count(tally.succeeded),
        failed: count(tally.failed),
        in_flight: count(standing.in_flight),
        wait: wait.into(),
        until: until.map(time::to_wire),
        text: standing.text(),
    }
}

fn wait_to_wire(wait: RolloutWait) -> wire::RolloutWait {
    match wait {
        RolloutWait::Outcomes { .. } => wire::RolloutWait::Outcomes,
        RolloutWait::Soak { .. } => wire::RolloutWait::Soak,
        RolloutWait::InFlight { .. } => wire::RolloutWait::InFlight,
        RolloutWait::Decision { .. } => wire::RolloutWait::Decision,
    }
}
