//! Effects of a session on one node.

use std::{collections::HashMap, sync::Arc};

use super::PlanInputs;
use crate::{
    boot::{
        bos::options::Options,
        component::{
            Component, Phase,
            report::{Assignment, record},
        },
        configuration::ConfigurationObservation,
        evaluation::{Evidence, evaluate},
        power::PowerObservation,
        session::{
            Progress, Session,
            completion::{Stake, stake},
        },
    },
    core::{id::ComponentId, time::Timestamp},
};

/// Action on a node that is expected of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlannedAction {
    /// The node is as the session wants it.
    Nothing,
    /// The node runs the wanted boot, and is configured anew.
    Configure,
    /// The node is switched on.
    PowerOn,
    /// The node is switched off gracefully.
    PowerOff,
    /// The node is switched off gracefully, then on.
    Restart,
    /// The state is staged, and the node acts once it is applied.
    Stage,
    /// The action depends on a power reading or a target state that is unknown.
    Unknown,
}

impl PlannedAction {
    /// Every action, in the order of [`Ord`].
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Configure,
        Self::PowerOn,
        Self::PowerOff,
        Self::Restart,
        Self::Stage,
        Self::Unknown,
    ];

    /// Returns the word for the action.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Configure => "configure",
            Self::PowerOn => "power_on",
            Self::PowerOff => "power_off",
            Self::Restart => "restart",
            Self::Stage => "stage",
            Self::Unknown => "unknown",
        }
    }
}

/// Node that a session would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedNode {
    /// Id of the node.
    pub id: ComponentId,
    /// Boot set that takes the node.
    pub boot_set: Arc<str>,
    /// Power of the node when the plan was made.
    pub power: PowerObservation,
    /// Action that is expected.
    pub action: PlannedAction,
    /// Number of the difference between the states in [`SessionPlan::changes`](super::SessionPlan::changes); `None`: there
    /// is no difference, or no target state.
    pub change: Option<usize>,
    /// Name of the session under way that loses the node, or its stage in the node, to this one.
    pub held_by: Option<Arc<str>>,
}

impl PlannedNode {
    /// Returns whether the power of the node is known.
    pub fn is_known(&self) -> bool {
        match self.power {
            PowerObservation::On | PowerObservation::OnAgain | PowerObservation::Off => true,
            PowerObservation::OffInDoubt
            | PowerObservation::Unknown
            | PowerObservation::Missing
            | PowerObservation::Undefined { .. } => false,
        }
    }
}

/// Returns the action that follows from an assignment: that of the decisions about the record that the assignment leaves.
/// The configuration of a node counts as that of its record, as the configuration upstream is not asked.
pub(super) fn expected(
    component: &Component,
    assignment: &Assignment,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> PlannedAction {
    if assignment.stage {
        return PlannedAction::Stage;
    }
    // A record that another session has taken meanwhile leaves nothing to expect.
    let Ok(Some(assigned)) = record(component, assignment, now) else { return PlannedAction::Unknown };
    let configuration = component.desired_configuration().unwrap_or_default();
    let next = |power: &PowerObservation| {
        let evidence = Evidence {
            power: power.clone(),
            begun_actions: 0,
            configuration: ConfigurationObservation::Known {
                desired: Some(configuration.to_owned()),
                status: "configured".to_owned(),
            },
            power_trouble: None,
            configuration_trouble: None,
        };
        let decision = evaluate(&assigned, &evidence, options, now);
        let is_known = !decision.reason.is_waiting() && !decision.reason.is_held();
        is_known.then_some(decision.phase)
    };
    match next(power) {
        None => PlannedAction::Unknown,
        Some(Phase::None) => PlannedAction::Nothing,
        Some(Phase::Configuring) => PlannedAction::Configure,
        Some(Phase::PoweringOn) => PlannedAction::PowerOn,
        Some(Phase::PoweringOff) => match next(&PowerObservation::Off) {
            Some(Phase::PoweringOn) => PlannedAction::Restart,
            Some(Phase::None | Phase::Configuring | Phase::PoweringOff) => PlannedAction::PowerOff,
            // The node has reported just now, so "off" is not believed yet. It is once the node was switched off.
            None if assigned.kernel_wanted() => PlannedAction::Restart,
            None => PlannedAction::PowerOff,
        },
    }
}

/// Running sessions by name; those of different tenants may have the same name.
pub(super) struct Holders<'a> {
    running: HashMap<&'a str, Vec<(&'a Session, Arc<str>)>>,
    complete_applied: bool,
    /// Stake that this session takes over.
    taken: Stake,
}

impl<'a> Holders<'a> {
    pub(super) fn of(inputs: PlanInputs<'a>) -> Self {
        let mut running: HashMap<_, Vec<_>> = HashMap::new();
        for session in inputs.under_way.iter().filter(|one| one.progress == Progress::Running) {
            let name = session.name.as_str();
            running.entry(name).or_default().push((session, Arc::from(name)));
        }
        let taken = if inputs.session.stage { Stake::Staged } else { Stake::Owned };
        Self { running, complete_applied: inputs.complete_applied, taken }
    }

    /// Returns the name of the session that loses the component.
    pub(super) fn of_component(&self, component: &Component) -> Option<Arc<str>> {
        let name = match self.taken {
            Stake::Owned => component.session_name(),
            Stake::Staged => component.staged_session_name(),
        };
        let mut named = self.running.get(name)?.iter();
        let holder = named.find(|(session, _)| {
            stake(component, session, self.complete_applied).is_some_and(|stake| stake == self.taken)
        });
        holder.map(|(_, name)| Arc::clone(name))
    }
}
