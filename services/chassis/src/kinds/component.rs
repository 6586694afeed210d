//! Components and their parts.

use std::{borrow::Cow, sync::Arc};

use domain::{
    boot::{
        component::{
            Action, ActualState, BegunBoot, BootPreparation, Component, ComponentEvaluation,
            ComponentInventory, ComponentPatch, ComponentPower, ComponentPreparation, ComponentWish,
            DesiredState, EventStats, InventoryPresence, LastAction, LateReport, NumberedToken, PauseHolder,
            PauseMark, Phase, PowerTurns, ReportedBoots, SessionReference, StagedState, Status,
            artifacts::BootArtifacts, filter, status::computed_status,
        },
        evaluation::current_version,
    },
    core::{
        decision::DecisionVersion,
        id::{ComponentId, Tenant},
        invalid::Invalid,
        shared_part::SharedPart,
        text::text,
        time::Timestamp,
    },
};
use proto::component as wire;

use super::{Interner, trouble};
use crate::{
    mesh::time,
    observe::mirror::{Mirror, MirroredKind},
    store::resource::{Facet, Resource, WireForm},
};

/// A component from the wire.
///
/// # Errors
/// When its id is not one, or a tenant has no possible name. The limits of the other members are the rules' business.
pub fn from_wire(component: wire::Component, interner: &mut Interner) -> Result<Component, Invalid> {
    let mut component = component;
    let mut read = Component {
        id: ComponentId::parse(&component.id)?,
        revision: component.revision,
        last_event: component.last_event,
        generation: component.generation,
        wish: wish_from_wire(&mut component, interner)?.into(),
        evaluation: evaluation_from_wire(&mut component, interner).into(),
        power: power_from_wire(&mut component, interner).into(),
        preparation: preparation_from_wire(&mut component, interner).into(),
        reported: reported_from_wire(&mut component, interner),
        inventory: ComponentInventory {
            presence: component.presence.map(presence_from_wire).unwrap_or_default(),
            locked: component.locked,
        }
        .into(),
    };
    interner.share_groups(&mut read);
    Ok(read)
}

/// The write of a client from the wire: only the members that a client may write.
///
/// # Errors
/// When a tenant has no possible name. The limits of the other members are the rules' business.
pub fn patch_from_wire(patch: wire::Component, interner: &mut Interner) -> Result<ComponentPatch, Invalid> {
    let mut patch = patch;
    let reported = reported_from_wire(&mut patch, interner);
    let wish = wish_from_wire(&mut patch, interner)?;
    let evaluation = evaluation_from_wire(&mut patch, interner);
    let power = power_from_wire(&mut patch, interner);
    Ok(ComponentPatch {
        actual_state: reported.actual_state,
        desired_state: wish.desired_state,
        staged_state: wish.staged_state,
        last_action: power.last_action,
        event_stats: power.event_stats,
        status: evaluation.status,
        enabled: wish.enabled,
        error: evaluation.error,
        session: wish.session,
        session_tenant: wish.session_tenant,
        retry_policy: wish.retry_policy,
    })
}

fn wish_from_wire(
    component: &mut wire::Component,
    interner: &mut Interner,
) -> Result<ComponentWish, Invalid> {
    let staged_state = component.staged_state.take();
    Ok(ComponentWish {
        desired_state: component.desired_state.take().map(|state| DesiredState {
            boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
            configuration: interner.share_any(state.configuration),
            bss_token: interner.share_any(state.bss_token),
            last_updated: state.last_updated.map(time::from_wire),
        }),
        staged_state: staged_state.map(|state| staged_state_from_wire(state, interner)).transpose()?,
        session: interner.share_any(component.session.take()),
        session_tenant: component.session_tenant.as_deref().map(Tenant::parse).transpose()?,
        assignment: interner.share(&component.assignment),
        latest_assignment: interner.share(&component.latest_assignment),
        trace: interner.share(&component.trace_parent),
        retry_policy: component.retry_policy,
        enabled: component.enabled,
        pause: component.pause.take().map(|mark| Arc::new(pause_from_wire(mark, interner))),
    })
}

