//! Components and their parts.

use domain::{
    artifacts::BootArtifacts,
    component::{
        Action, ActualState, BootPreparation, Component, DesiredState, EventStats, LastAction, Phase,
        SessionReference, StagedState, Status,
    },
    id::{ComponentId, Tenant},
    invalid::Invalid,
    status::computed_status,
};
use proto::component as wire;

use super::{Interner, time};

/// A component from the wire.
///
/// # Errors
/// When its id is not one, or a tenant has no possible name. The limits of the other members are the rules' business.
pub fn from_wire(component: wire::Component, interner: &mut Interner) -> Result<Component, Invalid> {
    Ok(Component {
        id: ComponentId::parse(&component.id)?,
        actual_state: component.actual_state.map(|state| ActualState {
            boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
            bss_token: state.bss_token,
            last_updated: state.last_updated.map(time::from_wire),
        }),
        desired_state: component.desired_state.map(|state| DesiredState {
            boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
            configuration: state.configuration,
            bss_token: state.bss_token,
            last_updated: state.last_updated.map(time::from_wire),
        }),
        staged_state: component
            .staged_state
            .map(|state| staged_state_from_wire(state, interner))
            .transpose()?,
        last_action: component.last_action.map(last_action_from_wire),
        event_stats: component.event_stats.map(|stats| EventStats {
            power_on_attempts: stats.power_on_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
        }),
        status: component.status.map(|status| Status {
            phase: status.phase.and_then(phase_from_wire),
            status_override: status.status_override,
        }),
        enabled: component.enabled,
        error: component.error,
        session: component.session,
        session_tenant: component.session_tenant.as_deref().map(Tenant::parse).transpose()?,
        retry_policy: component.retry_policy,
        revision: component.revision,
        generation: component.generation,
        preparation: component.preparation.map(|preparation| BootPreparation {
            generation: preparation.generation,
            attempt: preparation.attempt,
            error: preparation.error,
        }),
        assignment: component.assignment,
        latest_assignment: component.latest_assignment,
        power_error: component.power_error,
        locked: component.locked,
    })
}

/// A component as it goes out, with its computed status.
pub fn to_wire(component: &Component) -> wire::Component {
    with_artifacts(component, artifacts_to_wire)
}

/// The same without the texts of its artifacts, of which only the times are told.
pub fn to_wire_without_texts(component: &Component) -> wire::Component {
    let times = |artifacts: &BootArtifacts| wire::BootArtifacts {
        timestamp: artifacts.timestamp.map(time::to_wire),
        ..wire::BootArtifacts::default()
    };
    with_artifacts(component, times)
}

fn with_artifacts(
    component: &Component,
    artifacts: impl Fn(&BootArtifacts) -> wire::BootArtifacts,
) -> wire::Component {
    wire::Component {
        id: component.id.as_str().to_owned(),
        actual_state: component.actual_state.as_ref().map(|state| wire::ActualState {
            boot_artifacts: state.boot_artifacts.as_ref().map(&artifacts),
            bss_token: state.bss_token.clone(),
            last_updated: state.last_updated.map(time::to_wire),
        }),
        desired_state: component.desired_state.as_ref().map(|state| wire::DesiredState {
            boot_artifacts: state.boot_artifacts.as_ref().map(&artifacts),
            configuration: state.configuration.clone(),
            bss_token: state.bss_token.clone(),
            last_updated: state.last_updated.map(time::to_wire),
        }),
        staged_state: component.staged_state.as_ref().map(|state| wire::StagedState {
            boot_artifacts: state.boot_artifacts.as_ref().map(&artifacts),
            configuration: state.configuration.clone(),
            session: state.session.clone(),
            tenant: state.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
            assignment: state.assignment.clone(),
            applied: state.applied,
            last_updated: state.last_updated.map(time::to_wire),
        }),
        last_action: component.last_action.as_ref().map(last_action_to_wire),
        event_stats: component.event_stats.as_ref().map(|stats| wire::EventStats {
            power_on_attempts: stats.power_on_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
        }),
        status: component.status.as_ref().map(|status| wire::Status {
            phase: status.phase.map(|phase| phase_to_wire(phase).into()),
            status_override: status.status_override.clone(),
            status: computed_status(component).to_owned(),
        }),
        enabled: component.enabled,
        error: component.error.clone(),
        session: component.session.clone(),
        session_tenant: component.session_tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
        retry_policy: component.retry_policy,
        revision: component.revision,
        generation: component.generation,
        preparation: component.preparation.as_ref().map(|preparation| wire::BootPreparation {
            generation: preparation.generation,
            attempt: preparation.attempt,
            error: preparation.error.clone(),
        }),
        assignment: component.assignment.clone(),
        latest_assignment: component.latest_assignment.clone(),
        power_error: component.power_error.clone(),
        locked: component.locked,
    }
}

