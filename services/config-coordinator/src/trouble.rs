//! Troubles with putting things in place for a component, in words that begin as those of BOS do (BOS reference A.3).

use std::{fmt::Display, sync::Arc};

use domain::{
    boot::evaluation::ERROR_CONFIGURATION_MISSING,
    core::trouble::{Trouble, TroubleKind},
};

use crate::{step::Step, upstream::Failure};

/// Trouble of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepTrouble {
    /// An upstream refused what was to be put in place for this very component. It counts as an attempt.
    Refused(Arc<str>),
    /// An upstream did not do it, whoever the component: it is waited for, and nothing is counted.
    Awaited(Arc<str>),
    /// An upstream refuses or denies every component: it is waited for as well, and asked again after longer pauses.
    Refusing(Arc<str>),
    /// The configuration upstream does not have the node, so it is held until it does. Nothing is counted.
    Missing,
}

impl StepTrouble {
    /// Makes the trouble of an upstream that refuses this very component, or what is wanted for it.
    pub(crate) fn refused(step: Step, failure: &Failure) -> Self {
        Self::Refused(format!("{}{failure}", step.prefix()).into())
    }

    /// Makes the trouble of an upstream that refuses or denies everybody, so nobody has judged the component.
    pub(crate) fn refusing(failure: &Failure) -> Self {
        Self::Refusing(waiting_for(failure))
    }

    /// Makes the trouble of waiting for something else than an answer.
    pub(crate) fn awaited(what: impl Display) -> Self {
        Self::Awaited(waiting_for(what))
    }

    /// Returns the trouble as the rules know it, if `step` has it.
    pub(crate) fn of(&self, step: Step) -> Trouble {
        match self {
            Self::Refused(text) => Trouble::own(step.refusal(), text),
            Self::Awaited(text) | Self::Refusing(text) => Trouble::own(TroubleKind::Waiting, text),
            Self::Missing => Trouble::own(TroubleKind::Held, ERROR_CONFIGURATION_MISSING),
        }
    }
}

/// Returns the text about something awaited.
pub(crate) fn waiting_for(what: impl Display) -> Arc<str> {
    Arc::clone(Trouble::waiting_for(what).text())
}
