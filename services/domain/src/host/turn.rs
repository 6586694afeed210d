//! Turn of a host: the step that waits for a slot, and the claim that a decision leaves behind (host reference 1.3
//! step 1, 1.18).

use crate::host::{
    detach,
    evidence::DriverSight,
    pass::{Flow, HostPass, PassEnd},
    record::{Host, progress::SlotClaim, reason::WaitReason, state::HostState, status::OperationalStatus},
};

/// Waits for a slot where the state needs one, and takes a host back from its wait once it has one.
pub(crate) fn check(pass: &mut HostPass<'_>) -> Flow {
    let is_delayed = pass.host.status.operational == OperationalStatus::Delayed;
    if needs_none_any_more(&pass.host) {
        if is_delayed {
            pass.reset_operational();
        }
        return Ok(());
    }
    if is_delayed && pass.has_slot() {
        return Err(take(pass));
    }
    if is_delayed || (works(&pass.host) && !pass.has_slot()) {
        return Err(pass.delay(pass.state()));
    }
    Ok(())
}

/// Takes the slot that the host waited for. A failed round of provisioning keeps its error, because the row that ends
/// the round has yet to count it.
fn take(pass: &mut HostPass<'_>) -> PassEnd {
    pass.has_regained_slot = true;
    pass.host.status.operational = OperationalStatus::Ok;
    if pass.state() == HostState::Provisioning {
        pass.reset_operational()
    } else {
        pass.clear_error()
    }
    pass.again()
}

/// Returns whether the host is in a state whose operation needs a slot. A failed round of provisioning does nothing
/// more but end.
fn works(host: &Host) -> bool {
    let has_failed = host.state() == HostState::Provisioning && host.status.error.is_some();
    host.state().needs_slot() && !has_failed
}

/// Returns whether a deletion or detachment takes the host out of the way of the operation that needs a slot.
fn needs_none_any_more(host: &Host) -> bool {
    let removes_a_system =
        matches!(host.state(), HostState::Provisioning | HostState::Provisioned | HostState::Deprovisioning);
    let is_deleted = host.is_deleted() && !detach::holds_deletion(host) && !removes_a_system;
    is_deleted || detach::takes_effect(host)
}

/// Returns the claim on a slot that the decision leaves behind.
pub(crate) fn claim(pass: &HostPass<'_>, reason: WaitReason) -> SlotClaim {
    let earlier = pass.host.progress.slot;
    if reason == WaitReason::Paused {
        return if earlier == SlotClaim::Held { earlier } else { SlotClaim::Nothing };
    }
    if reason == WaitReason::Gone || pass.host.progress.boots_without_slot {
        return SlotClaim::Nothing;
    }
    if pass.host.status.operational == OperationalStatus::Delayed && !is_under_way(pass) {
        return wait_in_queue(pass, reason);
    }
    if pass.has_regained_slot || is_under_way(pass) { SlotClaim::Held } else { SlotClaim::Nothing }
}

/// Keeps the place in the queue. A host that waits for something else as well must not hold up those behind it.
fn wait_in_queue(pass: &HostPass<'_>, reason: WaitReason) -> SlotClaim {
    let since = match pass.host.progress.slot {
        SlotClaim::Waiting { since } | SlotClaim::Aside { since } => since,
        SlotClaim::Nothing | SlotClaim::Held => pass.moment.now,
    };
    let can_take = reason == WaitReason::AwaitingSlot && pass.host.progress.rest.is_none();
    if can_take { SlotClaim::Waiting { since } } else { SlotClaim::Aside { since } }
}

/// Returns whether the backend may be at work on the host, or is about to be. A host that rests after a failure leaves
/// its slot to others.
fn is_under_way(pass: &HostPass<'_>) -> bool {
    let progress = &pass.host.progress;
    let is_resting = progress.rest.is_some();
    let is_asked = pass.operation().is_some_and(|operation| operation.needs_slot());
    if progress.slot != SlotClaim::Held && !pass.has_slot() {
        return false;
    }
    if (is_asked && !(is_resting && is_idle(pass))) || progress.interrupted_at.is_some() {
        return true;
    }
    let is_delayed = pass.host.status.operational == OperationalStatus::Delayed;
    works(&pass.host) && !is_resting && !is_delayed && pass.has_slot()
}

/// Returns whether the backend has stopped to work on the host, by a look from after its last report.
fn is_idle(pass: &HostPass<'_>) -> bool {
    let Some(report) = pass.report() else { return false };
    match pass.seen.driver {
        DriverSight::Known(view) => view.asked_at > report.at && !view.is_busy,
        DriverSight::Absent { asked_at } => asked_at > report.at,
        DriverSight::Unlisted | DriverSight::NotReady => false,
    }
}

/// Remembers whether the host boots without a slot, because a look at it may not be had at any time.
pub(crate) fn note_boot(pass: &mut HostPass<'_>) {
    if let Some(view) = pass.seen.driver.view() {
        pass.host.progress.boots_without_slot = view.boots_without_slot;
    }
}

/// Notes that the backend has given an interrupted operation up, by a look from after the answer to the one that took
/// its place.
pub(crate) fn note_interruption(pass: &mut HostPass<'_>) {
    let Some(since) = pass.host.progress.interrupted_at else { return };
    let since = pass.host.progress.answered_at.map_or(since, |answered| answered.max(since));
    let is_over = match pass.seen.driver {
        DriverSight::Known(view) => view.asked_at > since && !view.is_busy,
        DriverSight::Absent { asked_at } => asked_at > since,
        DriverSight::Unlisted | DriverSight::NotReady => false,
    };
    if is_over {
        pass.host.progress.interrupted_at = None;
    }
}
