//! Hooks on the data of a write (BOS reference 3.3).

use std::sync::Arc;

use crate::{
    boot::component::{
        ActualState, ComponentPatch, DesiredState, EventStats, status::ComponentStatus, write::KnownToken,
    },
    core::time::Timestamp,
};

/// Runs the five hooks of BOS reference 3.3, in their order: each works on the results of the ones before it.
pub(crate) fn apply_hooks(
    incoming: &mut ComponentPatch,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    now: Timestamp,
) {
    look_up_token(incoming, tokens);
    stamp(incoming, now);
    hold(incoming);
    detach(incoming);
    reset_stats(incoming);
}

/// Hook 1: a known token determines the reported artifacts, whatever else was sent. An unknown one determines nothing,
/// and because hook 2 then leaves the time stamp unset the old report keeps ageing.
fn look_up_token(incoming: &mut ComponentPatch, tokens: impl Fn(&str) -> Option<KnownToken>) {
    let Some(actual) = &mut incoming.actual_state else { return };
    let Some(token) = actual.bss_token.as_deref().filter(|token| !token.is_empty()) else { return };
    if let Some(known) = tokens(token) {
        actual.boot_artifacts = Some(known.boot_artifacts);
    }
}

/// Hook 2: sets time stamps, except for a state that consists of a token only.
fn stamp(incoming: &mut ComponentPatch, now: Timestamp) {
    if let Some(actual) = &mut incoming.actual_state {
        let token_only =
            matches!(actual, ActualState { boot_artifacts: None, bss_token: Some(_), last_updated: None });
        actual.last_updated = (!token_only).then_some(now);
    }
    if let Some(desired) = &mut incoming.desired_state {
        let token_only =
            !sets_what_to_run(desired) && desired.bss_token.is_some() && desired.last_updated.is_none();
        desired.last_updated = (!token_only).then_some(now);
    }
    if let Some(staged) = incoming.staged_state.as_mut().map(Arc::make_mut) {
        staged.last_updated = Some(now);
    }
    if let Some(last) = &mut incoming.last_action {
        last.last_updated = Some(now);
    }
}

/// Hook 3: holds an enabled component until fresh evidence arrives.
fn hold(incoming: &mut ComponentPatch) {
    if incoming.enables() {
        let status = incoming.status.get_or_insert_default();
        status.status_override = Some(ComponentStatus::OnHold.word().into());
    }
}

/// Hook 4: removes a node from its session if its desired state is written without a session.
fn detach(incoming: &mut ComponentPatch) {
    if incoming.desired_state.is_some() && incoming.session_name().is_empty() {
        incoming.session = Some(Arc::default());
    }
}

/// Hook 5: zeroes the counters of attempts, which belong to one wanted state.
fn reset_stats(incoming: &mut ComponentPatch) {
    if incoming.desired_state.as_ref().is_some_and(sets_what_to_run) {
        incoming.event_stats = Some(EventStats::zeros());
    }
}

/// Returns whether the write changes artifacts or configuration.
pub(super) fn sets_what_to_run(desired: &DesiredState) -> bool {
    desired.boot_artifacts.is_some() || desired.configuration.is_some()
}
