//! Learned durations, and the estimates that rest on them.

use chassis::mesh::time;
use domain::{
    boot::session::estimate::SessionEstimate,
    core::{durations::DurationProfile, id::Tenant, invalid::Invalid},
};
use proto::session as wire;

use super::session::{operation_from_wire, operation_to_wire};
use crate::durations::LearnedDurations;

/// Reads durations from storage.
///
/// # Errors
/// Names the field that cannot be read.
pub(crate) fn from_wire(durations: wire::SessionDurations) -> Result<LearnedDurations, Invalid> {
    let operation = operation_from_wire(durations.operation())?;
    let tenant = Tenant::parse(&durations.tenant)?;
    Ok(LearnedDurations {
        operation,
        tenant,
        template_name: durations.template_name,
        profile: DurationProfile::restored(durations.counts),
        learned_at: durations.learned_at.map(time::from_wire).unwrap_or_default(),
        revision: durations.revision,
    })
}

/// Converts durations for storage.
pub(crate) fn to_wire(learned: &LearnedDurations) -> wire::SessionDurations {
    wire::SessionDurations {
        operation: operation_to_wire(learned.operation).into(),
        tenant: learned.tenant.as_str().to_owned(),
        template_name: learned.template_name.clone(),
        counts: learned.profile.counts().to_vec(),
        learned_at: Some(time::to_wire(learned.learned_at)),
        revision: learned.revision,
    }
}

/// Converts an estimate for an answer.
pub(crate) fn estimate_to_wire(estimate: SessionEstimate) -> wire::SessionEstimate {
    wire::SessionEstimate {
        likely_end: estimate.likely_end.map(time::to_wire),
        late_end: estimate.late_end.map(time::to_wire),
        learned_from: estimate.learned_from,
        slow_ids: estimate.slow.iter().map(|id| id.as_str().to_owned()).collect(),
        slow: u32::try_from(estimate.slow_count).unwrap_or(u32::MAX),
    }
}
