//! Calls to drivers, both ways.

use std::sync::Arc;

use domain::{
    core::invalid::Invalid,
    host::record::{
        annotations::RebootMode,
        call::{
            DriverCall, InspectCall, PreparationParts, PrepareCall, ProvisionCall, RamdiskImage,
            RegisterCall, Registration, ServiceCall,
        },
        spec::{BootMode, InspectionMode},
        state::HostState,
        status::OperationalStatus,
    },
};
use proto::host::{self as wire, driver_call::Operation};

use super::{
    spec, status,
    value::{missing, owned, shared, word},
};

/// Reads a call.
///
/// # Errors
/// A word is unknown or a part is missing; the error names the field.
pub fn from_wire(call: &wire::DriverCall) -> Result<DriverCall, Invalid> {
    let operation = call.operation.as_ref().ok_or_else(|| missing("call.operation"))?;
    Ok(match operation {
        Operation::Register(call) => DriverCall::Register(Box::new(register(call)?)),
        Operation::Inspect(call) => DriverCall::Inspect(inspect(call)?),
        Operation::Prepare(call) => DriverCall::Prepare(Box::new(prepare(call))),
        Operation::Service(call) => {
            DriverCall::Service(ServiceCall { parts: parts(call.parts.as_ref()), restart: call.restart })
        }
        Operation::Provision(call) => DriverCall::Provision(Box::new(provision(call)?)),
        Operation::Adopt(call) => DriverCall::Adopt { state: state(&call.state)?, restart: call.restart },
        Operation::Deprovision(call) => {
            let wire::DeprovisionCall { restart, cleaning_disabled } = *call;
            DriverCall::Deprovision { restart, cleaning_disabled }
        }
        Operation::PowerOn(call) => DriverCall::PowerOn { force: call.force },
        Operation::PowerOff(call) => DriverCall::PowerOff {
            mode: if call.hard { RebootMode::Hard } else { RebootMode::Soft },
            force: call.force,
            cleaning_disabled: call.cleaning_disabled,
        },
        Operation::Detach(call) => DriverCall::Detach { force: call.force },
        Operation::Delete(wire::DeleteCall {}) => DriverCall::Delete,
        Operation::AttachDataImage(call) => DriverCall::AttachDataImage { url: call.url.as_str().into() },
        Operation::DetachDataImage(wire::DetachDataImageCall {}) => DriverCall::DetachDataImage,
    })
}

/// Returns a call for the wire.
pub fn to_wire(call: &DriverCall) -> wire::DriverCall {
    let operation = match call {
        DriverCall::Register(call) => Operation::Register(register_to_wire(call)),
        DriverCall::Inspect(call) => Operation::Inspect(inspect_to_wire(call)),
        DriverCall::Prepare(call) => Operation::Prepare(prepare_to_wire(call)),
        DriverCall::Service(call) => {
            let (parts, restart) = (Some(parts_to_wire(call.parts)), call.restart);
            Operation::Service(wire::ServiceCall { parts, restart })
        }
        DriverCall::Provision(call) => Operation::Provision(provision_to_wire(call)),
        DriverCall::Adopt { state, restart } => {
            let (state, restart) = (state.word().to_owned(), *restart);
            Operation::Adopt(wire::AdoptCall { state, restart })
        }
        &DriverCall::Deprovision { restart, cleaning_disabled } => {
            Operation::Deprovision(wire::DeprovisionCall { restart, cleaning_disabled })
        }
        &DriverCall::PowerOn { force } => Operation::PowerOn(wire::PowerOnCall { force }),
        &DriverCall::PowerOff { mode, force, cleaning_disabled } => {
            let hard = mode == RebootMode::Hard;
            Operation::PowerOff(wire::PowerOffCall { hard, force, cleaning_disabled })
        }
        &DriverCall::Detach { force } => Operation::Detach(wire::DetachCall { force }),
        DriverCall::Delete => Operation::Delete(wire::DeleteCall {}),
        DriverCall::AttachDataImage { url } => {
            Operation::AttachDataImage(wire::AttachDataImageCall { url: url.to_string() })
        }
        DriverCall::DetachDataImage => Operation::DetachDataImage(wire::DetachDataImageCall {}),
    };
    wire::DriverCall { operation: Some(operation) }
}

/// Reads the facts that a driver keeps.
///
/// # Errors
/// A word is unknown; the error names the field.
pub fn registration(facts: &wire::Registration) -> Result<Registration, Invalid> {
    Ok(Registration {
        address: facts.address.as_str().into(),
        disable_certificate_verification: facts.disable_certificate_verification,
        boot_mac: shared(facts.boot_mac.as_ref()),
        boot_mode: boot_mode(&facts.boot_mode)?,
        cleaning_disabled: facts.cleaning_disabled,
        image: facts.image.as_ref().map(spec::image),
        has_procedure: facts.has_procedure,
        disable_power_off: facts.disable_power_off,
        ramdisk: facts.ramdisk.as_ref().map(ramdisk),
        inspection: inspection(&facts.inspection)?,
    })
}