/// Reads the mark of a paused session.
pub fn pause_from_wire(mark: wire::PauseMark, interner: &mut Interner) -> PauseMark {
    let since = mark.since.map(time::from_wire).unwrap_or_default();
    if mark.rollout { PauseMark::of_rollout(since) } else { PauseMark::by(interner.share(&mark.by), since) }
}

/// Encodes the mark of a paused session.
pub fn pause_to_wire(mark: &PauseMark) -> wire::PauseMark {
    let since = Some(time::to_wire(mark.since));
    match &mark.holder {
        PauseHolder::Client(by) => wire::PauseMark { by: by.to_string(), since, rollout: false },
        PauseHolder::Rollout => wire::PauseMark { by: String::new(), since, rollout: true },
    }
}

fn evaluation_from_wire(component: &mut wire::Component, interner: &mut Interner) -> ComponentEvaluation {
    let text = component.error.as_deref().unwrap_or_default();
    let error_kind = trouble::kind_from_wire(component.error_kind, text);
    let error = interner.share_any(component.error.take());
    let shown = error.clone().unwrap_or_default();
    ComponentEvaluation {
        status: component.status.take().map(|status| Status {
            phase: status.phase.and_then(phase_from_wire),
            status_override: interner.share_any(status.status_override),
        }),
        error,
        decided_by: component.decided_by.map(decided_by_from_wire).unwrap_or_default(),
        error_kind,
        error_begin: component
            .error_begin
            .take()
            .map(|begin| Arc::new(trouble::begin_from_wire(begin, &shown))),
        is_undecided: component.undecided,
    }
}

fn power_from_wire(component: &mut wire::Component, interner: &mut Interner) -> ComponentPower {
    ComponentPower {
        last_action: component.last_action.take().map(last_action_from_wire),
        event_stats: component.event_stats.map(|stats| EventStats {
            power_on_attempts: stats.power_on_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
        }),
        trouble: interner.trouble(component.power_error_kind, &component.power_error),
        turns: component.turns.map(turns_from_wire).unwrap_or_default(),
        acted_before: component.acted_before,
    }
}

fn preparation_from_wire(component: &mut wire::Component, interner: &mut Interner) -> ComponentPreparation {
    ComponentPreparation {
        outcome: component.preparation.take().map(|preparation| BootPreparation {
            generation: preparation.generation,
            attempt: preparation.attempt,
            trouble: interner.trouble(preparation.error_kind, &preparation.error),
        }),
        token: component.prepared_token.take().map(|token| token_from_wire(token, interner)),
    }
}

fn reported_from_wire(component: &mut wire::Component, interner: &mut Interner) -> ReportedBoots {
    ReportedBoots {
        actual_state: component.actual_state.take().map(|state| ActualState {
            boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
            bss_token: interner.share_any(state.bss_token),
            last_updated: state.last_updated.map(time::from_wire),
        }),
        boot: component.boot.take().filter(|_| tells_boots_apart()).map(|boot| {
            SharedPart::from(BegunBoot {
                generation: boot.generation,
                attempt: boot.attempt,
                token: token_from_wire(boot.token.unwrap_or_default(), interner),
                reported: boot.reported,
            })
        }),
        late_report: component.late_report.take().map(|late| {
            Arc::new(LateReport {
                token: interner.share(&late.token),
                boot_artifacts: artifacts_from_wire(late.boot_artifacts.unwrap_or_default(), interner),
                reported_at: late.reported_at.map(time::from_wire).unwrap_or_default(),
            })
        }),
        running_report: component.running_report.map(time::from_wire),
    }
}

#[cfg(feature = "simulation")]
fn tells_boots_apart() -> bool {
    !crate::simulation::PlantedDefect::OldReports.is_planted()
}

#[cfg(not(feature = "simulation"))]
fn tells_boots_apart() -> bool {
    true
}

fn token_from_wire(token: wire::NumberedToken, interner: &mut Interner) -> NumberedToken {
    NumberedToken { token: interner.share(&token.token), number: token.number }
}

fn token_to_wire(token: &NumberedToken) -> wire::NumberedToken {
    wire::NumberedToken { token: token.token.to_string(), number: token.number }
}

