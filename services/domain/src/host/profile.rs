//! Hardware profiles, which are deprecated and still give the usual hints for the disk (host reference 1.10).

use std::sync::Arc;

use crate::host::{
    decision::HostEvent,
    hints::{profile_hints, wanted_hints},
    pass::HostPass,
    record::Host,
};

/// Chooses the profile of a host, and copies its hints where none are stored.
///
/// # Errors
/// Returns a text for people when no profile has that name.
pub(crate) fn choose(pass: &mut HostPass<'_>) -> Result<(), Arc<str>> {
    let name = name(&pass.host);
    if !is_known(&name) {
        return Err(format!("there is no hardware profile '{name}'").into());
    }
    if pass.host.status.hardware_profile != name {
        pass.host.status.hardware_profile = Arc::clone(&name);
        pass.events.push(HostEvent::ProfileSet { profile: name });
    }
    if pass.host.status.provisioning.root_device_hints.is_none() {
        pass.host.status.provisioning.root_device_hints = wanted_hints(&pass.host);
    }
    Ok(())
}

fn name(host: &Host) -> Arc<str> {
    let usual = if host.spec.bmc_address.starts_with("libvirt") { "libvirt" } else { "unknown" };
    let given = [&host.status.hardware_profile, &host.spec.hardware_profile];
    given.into_iter().find(|name| !name.is_empty()).map_or_else(|| usual.into(), Arc::clone)
}

fn is_known(name: &str) -> bool {
    name == "empty" || profile_hints(name).is_some()
}