/// Returns the facts that a driver keeps for the wire.
pub fn registration_to_wire(facts: &Registration) -> wire::Registration {
    let ramdisk = |image: &Arc<RamdiskImage>| wire::RamdiskImage {
        url: image.url.to_string(),
        network_version: image.network_version.to_string(),
    };
    wire::Registration {
        address: facts.address.to_string(),
        disable_certificate_verification: facts.disable_certificate_verification,
        boot_mac: owned(facts.boot_mac.as_ref()),
        boot_mode: facts.boot_mode.word().to_owned(),
        cleaning_disabled: facts.cleaning_disabled,
        image: facts.image.as_ref().map(spec::image_to_wire),
        has_procedure: facts.has_procedure,
        disable_power_off: facts.disable_power_off,
        ramdisk: facts.ramdisk.as_ref().map(ramdisk),
        inspection: facts.inspection.word().to_owned(),
    }
}

/// Reads the changes that a call is about; unset means none.
pub fn parts(parts: Option<&wire::PreparationParts>) -> PreparationParts {
    parts.map_or_else(PreparationParts::default, |parts| PreparationParts {
        storage: parts.storage,
        settings: parts.settings,
        components: parts.components,
    })
}

/// Returns the changes that a call is about for the wire.
pub fn parts_to_wire(parts: PreparationParts) -> wire::PreparationParts {
    let PreparationParts { storage, settings, components } = parts;
    wire::PreparationParts { storage, settings, components }
}

fn ramdisk(image: &wire::RamdiskImage) -> Arc<RamdiskImage> {
    let (url, network_version) = (image.url.as_str().into(), image.network_version.as_str().into());
    Arc::new(RamdiskImage { url, network_version })
}

fn boot_mode(text: &str) -> Result<BootMode, Invalid> {
    word("call.boot_mode", text, BootMode::from_word)
}

fn inspection(text: &str) -> Result<InspectionMode, Invalid> {
    word("call.inspection", text, InspectionMode::from_word)
}

fn state(text: &str) -> Result<HostState, Invalid> {
    word("call.state", text, HostState::from_word)
}

fn register(call: &wire::RegisterCall) -> Result<RegisterCall, Invalid> {
    let facts = call.registration.as_ref().ok_or_else(|| missing("call.registration"))?;
    let operational = OperationalStatus::from_word;
    Ok(RegisterCall {
        registration: registration(facts)?,
        state: state(&call.state)?,
        operational: word("call.operational_status", &call.operational_status, operational)?,
        architecture: call.architecture.as_str().into(),
        credentials_changed: call.credentials_changed,
        restart: call.restart,
    })
}

fn register_to_wire(call: &RegisterCall) -> wire::RegisterCall {
    wire::RegisterCall {
        registration: Some(registration_to_wire(&call.registration)),
        state: call.state.word().to_owned(),
        operational_status: call.operational.word().to_owned(),
        architecture: call.architecture.to_string(),
        credentials_changed: call.credentials_changed,
        restart: call.restart,
    }
}

fn inspect(call: &wire::InspectCall) -> Result<InspectCall, Invalid> {
    Ok(InspectCall {
        boot_mode: boot_mode(&call.boot_mode)?,
        mode: inspection(&call.mode)?,
        architecture: call.architecture.as_str().into(),
        restart: call.restart,
        refresh: call.refresh,
        force_reboot: call.force_reboot,
    })
}

fn inspect_to_wire(call: &InspectCall) -> wire::InspectCall {
    wire::InspectCall {
        boot_mode: call.boot_mode.word().to_owned(),
        mode: call.mode.word().to_owned(),
        architecture: call.architecture.to_string(),
        restart: call.restart,
        refresh: call.refresh,
        force_reboot: call.force_reboot,
    }
}

fn prepare(call: &wire::PrepareCall) -> PrepareCall {
    PrepareCall {
        target_raid: call.target_raid.as_ref().map(spec::raid),
        actual_raid: call.actual_raid.as_ref().map(spec::raid),
        hints: call.hints.as_ref().map(spec::hints),
        parts: parts(call.parts.as_ref()),
        unprepared: call.unprepared,
        restart: call.restart,
    }
}

fn prepare_to_wire(call: &PrepareCall) -> wire::PrepareCall {
    wire::PrepareCall {
        target_raid: call.target_raid.as_ref().map(spec::raid_to_wire),
        actual_raid: call.actual_raid.as_ref().map(spec::raid_to_wire),
        hints: call.hints.as_ref().map(spec::hints_to_wire),
        parts: Some(parts_to_wire(call.parts)),
        unprepared: call.unprepared,
        restart: call.restart,
    }
}

fn provision(call: &wire::ProvisionCall) -> Result<ProvisionCall, Invalid> {
    Ok(ProvisionCall {
        system: call.system.as_ref().map(status::system).unwrap_or_default(),
        boot_mode: boot_mode(&call.boot_mode)?,
        hints: call.hints.as_ref().map(spec::hints),
        force_reboot: call.force_reboot,
    })
}

fn provision_to_wire(call: &ProvisionCall) -> wire::ProvisionCall {
    wire::ProvisionCall {
        system: Some(status::system_to_wire(&call.system)),
        boot_mode: call.boot_mode.word().to_owned(),
        hints: call.hints.as_ref().map(spec::hints_to_wire),
        force_reboot: call.force_reboot,
    }
}
