//! Troubles with putting data in place for a component, in texts that begin as those of BOS do (BOS reference A.3).

use std::{fmt::Display, sync::Arc};

use domain::{
    boot::evaluation::ERROR_CONFIGURATION_MISSING,
    core::trouble::{Trouble, TroubleKind},
};

use crate::{step::PlacingStep, upstream::Failure};

/// Trouble of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepTrouble {
    /// An upstream refused the data for this very component. The refusal counts as an attempt.
    Refused(Arc<str>),
    /// An upstream failed, whichever the component: it is waited for, and no attempt is counted.
    Awaited(Arc<str>),
    /// An upstream refuses or denies every component: it is waited for as well, and called again after longer pauses.
    Refusing(Arc<str>),
    /// The configuration upstream does not have the node, so the node is held until it does. No attempt is counted.
    Missing,
}

impl StepTrouble {
    /// Returns the trouble of an upstream that refuses this very component, or its data.
    pub(crate) fn refused(step: PlacingStep, failure: &Failure) -> Self {
        Self::Refused(format!("{}{failure}", step.prefix()).into())
    }

    /// Returns the trouble of an upstream that refuses or denies every component, so that the component was not judged.
    pub(crate) fn refusing(failure: &Failure) -> Self {
        Self::Refusing(waiting_for(failure))
    }

    /// Returns the trouble of waiting for something else than an answer.
    pub(crate) fn awaited(what: impl Display) -> Self {
        Self::Awaited(waiting_for(what))
    }

    /// Returns the trouble in the form of the rules, if `step` has it.
    pub(crate) fn of(&self, step: PlacingStep) -> Trouble {
        match self {
            Self::Refused(text) => Trouble::own(step.refusal(), text),
            Self::Awaited(text) | Self::Refusing(text) => Trouble::own(TroubleKind::Waiting, text),
            Self::Missing => Trouble::own(TroubleKind::Held, ERROR_CONFIGURATION_MISSING),
        }
    }
}

/// Returns the text about an awaited peer or event.
pub(crate) fn waiting_for(what: impl Display) -> Arc<str> {
    Arc::clone(Trouble::waiting_for(what).text())
}
