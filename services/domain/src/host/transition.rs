//! Change of state, with the effects that every change has (host reference 1.3 step 6, 1.6).

use crate::host::{
    decision::HostMetric,
    pass::{HostPass, PassEnd},
    record::{state::HostState, status::OperationalStatus},
};

/// Enters a state. Where that needs a slot and none is free, the host stays and waits for one, and `effect` is not
/// applied.
pub(crate) fn enter(pass: &mut HostPass<'_>, to: HostState, effect: fn(&mut HostPass<'_>)) -> PassEnd {
    if to.needs_slot() && !pass.has_slot() {
        return pass.delay(to);
    }
    effect(pass);
    record_times(pass, to);
    let status = &mut pass.host.status;
    let from = std::mem::replace(&mut status.provisioning.state, to);
    if matches!(to, HostState::Registering | HostState::Inspecting | HostState::Provisioning) {
        status.provisioning.boot_mode = Some(pass.host.spec.boot_mode.unwrap_or_default());
    }
    if status.operational == OperationalStatus::Servicing {
        pass.reset_operational();
    }
    pass.host.progress.rest = None;
    pass.metrics.push(HostMetric::StateChange { from, to });
    pass.again()
}

/// Ends the operation that fills the old state, and begins the one that fills the new state.
fn record_times(pass: &mut HostPass<'_>, to: HostState) {
    let now = pass.now();
    let from = pass.state();
    let history = &mut pass.host.status.history;
    if let Some((operation, times)) = history.of(from)
        && let Some(start) = times.finish(now)
    {
        pass.metrics.push(HostMetric::OperationEnded { operation, took: now.since(start) });
    }
    if let Some((_, times)) = history.of(to) {
        times.begin(now);
    }
}
