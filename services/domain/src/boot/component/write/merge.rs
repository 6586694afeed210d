//! Merge of the data of a write into a record (BOS reference 3.4).

use std::sync::Arc;

use crate::{
    boot::component::{
        ActualState, Component, ComponentPatch, DesiredState, EventStats, LastAction, StagedState, Status,
        artifacts::BootArtifacts,
    },
    core::{shared_part::SharedPart, trouble::TroubleKind},
};

/// Merges member by member; members that the patch lacks stay. `error_kind` is the kind of the error in the patch.
pub(super) fn merge(stored: &mut Component, patch: ComponentPatch, error_kind: TroubleKind) {
    let Component { wish, evaluation, power, reported, .. } = stored;
    SharedPart::update(wish, |wish| {
        merge_part(&mut wish.desired_state, patch.desired_state, merge_desired);
        merge_part(&mut wish.staged_state, patch.staged_state, merge_staged);
        replace(&mut wish.enabled, patch.enabled);
        replace(&mut wish.session, patch.session);
        replace(&mut wish.retry_policy, patch.retry_policy);
    });
    SharedPart::update(evaluation, |evaluation| {
        merge_part(&mut evaluation.status, patch.status, merge_status);
        if patch.error.is_some() {
            (evaluation.error, evaluation.error_kind) = (patch.error, error_kind);
        }
    });
    SharedPart::update(power, |power| {
        merge_part(&mut power.last_action, patch.last_action, merge_last_action);
        merge_part(&mut power.event_stats, patch.event_stats, merge_stats);
    });
    merge_part(&mut reported.actual_state, patch.actual_state, merge_actual);
}

/// Merges a part; one that is missing on one side is taken from the other unchanged.
pub(crate) fn merge_part<T>(stored: &mut Option<T>, patch: Option<T>, merge: impl FnOnce(&mut T, T)) {
    match (stored.as_mut(), patch) {
        (Some(stored), Some(patch)) => merge(stored, patch),
        (None, Some(patch)) => *stored = Some(patch),
        (_, None) => {}
    }
}

fn replace<T>(stored: &mut Option<T>, patch: Option<T>) {
    if patch.is_some() {
        *stored = patch;
    }
}

pub(crate) fn merge_actual(stored: &mut ActualState, patch: ActualState) {
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.bss_token, patch.bss_token);
    replace(&mut stored.last_updated, patch.last_updated);
}

pub(crate) fn merge_desired(stored: &mut DesiredState, patch: DesiredState) {
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.configuration, patch.configuration);
    replace(&mut stored.bss_token, patch.bss_token);
    replace(&mut stored.last_updated, patch.last_updated);
}

pub(crate) fn merge_staged(stored: &mut Arc<StagedState>, patch: Arc<StagedState>) {
    let (stored, patch) = (Arc::make_mut(stored), Arc::unwrap_or_clone(patch));
    merge_part(&mut stored.boot_artifacts, patch.boot_artifacts, merge_artifacts);
    replace(&mut stored.configuration, patch.configuration);
    replace(&mut stored.session, patch.session);
    replace(&mut stored.last_updated, patch.last_updated);
}

/// Merges artifacts; a patch without a time stamp keeps the old one, as in BOS. If the merge changes nothing, the
/// shared `Arc` is kept.
fn merge_artifacts(stored: &mut Arc<BootArtifacts>, patch: Arc<BootArtifacts>) {
    let merged = BootArtifacts {
        kernel: patch.kernel.clone().or_else(|| stored.kernel.clone()),
        kernel_parameters: patch.kernel_parameters.clone().or_else(|| stored.kernel_parameters.clone()),
        initrd: patch.initrd.clone().or_else(|| stored.initrd.clone()),
        timestamp: patch.timestamp.or(stored.timestamp),
    };
    if merged == *patch {
        *stored = patch;
    } else if merged != **stored {
        *stored = Arc::new(merged);
    }
}

fn merge_last_action(stored: &mut LastAction, patch: LastAction) {
    replace(&mut stored.action, patch.action);
    replace(&mut stored.failed, patch.failed);
    replace(&mut stored.last_updated, patch.last_updated);
}

fn merge_stats(stored: &mut EventStats, patch: EventStats) {
    replace(&mut stored.power_on_attempts, patch.power_on_attempts);
    replace(&mut stored.power_off_graceful_attempts, patch.power_off_graceful_attempts);
    replace(&mut stored.power_off_forceful_attempts, patch.power_off_forceful_attempts);
}

fn merge_status(stored: &mut Status, patch: Status) {
    replace(&mut stored.phase, patch.phase);
    replace(&mut stored.status_override, patch.status_override);
}