/// A component as it goes out, with its computed status.
pub fn to_wire(component: &Component) -> wire::Component {
    with_artifacts(component, artifacts_to_wire)
}

/// Encodes a component without the texts of its artifacts; only their times are kept.
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
    let Component { wish, evaluation, power, preparation, reported, inventory, .. } = component;
    wire::Component {
        id: component.id.as_str().to_owned(),
        actual_state: reported.actual_state.as_ref().map(|state| wire::ActualState {
            boot_artifacts: state.boot_artifacts.as_deref().map(&artifacts),
            bss_token: owned(&state.bss_token),
            last_updated: state.last_updated.map(time::to_wire),
        }),
        desired_state: wish.desired_state.as_ref().map(|state| wire::DesiredState {
            boot_artifacts: state.boot_artifacts.as_deref().map(&artifacts),
            configuration: owned(&state.configuration),
            bss_token: owned(&state.bss_token),
            last_updated: state.last_updated.map(time::to_wire),
        }),
        staged_state: wish.staged_state.as_ref().map(|state| wire::StagedState {
            boot_artifacts: state.boot_artifacts.as_deref().map(&artifacts),
            configuration: owned(&state.configuration),
            session: owned(&state.session),
            tenant: state.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
            assignment: state.assignment.to_string(),
            applied: state.applied,
            last_updated: state.last_updated.map(time::to_wire),
        }),
        last_action: power.last_action.as_ref().map(last_action_to_wire),
        event_stats: power.event_stats.as_ref().map(|stats| wire::EventStats {
            power_on_attempts: stats.power_on_attempts,
            power_off_graceful_attempts: stats.power_off_graceful_attempts,
            power_off_forceful_attempts: stats.power_off_forceful_attempts,
        }),
        status: evaluation.status.as_ref().map(|status| wire::Status {
            phase: status.phase.map(|phase| phase_to_wire(phase).into()),
            status_override: owned(&status.status_override),
            status: computed_status(component).word().to_owned(),
        }),
        enabled: wish.enabled,
        error: owned(&evaluation.error),
        session: owned(&wish.session),
        session_tenant: wish.session_tenant.as_ref().map(|tenant| tenant.as_str().to_owned()),
        retry_policy: wish.retry_policy,
        revision: component.revision,
        last_event: component.last_event,
        generation: component.generation,
        preparation: preparation.outcome.as_ref().map(|preparation| wire::BootPreparation {
            generation: preparation.generation,
            attempt: preparation.attempt,
            error: trouble::text_to_wire(preparation.trouble.as_deref()),
            error_kind: trouble::kind_to_wire(preparation.trouble.as_deref()).into(),
        }),
        assignment: wish.assignment.to_string(),
        latest_assignment: wish.latest_assignment.to_string(),
        trace_parent: wish.trace.to_string(),
        power_error: component.power_error().to_owned(),
        locked: inventory.locked,
        prepared_token: preparation.token.as_ref().map(token_to_wire),
        boot: reported.boot.as_ref().map(|boot| wire::BegunBoot {
            generation: boot.generation,
            attempt: boot.attempt,
            token: Some(token_to_wire(&boot.token)),
            reported: boot.reported,
        }),
        late_report: reported.late_report.as_ref().map(|late| wire::LateReport {
            token: late.token.to_string(),
            boot_artifacts: Some(artifacts_to_wire(&late.boot_artifacts)),
            reported_at: Some(time::to_wire(late.reported_at)),
        }),
        running_report: reported.running_report.map(time::to_wire),
        presence: presence_to_wire(&inventory.presence),
        decided_by: decided_by_to_wire(evaluation.decided_by),
        turns: turns_to_wire(power.turns),
        error_kind: trouble::kind_to_wire(component.error_trouble().as_ref()).into(),
        power_error_kind: trouble::kind_to_wire(power.trouble.as_deref()).into(),
        error_begin: evaluation
            .error_begin
            .as_deref()
            .map(|begin| trouble::begin_to_wire(begin, component.error_text())),
        undecided: evaluation.is_undecided,
        acted_before: power.acted_before,
        pause: wish.pause.as_deref().map(pause_to_wire),
    }
}

