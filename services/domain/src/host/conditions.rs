//! Conditions of a host: those of its state, and the troubles on top (host reference 1.9).

use crate::{
    core::{
        condition::{self, ConditionStatus},
        time::Timestamp,
    },
    host::{
        evidence::{DriverSight, HardwareHealth},
        record::{
            condition::{ConditionKind, ConditionReason},
            state::HostState,
            status::{HostStatus, OperationalStatus},
        },
    },
};

use ConditionReason as Reason;
use ConditionStatus::{False, True, Unknown};

type Statement = (ConditionStatus, ConditionReason);

/// Brings the conditions up to date.
pub(crate) fn refresh(status: &mut HostStatus, driver: &DriverSight, now: Timestamp) {
    let manageable = manageable(status, driver);
    let ready = ready(status);
    let progressing = progressing(status);
    let state = status.provisioning.state;
    let statements = [
        (ConditionKind::Manageable, manageable),
        (ConditionKind::AvailableForProvisioning, available(state)),
        (ConditionKind::Provisioned, provisioned(state)),
        (ConditionKind::Ready, ready),
        (ConditionKind::Progressing, progressing),
    ];
    for (kind, statement) in statements {
        condition::set(&mut status.conditions, kind, statement, now);
    }
    refresh_health(status, driver, now);
}

fn manageable(status: &HostStatus, driver: &DriverSight) -> Statement {
    match status.provisioning.state {
        HostState::Unset | HostState::Unmanaged => (False, Reason::NotManaged),
        HostState::Registering if status.operational == OperationalStatus::Error => {
            (False, Reason::RegistrationFailed)
        }
        HostState::Registering => (False, Reason::Registering),
        HostState::Deleting => (True, Reason::Manageable),
        HostState::Inspecting
        | HostState::MatchProfile
        | HostState::Preparing
        | HostState::Available
        | HostState::Ready
        | HostState::Provisioning
        | HostState::Provisioned
        | HostState::ExternallyProvisioned
        | HostState::Deprovisioning
        | HostState::PoweringOffBeforeDelete => {
            let is_detached = status.operational == OperationalStatus::Detached;
            let fails = driver.view().is_some_and(|view| view.has_power_failure) && !is_detached;
            if fails { (False, Reason::PowerFailure) } else { (True, Reason::Manageable) }
        }
    }
}

fn available(state: HostState) -> Statement {
    if state.is_available() { (True, Reason::Available) } else { (False, Reason::NotAvailable) }
}

fn provisioned(state: HostState) -> Statement {
    if state.runs_a_system() { (True, Reason::Provisioned) } else { (False, Reason::NotProvisioned) }
}

fn ready(status: &HostStatus) -> Statement {
    match status.operational {
        OperationalStatus::Error => (False, Reason::Error),
        OperationalStatus::Servicing => (False, Reason::Servicing),
        OperationalStatus::Detached => (False, Reason::Detached),
        OperationalStatus::Unset
        | OperationalStatus::Discovered
        | OperationalStatus::Ok
        | OperationalStatus::Delayed => provisioned(status.provisioning.state),
    }
}

fn progressing(status: &HostStatus) -> Statement {
    if status.operational == OperationalStatus::Detached {
        return (False, Reason::Detached);
    }
    match status.provisioning.state {
        HostState::Registering => (True, Reason::Registering),
        HostState::Inspecting | HostState::MatchProfile => (True, Reason::Inspecting),
        HostState::Preparing => (True, Reason::Preparing),
        HostState::Provisioning => (True, Reason::Provisioning),
        HostState::Deprovisioning => (True, Reason::Deprovisioning),
        HostState::PoweringOffBeforeDelete => (True, Reason::PoweringOffBeforeDelete),
        HostState::Deleting => (True, Reason::Deleting),
        HostState::Unset
        | HostState::Unmanaged
        | HostState::Available
        | HostState::Ready
        | HostState::Provisioned
        | HostState::ExternallyProvisioned => (False, Reason::NotProgressing),
    }
}

/// Without an answer of the driver, the health stays as it was.
fn refresh_health(status: &mut HostStatus, driver: &DriverSight, now: Timestamp) {
    let is_known = status.conditions.iter().any(|known| known.kind == ConditionKind::Healthy);
    let statement = match driver.view().and_then(|view| view.health) {
        Some(HardwareHealth::Healthy) => (True, Reason::Healthy),
        Some(HardwareHealth::Warning) => (False, Reason::Warning),
        Some(HardwareHealth::Critical) => (False, Reason::CriticalError),
        Some(HardwareHealth::Unknown) => (Unknown, Reason::Unknown),
        None if is_known => return,
        None => (Unknown, Reason::Unknown),
    };
    condition::set(&mut status.conditions, ConditionKind::Healthy, statement, now);
}