/// Boot artifacts from the wire, sharing their texts.
pub fn artifacts_from_wire(artifacts: wire::BootArtifacts, interner: &mut Interner) -> BootArtifacts {
    let mut share = |text: Option<String>| text.map(|text| interner.share(&text));
    BootArtifacts {
        kernel: share(artifacts.kernel),
        kernel_parameters: share(artifacts.kernel_parameters),
        initrd: share(artifacts.initrd),
        timestamp: artifacts.timestamp.map(time::from_wire),
    }
}

/// Boot artifacts as they go out.
pub fn artifacts_to_wire(artifacts: &BootArtifacts) -> wire::BootArtifacts {
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
    wire::BootArtifacts {
        kernel: text(&artifacts.kernel),
        kernel_parameters: text(&artifacts.kernel_parameters),
        initrd: text(&artifacts.initrd),
        timestamp: artifacts.timestamp.map(time::to_wire),
    }
}

/// A session from the wire, as a component names it.
///
/// # Errors
/// When its tenant has no possible name.
pub fn reference_from_wire(reference: wire::SessionReference) -> Result<SessionReference, Invalid> {
    let tenant = reference.tenant.as_deref().map(Tenant::parse).transpose()?;
    Ok(SessionReference { name: reference.name, tenant, id: reference.id })
}

/// A session for the wire, as a component names it.
pub fn reference_to_wire(reference: SessionReference) -> wire::SessionReference {
    let tenant = reference.tenant.map(|tenant| tenant.as_str().to_owned());
    wire::SessionReference { name: reference.name, tenant, id: reference.id }
}

fn staged_state_from_wire(state: wire::StagedState, interner: &mut Interner) -> Result<StagedState, Invalid> {
    Ok(StagedState {
        boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
        configuration: state.configuration,
        session: state.session,
        tenant: state.tenant.as_deref().map(Tenant::parse).transpose()?,
        assignment: state.assignment,
        applied: state.applied,
        last_updated: state.last_updated.map(time::from_wire),
    })
}

fn last_action_from_wire(last: wire::LastAction) -> LastAction {
    LastAction {
        action: last.action.and_then(action_from_wire),
        failed: last.failed,
        last_updated: last.last_updated.map(time::from_wire),
    }
}

fn last_action_to_wire(last: &LastAction) -> wire::LastAction {
    wire::LastAction {
        action: last.action.map(|action| action_to_wire(action).into()),
        failed: last.failed,
        last_updated: last.last_updated.map(time::to_wire),
    }
}

/// The action of that number; none for an unspecified or unknown one.
pub fn action_from_wire(action: i32) -> Option<Action> {
    match wire::Action::try_from(action).ok()? {
        wire::Action::Unspecified => None,
        wire::Action::ActualStateCleanup => Some(Action::ActualStateCleanup),
        wire::Action::ApplyStaged => Some(Action::ApplyStaged),
        wire::Action::NewlyDiscovered => Some(Action::NewlyDiscovered),
        wire::Action::PoweringOffForcefully => Some(Action::PoweringOffForcefully),
        wire::Action::PoweringOffGracefully => Some(Action::PoweringOffGracefully),
        wire::Action::PoweringOn => Some(Action::PoweringOn),
        wire::Action::SessionSetup => Some(Action::SessionSetup),
    }
}

/// An action as it goes out.
pub fn action_to_wire(action: Action) -> wire::Action {
    match action {
        Action::ActualStateCleanup => wire::Action::ActualStateCleanup,
        Action::ApplyStaged => wire::Action::ApplyStaged,
        Action::NewlyDiscovered => wire::Action::NewlyDiscovered,
        Action::PoweringOffForcefully => wire::Action::PoweringOffForcefully,
        Action::PoweringOffGracefully => wire::Action::PoweringOffGracefully,
        Action::PoweringOn => wire::Action::PoweringOn,
        Action::SessionSetup => wire::Action::SessionSetup,
    }
}

/// The phase of that number; none for an unspecified or unknown one.
pub fn phase_from_wire(phase: i32) -> Option<Phase> {
    match wire::Phase::try_from(phase).ok()? {
        wire::Phase::Unspecified => None,
        wire::Phase::None => Some(Phase::None),
        wire::Phase::PoweringOn => Some(Phase::PoweringOn),
        wire::Phase::PoweringOff => Some(Phase::PoweringOff),
        wire::Phase::Configuring => Some(Phase::Configuring),
    }
}

/// A phase as it goes out.
pub fn phase_to_wire(phase: Phase) -> wire::Phase {
    match phase {
        Phase::None => wire::Phase::None,
        Phase::PoweringOn => wire::Phase::PoweringOn,
        Phase::PoweringOff => wire::Phase::PoweringOff,
        Phase::Configuring => wire::Phase::Configuring,
    }
}
