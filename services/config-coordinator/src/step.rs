//! Steps of putting data in place for a component.

use domain::{boot::evaluation::ERROR_CONFIGURATION_REFUSED, core::trouble::TroubleKind};

/// Step of putting data in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PlacingStep {
    /// Projection of the root file system of the image.
    Images,
    /// Boot data at the boot script server.
    BootParameters,
    /// Wanted configuration at the configuration service.
    Configuration,
}

impl PlacingStep {
    pub(crate) const ALL: [Self; 3] = [Self::Images, Self::BootParameters, Self::Configuration];

    /// Returns the word for the step in the database.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::BootParameters => "boot_parameters",
            Self::Configuration => "configuration",
        }
    }

    /// Returns the beginning of the text about a refusal, as in BOS (BOS reference A.3).
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Images => "Error encountered tagging images ",
            Self::BootParameters => "Error encountered setting BSS information: ",
            Self::Configuration => ERROR_CONFIGURATION_REFUSED,
        }
    }

    /// Returns the kind of a refusal in this step. A configuration may be taken later without another attempt at a
    /// boot.
    pub(crate) fn refusal(self) -> TroubleKind {
        match self {
            Self::Images | Self::BootParameters => TroubleKind::Failed,
            Self::Configuration => TroubleKind::ConfigurationRefused,
        }
    }
}
