//! Memory of a shutdown, which counts only for the generation in which the node was asked.
//!
//! A component that is enabled again, or that gets another wish, keeps its phase, its last action and its attempts, as
//! in BOS. The node may have run for days since that shutdown, so nothing follows from it: not its time, after which a
//! node is forced off, and not that its configuration was read before.

use crate::boot::component::{
    Action, Component, EventStats,
    status::{ComponentProgress, ComponentStatus, computed_progress, computed_status},
};

/// Returns whether the node was asked to shut down, or its power was cut, in the generation of `component`.
pub(crate) fn was_asked_to_shut_down(component: &Component) -> bool {
    let actions = [Action::PoweringOffGracefully, Action::PoweringOffForcefully];
    !component.power.acted_before && actions.into_iter().any(|action| component.attempts(action) > 0)
}

/// Returns whether a shutdown is on record as called, in whichever generation, and the component was not given up.
pub(crate) fn is_shutdown_called(component: &Component) -> bool {
    let is_called = match computed_progress(component) {
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled => true,
        ComponentProgress::PowerOnPending
        | ComponentProgress::PowerOnCalled
        | ComponentProgress::PowerOffPending
        | ComponentProgress::Configuring
        | ComponentProgress::Stable => false,
    };
    is_called && computed_status(component) != ComponentStatus::Failed
}

/// Zeroes the attempts at a shutdown, so that a new wish has all of them. Those at power-ons stay, as in BOS.
pub(crate) fn forget_shutdown_attempts(component: &mut Component) {
    let power_on_attempts = Some(component.attempts(Action::PoweringOn));
    component.power.event_stats = Some(EventStats { power_on_attempts, ..EventStats::zeros() });
}
