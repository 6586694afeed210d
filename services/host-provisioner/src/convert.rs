//! Hosts and sights between the wire and the rules.

use std::sync::Arc;

use chassis::{
    kinds::host::{SightRecord, evidence, parse_key, progress},
    mesh::time,
};
use domain::{
    core::invalid::Invalid,
    host::{
        dispatch::{CallIntent, DispatchRecord},
        record::{HostKey, operation::OperationKind, progress::HostWork},
    },
};
use proto::host as wire;

use crate::driver::{BmcLogin, HostTarget};

/// Name of a host, and the unique id of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostIdentity {
    pub(crate) key: Arc<str>,
    pub(crate) uid: Arc<str>,
}

impl HostIdentity {
    /// Returns the identity of the host with this key, whose record is `host`.
    pub(crate) fn of(key: Arc<str>, host: &wire::Host) -> Self {
        let uid = host.meta.as_ref().map_or("", |meta| meta.uid.as_str());
        Self { key, uid: uid.into() }
    }
}

/// Returns the work of a host; `None`: there is none.
///
/// # Errors
/// A word in the record is unknown; the error names the field.
pub(crate) fn work(host: &wire::Host) -> Result<Option<HostWork>, Invalid> {
    let Some(progress) = &host.progress else { return Ok(None) };
    Ok(progress::from_wire(progress)?.work)
}

/// Returns whether the backend was told about the host.
pub(crate) fn is_registered(host: &wire::Host) -> bool {
    let registered = host.progress.as_ref().is_some_and(|progress| progress.registered.is_some());
    registered || !driver_id(host).is_empty()
}

/// Returns the host as its driver needs it.
pub(crate) fn target(identity: &HostIdentity, host: &wire::Host, login: Option<BmcLogin>) -> HostTarget {
    let spec = host.spec.as_ref();
    let bmc = spec.and_then(|spec| spec.bmc.as_ref());
    let boot_mac = spec.map(|spec| spec.boot_mac_address.as_str());
    HostTarget {
        key: parse_key(&identity.key),
        uid: Arc::clone(&identity.uid),
        driver_id: driver_id(host).into(),
        address: bmc.map_or("", |bmc| &bmc.address).into(),
        takes_any_certificate: bmc.is_some_and(|bmc| bmc.disable_certificate_verification),
        boot_mac: boot_mac.filter(|mac| !mac.is_empty()).map(Into::into),
        disable_power_off: spec.is_some_and(|spec| spec.disable_power_off),
        login,
    }
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

fn driver_id(host: &wire::Host) -> &str {
    let provisioning = host.status.as_ref().and_then(|status| status.provisioning.as_ref());
    provisioning.map_or("", |provisioning| &provisioning.id)
}

/// Reads what is on record about the host with that unique id. News about an earlier host of the name do not count.
pub(crate) fn dispatch_record(sight: Option<&SightRecord>, uid: &str) -> DispatchRecord {
    let Some(sight) = sight.map(SightRecord::message).filter(|sight| sight.uid == uid) else {
        return DispatchRecord::default();
    };
    DispatchRecord {
        sight: evidence::sight(sight.sight.as_ref()),
        report: sight.report.as_ref().and_then(|report| evidence::report(report).ok()),
        intent: sight.intent.as_ref().and_then(intent),
    }
}

/// Returns the record of what is known about a host.
pub(crate) fn sight_record(host: &HostIdentity, record: &DispatchRecord) -> SightRecord {
    let HostKey { namespace, name } = parse_key(&host.key);
    SightRecord::of(wire::HostSight {
        namespace: namespace.to_string(),
        name: name.to_string(),
        uid: host.uid.to_string(),
        sight: Some(evidence::sight_to_wire(&record.sight)),
        report: record.report.as_ref().map(evidence::report_to_wire),
        intent: record.intent.map(intent_to_wire),
        revision: 0,
    })
}

/// Reads an intent. One of a kind that this version does not know is about no operation that it asks for.
fn intent(intent: &wire::CallIntent) -> Option<CallIntent> {
    Some(CallIntent {
        kind: OperationKind::from_word(&intent.kind)?,
        since: time::from_wire(intent.since?),
        at: time::from_wire(intent.at?),
    })
}

fn intent_to_wire(intent: CallIntent) -> wire::CallIntent {
    wire::CallIntent {
        kind: intent.kind.word().to_owned(),
        since: Some(time::to_wire(intent.since)),
        at: Some(time::to_wire(intent.at)),
    }
}
