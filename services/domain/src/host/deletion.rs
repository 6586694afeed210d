//! Deletion: from the request until nothing is left of the host (host reference 1.17).

use std::sync::Arc;

use crate::host::{
    decision::{CompanionChange, HostEvent, HostMetric},
    detach,
    pass::{DriverReply, Flow, HostPass, PassEnd},
    record::{
        HostDeletion, annotations::RebootMode, call::DriverCall, operation::OperationKind,
        reason::WaitReason, state::HostState, status::HostErrorKind,
    },
    transition,
};

/// Failures in a row after which a deletion goes on without the operation.
const MOST_FAILURES: u32 = 3;

/// Returns whether a detached host is to go at once, and records a deletion that a detached host holds.
pub(crate) fn skips_detached(pass: &mut HostPass<'_>) -> Flow<bool> {
    if !pass.host.is_deleted() || !detach::is_detached(&pass.host) {
        return Ok(false);
    }
    if detach::holds_deletion(&pass.host) {
        pass.metrics.push(HostMetric::DeletionHeld);
        return Ok(false);
    }
    Ok(true)
}

/// Returns whether the deletion begins, or goes on, now.
pub(crate) fn is_due(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.host.is_deleted() && !detach::holds_deletion(&pass.host))
}

/// Returns whether the driver cannot be told about the host that is to go, and is not asked any more.
pub(crate) fn is_unreachable(pass: &mut HostPass<'_>) -> Flow<bool> {
    let has_failed = pass.has_error(HostErrorKind::Registration);
    Ok(is_due(pass)? && has_failed && pass.host.status.error_count > MOST_FAILURES)
}

/// Records a failure; returns whether the deletion goes on without the operation.
pub(crate) fn give_up_after_failure(
    pass: &mut HostPass<'_>,
    kind: HostErrorKind,
    text: Arc<str>,
) -> Flow<bool> {
    pass.record_failure(kind, text);
    if pass.host.status.error_count <= MOST_FAILURES {
        return Err(pass.back_off(WaitReason::BackingOff));
    }
    Ok(true)
}

/// Returns whether a deletion goes on although the driver cannot take the running system over. The driver then answers
/// about the removal itself.
pub(crate) fn gives_up_adoption(pass: &HostPass<'_>) -> bool {
    let has_failed = pass.has_error(HostErrorKind::ProvisionedRegistration);
    pass.host.is_deleted() && has_failed && pass.host.status.error_count > MOST_FAILURES
}

/// Sorts out the answers that no row judges: work goes on, or the host is registered again. Without a login it cannot
/// be.
pub(crate) fn registered_or_unreachable(pass: &mut HostPass<'_>, reply: DriverReply) -> Flow<DriverReply> {
    match reply {
        DriverReply::Running { .. } => Err(pass.running()),
        DriverReply::NotRegistered if pass.host.is_deleted() && pass.lacks_credentials => {
            Ok(DriverReply::NotRegistered)
        }
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
        DriverReply::Done(_) | DriverReply::Failed(_) => Ok(reply),
    }
}

/// Returns whether the driver neither knows the host nor can be told about it.
pub(crate) fn is_unknown(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.reply == Some(DriverReply::NotRegistered))
}

/// Returns whether the host is off for its deletion, or may never be off.
pub(crate) fn is_off(pass: &mut HostPass<'_>) -> Flow<bool> {
    if pass.host.spec.disable_power_off {
        return Ok(true);
    }
    let call = DriverCall::PowerOff {
        mode: RebootMode::Hard,
        force: pass.has_error(HostErrorKind::PowerManagement),
        cleaning_disabled: pass.host.spec.cleaning_disabled,
    };
    let reply = pass.consult(call)?;
    let reply = registered_or_unreachable(pass, reply)?;
    pass.reply = Some(reply.clone());
    Ok(matches!(reply, DriverReply::Done(_)))
}

/// Notes that the host is off.
pub(crate) fn switched_off(pass: &mut HostPass<'_>) {
    pass.clear_error();
    pass.host.status.error_count = 0;
    if !pass.host.spec.disable_power_off {
        pass.host.status.powered_on = false;
    }
}

/// Returns whether the deletion goes on although the host could not be switched off.
pub(crate) fn is_power_given_up(pass: &mut HostPass<'_>) -> Flow<bool> {
    let Some(DriverReply::Failed(text)) = pass.reply.clone() else { return Ok(false) };
    give_up_after_failure(pass, HostErrorKind::PowerManagement, text)
}

/// Notes that the host may still be on.
pub(crate) fn leave_power(pass: &mut HostPass<'_>) {
    pass.metrics.push(HostMetric::DeletedWithoutPowerOff);
    skip(pass, OperationKind::PowerOff);
}

/// Records that the deletion went on without an operation.
pub(crate) fn skip(pass: &mut HostPass<'_>, operation: OperationKind) {
    let orphan = Arc::clone(&pass.host.status.provisioning.id);
    pass.events.push(HostEvent::DeletionSkipped { operation, orphan });
}

/// Lets a host go that is deleted by force: without a call to its driver (host reference Q17).
pub(crate) fn force(pass: &mut HostPass<'_>) -> Flow {
    if pass.host.meta.deletion != Some(HostDeletion::Forced) {
        return Ok(());
    }
    skip(pass, OperationKind::Delete);
    if pass.state() != HostState::Deleting {
        transition::enter(pass, HostState::Deleting, |_| {});
    }
    Err(release(pass))
}

/// Makes the driver forget the host, then lets it go. A driver that cannot is asked again without end, so that it keeps
/// no record of a host that is gone.
pub(crate) fn forget(pass: &mut HostPass<'_>) -> Flow {
    match pass.consult(DriverCall::Delete)? {
        DriverReply::Running { .. } => Err(pass.running()),
        DriverReply::Done(_) | DriverReply::NotRegistered => Err(release(pass)),
        DriverReply::Failed(text) => Err(pass.rest_after_trouble(WaitReason::BackingOff, text)),
        DriverReply::NeedsRamdisk => {
            Err(pass.incomplete_answer("the driver needs an image to forget the host"))
        }
    }
}

fn release(pass: &mut HostPass<'_>) -> PassEnd {
    pass.companions.push(CompanionChange::ReleaseAll);
    pass.host.meta.has_finalizer = false;
    HostPass::wait_for_change(WaitReason::Gone)
}
