//! Why something is not in place for a component, in words that begin as those of BOS do (BOS reference A.3).

use std::{fmt::Display, sync::Arc};

use domain::evaluation::{ERROR_CONFIGURATION_MISSING, ERROR_CONFIGURATION_REFUSED, WAITING_FOR};

use crate::upstream::{Failure, FailureKind};

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
    /// The configuration upstream does not have the node, so it is held until it does. Nothing is counted.
    Missing,
}

impl Step {
    fn prefix(self) -> &'static str {
        match self {
            Self::Images => "Error encountered tagging images ",
            Self::BootParameters => "Error encountered setting BSS information: ",
            Self::Configuration => ERROR_CONFIGURATION_REFUSED,
        }
    }
}

impl Trouble {
    /// What a failed call means to a component that the call was about, alone or with others that cannot be told
    /// apart.
    pub(crate) fn of(step: Step, failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::Refused => Self::Refused(format!("{}{failure}", step.prefix()).into()),
            FailureKind::Denied | FailureKind::Unreachable | FailureKind::Ambiguous => Self::awaited(failure),
        }
    }

    /// What it means that an image could not be tagged, which may keep its nodes from mounting their root file systems
    /// and does no harm beyond that. `None`: nothing. As in BOS, a node boots from an image that the catalogue refuses,
    /// unless images `must_exist` there; an outage of the catalogue is waited for.
    pub(crate) fn of_image(failure: &Failure, must_exist: bool) -> Option<Self> {
        let boots = failure.kind == FailureKind::Refused && !must_exist;
        (!boots).then(|| Self::of(Step::Images, failure))
    }

    /// Something else than an answer is waited for.
    pub(crate) fn awaited(what: impl Display) -> Self {
        Self::Awaited(waiting_for(what))
    }

    /// What people are told.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Refused(text) | Self::Awaited(text) => text,
            Self::Missing => ERROR_CONFIGURATION_MISSING,
        }
    }
}

/// The text about something that is waited for.
pub(crate) fn waiting_for(what: impl Display) -> Arc<str> {
    format!("{WAITING_FOR}{what}").into()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn only_refusals_are_the_fault_of_the_component() {
        let mut rows = String::new();
        for step in [Step::Images, Step::BootParameters, Step::Configuration] {
            for kind in
                [FailureKind::Refused, FailureKind::Denied, FailureKind::Unreachable, FailureKind::Ambiguous]
            {
                let failure = Failure { kind, status: None, text: "PEER: its words".to_owned() };
                rows += &format!("{:?}\n", Trouble::of(step, &failure));
            }
        }
        expect![[r#"
            Refused("Error encountered tagging images PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
            Refused("Error encountered setting BSS information: PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
            Refused("Error encountered setting CFS information: PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
            Awaited("waiting for PEER: its words")
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn refused_image_boots_unless_images_must_exist() {
        for (kind, must_exist, boots) in [
            (FailureKind::Refused, false, true),
            (FailureKind::Refused, true, false),
            (FailureKind::Denied, false, false),
            (FailureKind::Unreachable, false, false),
            (FailureKind::Ambiguous, false, false),
            (FailureKind::Unreachable, true, false),
        ] {
            let failure = Failure { kind, status: None, text: "IMS: its words".to_owned() };
            let trouble = Trouble::of_image(&failure, must_exist);
            assert_eq!(trouble.is_none(), boots, "{kind:?} {must_exist}: {trouble:?}");
        }
    }
}
