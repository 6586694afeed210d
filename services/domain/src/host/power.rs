//! Power of hosts that are available or that run a system (host reference 1.12).

use std::{sync::Arc, time::Duration};

use crate::host::{
    decision::{CompanionChange, HostEvent, HostMetric},
    pass::{DriverReply, Flow, HostPass, PassEnd},
    provisioning, reboot,
    record::{
        Host, PowerAuthority,
        annotations::{AnnotationName, RebootMode},
        call::DriverCall,
        operation::OperationKind,
        reason::WaitReason,
        status::HostErrorKind,
    },
    servicing,
};

/// Longest time between two looks at a host that needs nothing.
const POLL: Duration = Duration::from_secs(60);

/// Shortest time until a data image that failed is tried again.
const DATA_IMAGE: Duration = Duration::from_secs(30);

/// Keeps the system of a host under the driver's control and its power as wished.
pub(crate) fn manage_running(pass: &mut HostPass<'_>) -> Flow {
    provisioning::adopt(pass)?;
    manage(pass)
}

/// Keeps the power of a host as wished.
pub(crate) fn manage(pass: &mut HostPass<'_>) -> Flow {
    let is_on = observe(pass)?;
    end_reboot(pass, is_on)?;
    let is_held_off = reboot::counted(&pass.host).next().is_some();
    let wants_on = stays_on(&pass.host, is_on) && !is_held_off;
    if pass.state().runs_a_system() {
        prepare_power_on(pass, is_on, wants_on)?;
    }
    if is_on == wants_on {
        return Err(settle(pass, is_held_off));
    }
    let call = if wants_on { power_on(pass) } else { power_off(pass) };
    switch(pass, call, wants_on)
}

/// Takes the power from the driver's look. Without one from after the last answer, nothing is decided.
fn observe(pass: &mut HostPass<'_>) -> Flow<bool> {
    let look = pass.latest_view();
    let Some(is_on) = look.and_then(|view| view.powered_on) else { return await_reading(pass) };
    if is_on != pass.host.status.powered_on {
        pass.host.status.powered_on = is_on;
        if pass.has_error(HostErrorKind::PowerManagement) {
            pass.clear_error();
        }
        return Err(pass.again());
    }
    Ok(is_on)
}

/// Waits for a look at the power. An operation that began on a look goes on without a further one.
fn await_reading(pass: &mut HostPass<'_>) -> Flow<bool> {
    if pass.operation().is_some_and(OperationKind::follows_power) {
        return Ok(pass.host.status.powered_on);
    }
    Err(pass.wait(WaitReason::AwaitingPowerReading, POLL))
}

/// Returns whether the power of a host is to be on, apart from reboots. One that may never be off is left as it is where
/// its spec wants it off all the same: every power-off would be a reboot, without end. So is one that a session has switched
/// last.
fn stays_on(host: &Host, is_on: bool) -> bool {
    match host.meta.power_authority {
        PowerAuthority::LastSession => is_on,
        PowerAuthority::Spec | PowerAuthority::Session => {
            host.spec.online || (host.spec.disable_power_off && is_on)
        }
    }
}

/// Changes the data image and the firmware of a host that runs a system, before it is switched on.
fn prepare_power_on(pass: &mut HostPass<'_>, is_on: bool, wants_on: bool) -> Flow {
    let is_switched_on = pass.operation() == Some(OperationKind::PowerOn);
    let is_wished_on = pass.host.spec.online && stays_on(&pass.host, is_on);
    let is_coming_on = is_wished_on && !is_on && !is_switched_on;
    if is_coming_on && wants_on {
        change_data_image(pass)?;
    }
    servicing::check(pass, is_coming_on)
}

/// Ends a reboot once the host is off, so that the power returns.
fn end_reboot(pass: &mut HostPass<'_>, is_on: bool) -> Flow {
    if !is_on && pass.remove_annotation(AnnotationName::Reboot) { Err(pass.again()) } else { Ok(()) }
}

