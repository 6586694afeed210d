//! Detachment: the driver lets go of a host and leaves it running (host reference 1.14).

use std::time::Duration;

use crate::host::{
    pass::{DriverReply, Flow, HostPass, PassEnd},
    record::{
        Host,
        annotations::DetachMark,
        call::DriverCall,
        reason::WaitReason,
        state::HostState,
        status::{HostErrorKind, OperationalStatus},
    },
};

/// Time until a detached host is looked at again.
const DETACHED: Duration = Duration::from_secs(10 * 60);

/// Returns whether the host is detached, or marked for it.
pub(crate) fn is_detached(host: &Host) -> bool {
    host.meta.annotations.detached.is_some() || host.status.operational == OperationalStatus::Detached
}

/// Returns whether a detached host holds its deletion: its mark says so, or the mark is gone and the driver takes the
/// host back first.
pub(crate) fn holds_deletion(host: &Host) -> bool {
    match host.meta.annotations.detached {
        Some(mark) => mark.delays_deletion,
        None => host.status.operational == OperationalStatus::Detached,
    }
}

/// Lets the driver detach a marked host, and take back a host that is marked no more.
pub(crate) fn check(pass: &mut HostPass<'_>) -> Flow {
    if pass.state() == HostState::Deleting {
        return Ok(());
    }
    match pass.host.meta.annotations.detached {
        None => take_back(pass),
        Some(_) if pass.host.status.operational == OperationalStatus::Detached => Err(stay(pass)),
        Some(mark) if mark.force || can_detach(pass.state()) => Err(detach(pass, mark)?),
        Some(_) => Ok(()),
    }
}

/// Returns whether the mark of a host takes effect in its state.
pub(crate) fn takes_effect(host: &Host) -> bool {
    host.meta.annotations.detached.is_some_and(|mark| mark.force || can_detach(host.state()))
}

fn can_detach(state: HostState) -> bool {
    state.runs_a_system() || state.is_available()
}

fn take_back(pass: &mut HostPass<'_>) -> Flow {
    if pass.has_error(HostErrorKind::Detach) {
        pass.clear_error();
        pass.host.status.error_count = 0;
        pass.drop_answered_work();
        return Err(pass.again());
    }
    if pass.host.status.operational != OperationalStatus::Detached {
        return Ok(());
    }
    pass.reset_operational();
    pass.host.progress.registered = None;
    Err(pass.again())
}

fn stay(pass: &HostPass<'_>) -> PassEnd {
    let is_held = pass.host.is_deleted();
    let reason = if is_held { WaitReason::DeletionHeld } else { WaitReason::Detached };
    pass.wait(reason, DETACHED)
}

fn detach(pass: &mut HostPass<'_>, mark: DetachMark) -> Flow<PassEnd> {
    let reply = pass.consult(DriverCall::Detach { force: mark.force })?;
    Ok(match reply {
        DriverReply::Running { .. } => running(pass),
        DriverReply::Done(_) | DriverReply::NotRegistered => complete(pass),
        DriverReply::Failed(text) => pass.fail(HostErrorKind::Detach, text),
        DriverReply::NeedsRamdisk => pass.incomplete_answer("the driver needs an image to detach the host"),
    })
}

/// Waits for the driver. Errors of other operations stay, because detachment mends none of them.
fn running(pass: &mut HostPass<'_>) -> PassEnd {
    let operational = pass.host.status.operational;
    let error = pass.host.status.error.clone();
    let is_of_detach = pass.has_error(HostErrorKind::Detach);
    let stop = pass.running();
    if !is_of_detach {
        pass.host.status.operational = operational;
        pass.host.status.error = error;
    }
    stop
}

fn complete(pass: &mut HostPass<'_>) -> PassEnd {
    if pass.has_error(HostErrorKind::Detach) {
        pass.host.status.error = None;
        pass.host.status.error_count = 0;
    }
    pass.host.status.operational = OperationalStatus::Detached;
    pass.host.progress.registered = None;
    stay(pass)
}
