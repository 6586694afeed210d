//! Why something is not in place for a component, in words that begin as those of BOS do (BOS reference A.3).

use std::{fmt::Display, sync::Arc};

use domain::{
    evaluation::{ERROR_CONFIGURATION_MISSING, ERROR_CONFIGURATION_REFUSED},
    trouble::{self, TroubleKind},
};

use crate::upstream::Failure;

/// A step of putting things in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Having the root file system of the image served.
    Images,
    /// Giving boot data to the boot script server.
    BootParameters,
    /// Telling the configuration service what is wanted.
    Configuration,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// An upstream refused what was to be put in place for this very component. It counts as an attempt.
    Refused(Arc<str>),
    /// An upstream did not do it, whoever the component: it is waited for, and nothing is counted.
    Awaited(Arc<str>),
    /// An upstream refuses every component: it is waited for as well, and asked again after longer pauses.
    Refusing(Arc<str>),
    /// The configuration upstream does not have the node, so it is held until it does. Nothing is counted.
    Missing,
}

impl Step {
    pub(crate) const ALL: [Self; 3] = [Self::Images, Self::BootParameters, Self::Configuration];

    /// The step as one word of the database.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::BootParameters => "boot_parameters",
            Self::Configuration => "configuration",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Images => "Error encountered tagging images ",
            Self::BootParameters => "Error encountered setting BSS information: ",
            Self::Configuration => ERROR_CONFIGURATION_REFUSED,
        }
    }

    /// Kind of a refusal in this step. A configuration may be taken later without another attempt at a boot.
    fn refusal(self) -> TroubleKind {
        match self {
            Self::Images | Self::BootParameters => TroubleKind::Failed,
            Self::Configuration => TroubleKind::ConfigurationRefused,
        }
    }
}

impl Trouble {
    /// The upstream refuses this very component, or what is wanted for it.
    pub(crate) fn refused(step: Step, failure: &Failure) -> Self {
        Self::Refused(format!("{}{failure}", step.prefix()).into())
    }

    /// The upstream refuses everybody, so nobody has judged the component.
    pub(crate) fn refusing(failure: &Failure) -> Self {
        Self::Refusing(waiting_for(failure))
    }

    /// Something else than an answer is waited for.
    pub(crate) fn awaited(what: impl Display) -> Self {
        Self::Awaited(waiting_for(what))
    }

    /// The trouble as the rules know it, when it is one with that step.
    pub(crate) fn of(&self, step: Step) -> trouble::Trouble {
        match self {
            Self::Refused(text) => trouble::Trouble::own(step.refusal(), text),
            Self::Awaited(text) | Self::Refusing(text) => trouble::Trouble::own(TroubleKind::Waiting, text),
            Self::Missing => trouble::Trouble::own(TroubleKind::Held, ERROR_CONFIGURATION_MISSING),
        }
    }
}

/// The text about something that is waited for.
pub(crate) fn waiting_for(what: impl Display) -> Arc<str> {
    Arc::clone(trouble::Trouble::waiting_for(what).text())
}
