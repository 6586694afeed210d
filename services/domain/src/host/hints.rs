//! Hints that choose the disk for an image (host reference 1.11).

use crate::host::record::{Host, spec::RootDeviceHints};

/// Returns the hints that a host wants. A software volume that is the root needs none.
pub(crate) fn wanted_hints(host: &Host) -> Option<RootDeviceHints> {
    let volumes = host.spec.raid.as_ref().and_then(|raid| raid.software.as_ref());
    if volumes.is_some_and(|volumes| volumes.iter().any(|volume| volume.is_root)) {
        return None;
    }
    host.spec.root_device_hints.clone().or_else(|| profile_hints(&host.status.hardware_profile))
}

/// Returns the hints of a profile.
pub(crate) fn profile_hints(profile: &str) -> Option<RootDeviceHints> {
    match profile {
        "unknown" => Some(device("/dev/sda")),
        "libvirt" => Some(device("/dev/vda")),
        "openstack" => Some(device("/dev/vdb")),
        "dell" => Some(position("0:0:0:0")),
        "dell-raid" => Some(position("0:2:0:0")),
        _ => None,
    }
}

fn device(name: &str) -> RootDeviceHints {
    RootDeviceHints { device_name: Some(name.into()), ..RootDeviceHints::default() }
}

fn position(hctl: &str) -> RootDeviceHints {
    RootDeviceHints { hctl: Some(hctl.into()), ..RootDeviceHints::default() }
}