fn presence_from_wire(presence: wire::InventoryPresence) -> InventoryPresence {
    let since = presence.since.map(time::from_wire).unwrap_or_default();
    match presence.listing() {
        wire::InventoryListing::Unspecified => {
            InventoryPresence::Unknown { trouble: text(&presence.trouble) }
        }
        wire::InventoryListing::Listed => InventoryPresence::Listed,
        wire::InventoryListing::Doubtful => InventoryPresence::Doubtful { since },
        wire::InventoryListing::Absent => InventoryPresence::Absent { since },
    }
}

fn presence_to_wire(presence: &InventoryPresence) -> Option<wire::InventoryPresence> {
    let (listing, since, trouble) = match presence {
        InventoryPresence::Unknown { trouble } if trouble.is_empty() => return None,
        InventoryPresence::Unknown { trouble } => {
            (wire::InventoryListing::Unspecified, None, trouble.to_string())
        }
        InventoryPresence::Listed => (wire::InventoryListing::Listed, None, String::new()),
        InventoryPresence::Doubtful { since } => {
            (wire::InventoryListing::Doubtful, Some(*since), String::new())
        }
        InventoryPresence::Absent { since } => (wire::InventoryListing::Absent, Some(*since), String::new()),
    };
    Some(wire::InventoryPresence { listing: listing.into(), since: since.map(time::to_wire), trouble })
}

/// The version of a decision from the wire.
pub fn decided_by_from_wire(version: wire::DecisionVersion) -> DecisionVersion {
    if rules_count_alike() {
        return current_version(0);
    }
    DecisionVersion { rules: version.rules, options: version.options_revision }
}

#[cfg(feature = "simulation")]
fn rules_count_alike() -> bool {
    crate::simulation::PlantedDefect::EqualRules.is_planted()
}

#[cfg(not(feature = "simulation"))]
fn rules_count_alike() -> bool {
    false
}

/// Encodes the version of a decision; `None`: there is no decision.
pub fn decided_by_to_wire(version: DecisionVersion) -> Option<wire::DecisionVersion> {
    let wire = wire::DecisionVersion { rules: version.rules, options_revision: version.options };
    (version != DecisionVersion::default()).then_some(wire)
}

fn turns_from_wire(turns: wire::PowerTurns) -> PowerTurns {
    PowerTurns { count: turns.count, last: action_from_wire(turns.last_action) }
}

fn turns_to_wire(turns: PowerTurns) -> Option<wire::PowerTurns> {
    let last_action = action_to_wire(turns.last?).into();
    Some(wire::PowerTurns { count: turns.count, last_action })
}

/// Boot artifacts from the wire, shared as a whole and with their texts.
pub fn artifacts_from_wire(artifacts: wire::BootArtifacts, interner: &mut Interner) -> Arc<BootArtifacts> {
    let artifacts = BootArtifacts {
        kernel: interner.share_any(artifacts.kernel),
        kernel_parameters: interner.share_any(artifacts.kernel_parameters),
        initrd: interner.share_any(artifacts.initrd),
        timestamp: artifacts.timestamp.map(time::from_wire),
    };
    interner.artifacts(artifacts)
}

/// Boot artifacts as they go out.
pub fn artifacts_to_wire(artifacts: &BootArtifacts) -> wire::BootArtifacts {
    wire::BootArtifacts {
        kernel: owned(&artifacts.kernel),
        kernel_parameters: owned(&artifacts.kernel_parameters),
        initrd: owned(&artifacts.initrd),
        timestamp: artifacts.timestamp.map(time::to_wire),
    }
}

fn owned(text: &Option<Arc<str>>) -> Option<String> {
    text.as_deref().map(str::to_owned)
}

/// A session from the wire, as a component names it.
///
/// # Errors
/// When its tenant has no possible name.
pub fn reference_from_wire(reference: wire::SessionReference) -> Result<SessionReference, Invalid> {
    let tenant = reference.tenant.as_deref().map(Tenant::parse).transpose()?;
    Ok(SessionReference { name: text(&reference.name), tenant, id: text(&reference.id) })
}

