//! Turning points of a component: the decisions that an operator looks for in a log.

use super::Decision;
use crate::{
    boot::component::{
        Component,
        status::{ComponentStatus, computed_status},
    },
    core::trouble::TroubleKind,
};

/// Turning point in the work on a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecisionNotice {
    /// The component was given up.
    Failed,
    /// The component waits for evidence that an upstream or an operator has to give.
    Held,
    /// The node is as wanted.
    Reached,
}

impl DecisionNotice {
    /// Returns the word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Reached => "reached",
        }
    }
}

impl Decision {
    /// Returns the turning point that the decision is for `component`; `None`: the component goes on, or was there
    /// before. A repeated decision about the same evidence is none.
    pub fn notice(&self, component: &Component) -> Option<DecisionNotice> {
        let status = computed_status(component);
        if self.reason.is_success() && (self.settled || status != ComponentStatus::STABLE) {
            return Some(DecisionNotice::Reached);
        }
        if self.settled {
            return (status != ComponentStatus::Failed).then_some(DecisionNotice::Failed);
        }
        let trouble = self.error.trouble()?;
        let holds = match trouble.kind() {
            TroubleKind::Held | TroubleKind::NotListed => true,
            TroubleKind::Failed
            | TroubleKind::Exhausted
            | TroubleKind::ConfigurationRefused
            | TroubleKind::Waiting
            | TroubleKind::NoResults
            | TroubleKind::Paused => false,
        };
        (holds && component.evaluation.trouble().as_ref() != Some(trouble)).then_some(DecisionNotice::Held)
    }
}
