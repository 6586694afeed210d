//! Reboot annotations: which of them count, and how the power goes off (host reference 1.12).

use crate::host::record::{
    Host,
    annotations::{RebootMode, RebootRequest},
    state::HostState,
};

/// Returns whether a person wants a reboot to interrupt the wait of a ramdisk.
pub(crate) fn is_forced(host: &Host) -> bool {
    host.meta.annotations.reboots.iter().any(|request| request.force)
}

/// Returns the requests that keep the power off for now. A host that may never be off is rebooted on request, and no
/// request can hold it off.
pub(crate) fn counted(host: &Host) -> impl Iterator<Item = &RebootRequest> {
    host.meta.annotations.reboots.iter().filter(|request| {
        let can_hold = request.key.is_none() || !host.spec.disable_power_off;
        can_hold && (request.force || counts_without_force(host.state()))
    })
}

fn counts_without_force(state: HostState) -> bool {
    !state.is_available()
}

/// Returns the manner of a power-off. After a failure the power is cut.
pub(crate) fn mode(host: &Host) -> RebootMode {
    if host.status.error_count > 0 {
        return RebootMode::Hard;
    }
    counted(host).map(|request| request.mode).max().unwrap_or_default()
}