/// A session for the wire, as a component names it.
pub fn reference_to_wire(reference: SessionReference) -> wire::SessionReference {
    let tenant = reference.tenant.map(|tenant| tenant.as_str().to_owned());
    wire::SessionReference { name: reference.name.to_string(), tenant, id: reference.id.to_string() }
}

fn staged_state_from_wire(
    state: wire::StagedState,
    interner: &mut Interner,
) -> Result<Arc<StagedState>, Invalid> {
    let staged = StagedState {
        boot_artifacts: state.boot_artifacts.map(|artifacts| artifacts_from_wire(artifacts, interner)),
        configuration: interner.share_any(state.configuration),
        session: interner.share_any(state.session),
        tenant: state.tenant.as_deref().map(Tenant::parse).transpose()?,
        assignment: interner.share(&state.assignment),
        applied: state.applied,
        last_updated: state.last_updated.map(time::from_wire),
    };
    Ok(interner.staged(staged))
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

/// Returns the action with that number; `None` for an unspecified or unknown one.
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

/// Returns the phase with that number; `None` for an unspecified or unknown one.
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

impl Resource for Component {
    const KIND: &'static str = "component";

    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn shared_key(&self) -> Arc<str> {
        self.id.shared()
    }

    fn share_key(&mut self, other: &Self) {
        self.id = other.id.clone();
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }

    fn weight(&self) -> usize {
        // As if its groups were its own.
        size_of::<Self>()
            + size_of::<ComponentWish>()
            + size_of::<ComponentEvaluation>()
            + size_of::<ComponentPower>()
            + size_of::<ComponentPreparation>()
            + self.error_text().len()
            + self.power_error().len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        filter::facets(self)
    }
}

impl Mirror<Component> {
    /// The ids of the components that are enabled, in no particular order.
    pub fn enabled(&self) -> impl Iterator<Item = ComponentId> {
        let enabled = self.all().into_iter().filter(|component| component.is_enabled());
        enabled.map(|component| component.id.clone())
    }
}

impl WireForm for Component {
    type Message = wire::Component;
    type Pool = Interner;

    fn to_wire(&self) -> Cow<'_, wire::Component> {
        Cow::Owned(to_wire(self))
    }

    fn from_wire(message: wire::Component, interner: &mut Interner) -> Result<Self, Invalid> {
        from_wire(message, interner)
    }
}

impl MirroredKind for Component {
    fn began(&self) -> Option<Timestamp> {
        self.last_action_at()
    }

    fn with_began(self: &Arc<Self>, began: Timestamp) -> Arc<Self> {
        let mut component = Self::clone(self);
        if let Some(last) = &mut component.power.last_action {
            last.last_updated = Some(began);
        }
        Arc::new(component)
    }
}

#[cfg(test)]
mod tests {
    use domain::core::trouble::{Trouble, TroubleKind};

    use super::*;

    fn record() -> wire::Component {
        wire::Component {
            id: "x1".into(),
            error: Some("waiting for CFS".into()),
            power_error: "no results from PCS".into(),
            preparation: Some(wire::BootPreparation { error: "no such host".into(), ..Default::default() }),
            ..wire::Component::default()
        }
    }

    #[test]
    fn a_record_without_kinds_goes_on_as_before() {
        let component = from_wire(record(), &mut Interner::default()).unwrap();
        assert_eq!(component.evaluation.error_kind, TroubleKind::Waiting);
        assert_eq!(component.power_trouble_kind(), Some(TroubleKind::NoResults));
        let preparation = component.preparation.outcome.as_ref().unwrap();
        assert_eq!(preparation.trouble.as_ref().unwrap().kind(), TroubleKind::Failed);
    }

    #[test]
    fn a_record_keeps_its_kinds() {
        let mut component = from_wire(record(), &mut Interner::default()).unwrap();
        component.evaluation.error_kind = TroubleKind::Failed;
        component.power.trouble = Trouble::failed("waiting for the BMC").map(Arc::new);
        component.wish.pause = Some(PauseMark::by("alice", Timestamp(7)).into());
        assert_eq!(from_wire(to_wire(&component), &mut Interner::default()), Ok(component));
    }
}
