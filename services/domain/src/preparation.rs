//! What has to be in place before a node is switched on (BOS reference 5.5, steps 2 to 5).

use crate::{
    artifacts::BootArtifacts,
    component::{Action, Component},
    status::{self, computed_status},
};

/// What to do about the coming power-on of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreparationDecision {
    /// Put boot data and configuration in place, then report.
    Prepare(Preparation),
    /// Leave it alone until the record changes.
    Nothing {
        /// Why.
        reason: PreparationIdle,
    },
}

/// One preparation of one power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// The power-on attempt to prepare, counted from 1.
    pub attempt: u32,
    /// Boot data to give to the boot script server; `None`: all texts are empty and none are given.
    pub artifacts: Option<BootArtifacts>,
    /// Configuration to set, disabled and with its state cleared; empty: none.
    pub configuration: String,
    /// Name of the session to note beside the configuration; empty: none.
    pub session: String,
    /// The same preparation failed before: the caller spaces repeats by a growing pause.
    pub retry: bool,
}

/// Why nothing is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PreparationIdle {
    /// The component is not enabled.
    NotEnabled,
    /// The component does not wait to be switched on.
    NotPending,
    /// Everything is in place.
    Prepared,
}

impl PreparationIdle {
    /// The reason as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotEnabled => "not_enabled",
            Self::NotPending => "not_pending",
            Self::Prepared => "prepared",
        }
    }
}

/// Decides whether the coming power-on of `component` has to be prepared.
///
/// Every attempt is prepared anew: between two attempts the boot script server may have lost the boot data,
/// and the configuration state of the last boot must not count for the next.
pub fn decide(component: &Component) -> PreparationDecision {
    if !component.is_enabled() {
        return nothing(PreparationIdle::NotEnabled);
    }
    if computed_status(component) != status::POWER_ON_PENDING {
        return nothing(PreparationIdle::NotPending);
    }
    let attempt = component.attempts(Action::PoweringOn) + 1;
    let before = component
        .preparation
        .as_ref()
        .filter(|done| done.generation == component.generation && done.attempt == attempt);
    if before.is_some_and(|done| done.error.is_empty()) {
        return nothing(PreparationIdle::Prepared);
    }
    PreparationDecision::Prepare(Preparation {
        attempt,
        artifacts: component.desired_artifacts().filter(|artifacts| !artifacts.is_empty()).cloned(),
        configuration: component.desired_configuration().unwrap_or_default().to_owned(),
        session: component.session_name().to_owned(),
        retry: before.is_some(),
    })
}

fn nothing(reason: PreparationIdle) -> PreparationDecision {
    PreparationDecision::Nothing { reason }
}