/// Needs nothing. A host that is as wished has no failure, whatever was recorded earlier (host reference Q14, D1).
fn settle(pass: &mut HostPass<'_>, is_held_off: bool) -> PassEnd {
    pass.drop_answered_work();
    pass.clear_error();
    pass.host.status.error_count = 0;
    let reason = if is_held_off { WaitReason::HeldOff } else { WaitReason::Settled };
    pass.wait(reason, POLL)
}

fn power_on(pass: &HostPass<'_>) -> DriverCall {
    DriverCall::PowerOn { force: pass.has_error(HostErrorKind::PowerManagement) }
}

fn power_off(pass: &HostPass<'_>) -> DriverCall {
    DriverCall::PowerOff {
        mode: reboot::mode(&pass.host),
        force: pass.has_error(HostErrorKind::PowerManagement),
        cleaning_disabled: pass.host.spec.cleaning_disabled,
    }
}

fn switch(pass: &mut HostPass<'_>, call: DriverCall, on: bool) -> Flow {
    let is_first_soft = matches!(call, DriverCall::PowerOff { mode: RebootMode::Soft, .. });
    let reply = pass.consult(call);
    if pass.call.is_some() {
        report_unreadable_requests(pass, on);
    }
    match reply? {
        DriverReply::Running { .. } => {
            let ends_reboot = accepted(pass, on);
            let running = pass.running();
            Err(if ends_reboot { pass.again() } else { running })
        }
        DriverReply::Done(_) => {
            accepted(pass, on);
            Err(done(pass, on))
        }
        DriverReply::Failed(text) if is_first_soft => {
            let text = format!("the soft power-off failed, and a hard one follows: {text}");
            Err(pass.fail(HostErrorKind::PowerManagement, text.into()))
        }
        DriverReply::Failed(text) => Err(pass.fail(HostErrorKind::PowerManagement, text)),
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
    }
}

/// Notes a power request that the driver has taken. A host that may never be off has rebooted by it; returns whether
/// that fulfils a request.
fn accepted(pass: &mut HostPass<'_>, on: bool) -> bool {
    if pass.is_newly_accepted {
        pass.metrics.push(HostMetric::PowerChange { on });
        pass.events.push(if on { HostEvent::PowerOn } else { HostEvent::PowerOff });
    }
    !on && pass.host.spec.disable_power_off && pass.remove_annotation(AnnotationName::Reboot)
}

/// Notes that the power is as this decision wanted it (host reference Q9).
fn done(pass: &mut HostPass<'_>, on: bool) -> PassEnd {
    pass.host.status.powered_on = on || pass.host.spec.disable_power_off;
    pass.host.status.error_count = 0;
    pass.clear_error();
    pass.again()
}

fn report_unreadable_requests(pass: &mut HostPass<'_>, on: bool) {
    if !on && reboot::counted(&pass.host).any(|request| request.is_unreadable) {
        pass.events.push(HostEvent::InvalidAnnotationValue);
    }
}

/// Inserts or ejects the data image of a host that is about to be switched on.
fn change_data_image(pass: &mut HostPass<'_>) -> Flow {
    let image = &pass.seen.data_image;
    if image.wanted == image.inserted {
        pass.host.progress.data_image_failures = 0;
        return Ok(());
    }
    let call = match &image.wanted {
        Some(url) if image.inserted.is_none() => DriverCall::AttachDataImage { url: url.clone() },
        Some(_) | None => DriverCall::DetachDataImage,
    };
    match pass.consult(call)? {
        DriverReply::Running { .. } => Err(pass.running()),
        DriverReply::Done(_) => Ok(()),
        DriverReply::Failed(text) => Err(data_image_failed(pass, text)),
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
    }
}

fn data_image_failed(pass: &mut HostPass<'_>, text: Arc<str>) -> PassEnd {
    pass.companions.push(CompanionChange::DataImageFailed(text));
    let failures = pass.host.progress.data_image_failures.saturating_add(1);
    pass.host.progress.data_image_failures = failures;
    let delay = pass.failure_delay(failures).max(DATA_IMAGE);
    pass.rest(WaitReason::DataImageFailed, Some(delay))
}
