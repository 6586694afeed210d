//! Hosts and sights between the wire and the rules.

use chassis::kinds::host::{SightRecord, evidence};
use domain::host::evidence::DriverSight;
use host_calls::{CallJournal as _, HostIdentity};
use proto::host as wire;

/// Returns whether the backend was told about the host.
pub(crate) fn is_registered(host: &wire::Host) -> bool {
    let registered = host.progress.as_ref().is_some_and(|progress| progress.registered.is_some());
    let provisioning = host.status.as_ref().and_then(|status| status.provisioning.as_ref());
    registered || provisioning.is_some_and(|provisioning| !provisioning.id.is_empty())
}

/// Returns the secret with the user data of a host.
pub(crate) fn user_data_name(host: &wire::Host) -> Option<wire::SecretName> {
    secret_name(host, &host.spec.as_ref()?.user_data.as_ref()?.name)
}

/// Returns the secret with the network data of a host: those of its ramdisk if it names no others.
pub(crate) fn network_data_name(host: &wire::Host) -> Option<wire::SecretName> {
    let spec = host.spec.as_ref()?;
    let name = spec.network_data.as_ref().map_or(&spec.preprovisioning_network_data_name, |data| &data.name);
    secret_name(host, name)
}

/// Returns the secret with the metadata of a host.
pub(crate) fn meta_data_name(host: &wire::Host) -> Option<wire::SecretName> {
    secret_name(host, &host.spec.as_ref()?.meta_data.as_ref()?.name)
}

/// Returns the full name of a secret, which is always in the namespace of the host.
fn secret_name(host: &wire::Host, name: &str) -> Option<wire::SecretName> {
    let namespace = host.meta.as_ref()?.namespace.clone();
    (!name.is_empty()).then(|| wire::SecretName { namespace, name: name.to_owned() })
}

/// Reads the recorded look at the host with that unique id. A look at an earlier host of the name does not count.
pub(crate) fn sight(known: Option<&SightRecord>, uid: &str) -> DriverSight {
    let known = known.map(SightRecord::message).filter(|sight| sight.uid == uid);
    known.map(|sight| evidence::sight(sight.sight.as_ref())).unwrap_or_default()
}

/// Returns the record of a host with another look at it.
pub(crate) fn with_sight(
    known: Option<&SightRecord>,
    host: &HostIdentity,
    sight: DriverSight,
) -> SightRecord {
    let calls = known.map(|known| known.calls(&host.uid)).unwrap_or_default();
    let mut record = SightRecord::with_calls(known, host, &calls).message();
    record.sight = Some(evidence::sight_to_wire(&sight));
    SightRecord::of(record)
}
