//! People who change their minds about hosts, and who finally want every host to run undisturbed.

use domain::host::{
    evidence::CredentialsSight,
    record::{
        Host, HostDeletion,
        annotations::{DetachMark, InspectRequest, RebootMode, RebootRequest},
        spec::{HostImage, InspectionMode, RootDeviceHints},
    },
};
use rand::{Rng, rngs::SmallRng};

/// Returns a new host with random wishes.
pub(crate) fn create(index: usize, rng: &mut SmallRng) -> Host {
    let mut host = Host::default();
    host.meta.key.name = format!("host-{index}").into();
    if rng.random_bool(0.9) {
        host.spec.bmc_address = "redfish://bmc".into();
        host.spec.credentials_name = "login".into();
    }
    host.spec.online = true;
    host.spec.disable_power_off = rng.random_bool(0.1);
    host.spec.externally_provisioned = rng.random_bool(0.1);
    host.spec.inspection = rng.random_bool(0.2).then_some(InspectionMode::Disabled);
    if rng.random_bool(0.5) {
        host.spec.image = image(rng);
    }
    host
}

fn image(rng: &mut SmallRng) -> Option<HostImage> {
    let url = format!("http://images/{}", rng.random_range(0..4)).into();
    Some(HostImage { url, ..HostImage::default() })
}

/// Changes one wish, and the secret with the login now and then.
pub(crate) fn meddle(host: &mut Host, secret: &mut CredentialsSight, rng: &mut SmallRng) {
    host.meta.change += 1;
    let spec = &mut host.spec;
    let annotations = &mut host.meta.annotations;
    match rng.random_range(0..18) {
        0 => spec.online = spec.disable_power_off || !spec.online,
        1 | 2 => spec.image = image(rng),
        3 => spec.image = None,
        4 => annotations.reboots.push(reboot(None, rng)),
        5 => annotations.reboots.push(reboot(Some("me"), rng)),
        6 | 7 => annotations.reboots.retain(|request| request.key.is_none()),
        8 => annotations.detached = Some(mark(rng)),
        9 | 10 => annotations.detached = None,
        11 => annotations.inspect = Some(InspectRequest::Again),
        12 => spec.externally_provisioned = !spec.externally_provisioned,
        13 => *secret = CredentialsSight::Missing,
        14 => *secret = CredentialsSight::Complete { version: "bad".into() },
        15 => *secret = good_secret(rng),
        16 => annotations.paused = !annotations.paused,
        _ => spec.root_device_hints = Some(hints(rng)),
    }
    if rng.random_bool(0.05) {
        host.meta.deletion.get_or_insert(HostDeletion::Orderly);
        if rng.random_bool(0.3) {
            *secret = CredentialsSight::Missing;
        }
    }
    if host.is_deleted() && rng.random_bool(0.1) {
        host.meta.deletion = Some(HostDeletion::Forced);
    }
}

fn reboot(key: Option<&str>, rng: &mut SmallRng) -> RebootRequest {
    let mode = if rng.random_bool(0.5) { RebootMode::Soft } else { RebootMode::Hard };
    let force = rng.random_bool(0.3);
    RebootRequest { key: key.map(Into::into), mode, force, is_unreadable: rng.random_bool(0.1) }
}

fn mark(rng: &mut SmallRng) -> DetachMark {
    DetachMark { force: rng.random_bool(0.3), delays_deletion: rng.random_bool(0.3) }
}

fn hints(rng: &mut SmallRng) -> RootDeviceHints {
    let name = format!("/dev/sd{}", rng.random_range(0..3)).into();
    RootDeviceHints { device_name: Some(name), ..RootDeviceHints::default() }
}

/// Returns a secret with a login that works.
pub(crate) fn good_secret(rng: &mut SmallRng) -> CredentialsSight {
    CredentialsSight::Complete { version: format!("{}", rng.random_range(0..3)).into() }
}

/// Returns whether a login works.
pub(crate) fn is_good(secret: &CredentialsSight) -> bool {
    matches!(secret, CredentialsSight::Complete { version } if &**version != "bad")
}

/// Withdraws everything that keeps a host from its wishes. A host that nothing keeps has to come back by itself.
pub(crate) fn let_go(host: &mut Host, secret: &mut CredentialsSight, rng: &mut SmallRng) {
    let before = host.meta.annotations.clone();
    host.meta.annotations.paused = false;
    host.meta.annotations.detached = None;
    host.meta.annotations.reboots.clear();
    let is_changed = before != host.meta.annotations || !is_good(secret);
    if !is_good(secret) {
        *secret = good_secret(rng);
    }
    host.meta.change += u64::from(is_changed);
}
