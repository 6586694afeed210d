//! Input of drivers: the host, and the operation.

use std::{fmt, sync::Arc};

use chassis::kinds::host::{parse_key, progress as wire_progress};
use domain::{
    core::{invalid::Invalid, time::Timestamp},
    host::record::{
        HostKey,
        call::{DriverAnswer, DriverTrouble},
        operation::OperationKind,
        progress::{HostProgress, HostWork},
    },
};
use proto::host as wire;
use redfish::BmcLogin;
use tonic::Status;

/// Name of a host, and the unique id of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// Namespace and name.
    pub key: Arc<str>,
    /// Unique id of the record: names may be reused.
    pub uid: Arc<str>,
}

impl HostIdentity {
    /// Returns the identity of the host with this key, whose record is `host`.
    pub fn of(key: Arc<str>, host: &wire::Host) -> Self {
        let uid = host.meta.as_ref().map_or("", |meta| meta.uid.as_str());
        Self { key, uid: uid.into() }
    }
}

/// Host as its driver needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTarget {
    /// Name of the host.
    pub key: HostKey,
    /// Unique id of the record: names may be reused.
    pub uid: Arc<str>,
    /// Id of the host at the driver; empty: none yet.
    pub driver_id: Arc<str>,
    /// Address of the BMC.
    pub address: Arc<str>,
    /// Whether the certificate of the BMC is taken unverified.
    pub takes_any_certificate: bool,
    /// MAC address that the host boots from.
    pub boot_mac: Option<Arc<str>>,
    /// Whether the host may never be off.
    pub disable_power_off: bool,
    /// Login at the BMC; `None`: none can be read.
    pub login: Option<BmcLogin>,
}

impl HostTarget {
    /// Returns the host as its driver needs it.
    pub fn of(identity: &HostIdentity, host: &wire::Host, login: Option<BmcLogin>) -> Self {
        let spec = host.spec.as_ref();
        let bmc = spec.and_then(|spec| spec.bmc.as_ref());
        let boot_mac = spec.map(|spec| spec.boot_mac_address.as_str());
        Self {
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
}

fn driver_id(host: &wire::Host) -> &str {
    let provisioning = host.status.as_ref().and_then(|status| status.provisioning.as_ref());
    provisioning.map_or("", |provisioning| &provisioning.id)
}

/// Operation that a driver is asked about.
#[derive(Debug, Clone)]
pub struct CallOrder {
    /// Call of the rules.
    pub work: HostWork,
    /// Time at which the driver was first asked for this operation, if it may have been: the operation may be under way,
    /// or over.
    pub asked_before: Option<Timestamp>,
    /// Check for requests that change the power.
    pub still_due: StillDue,
}

impl CallOrder {
    /// Kind of the operation.
    pub fn kind(&self) -> OperationKind {
        self.work.call.kind()
    }
}

/// Check whether an operation is still to be carried out here, to be asked right before a request leaves.
#[derive(Clone)]
pub struct StillDue(Arc<dyn Fn() -> bool + Send + Sync>);

impl StillDue {
    /// Makes a check of a function.
    pub fn when(is_due: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_due))
    }

    /// Returns whether the operation is still due.
    pub fn is_due(&self) -> bool {
        (self.0)()
    }

    /// Returns the check as a function to be shared.
    pub fn shared(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for StillDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StillDue")
    }
}

/// Reads the progress of a host; `None`: no decision was made about it yet.
///
/// # Errors
/// A word in the record is unknown; the error names the field.
pub fn progress(host: &wire::Host) -> Result<Option<HostProgress>, Invalid> {
    host.progress.as_ref().map(wire_progress::from_wire).transpose()
}

/// Returns the answer about a host whose BMC can never be reached at its address. A driver keeps nothing of it, so there is
/// nothing to let go of.
pub fn cannot_reach(kind: OperationKind, reason: &str) -> DriverAnswer {
    match kind {
        OperationKind::Detach | OperationKind::Delete => DriverAnswer::Done(Default::default()),
        OperationKind::Register
        | OperationKind::Inspect
        | OperationKind::Prepare
        | OperationKind::Service
        | OperationKind::Provision
        | OperationKind::Adopt
        | OperationKind::Deprovision
        | OperationKind::PowerOn
        | OperationKind::PowerOff
        | OperationKind::AttachDataImage
        | OperationKind::DetachDataImage => DriverAnswer::Failed { text: reason.into() },
    }
}

/// Returns the answer about a host whose secrets the registry did not tell: the driver was not asked.
pub fn unreadable_secret(unread: &Status) -> DriverAnswer {
    let text = format!("a secret of the host cannot be read: {}", unread.message()).into();
    DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text }
}
