//! Versions: of a rendered spec, and of the template of a fleet.

use std::{fmt, sync::Arc};

use crate::device::record::name::FleetName;

/// Highest version that an agent is believed to have. Agents report any text; a higher number would leave the service
/// no version to go on with.
const HIGHEST_REPORTED: u64 = 1 << 53;

/// Number of a rendered spec of one device. Versions only grow. Agents see a decimal text and compare nothing but
/// texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RenderedVersion(pub u64);

impl RenderedVersion {
    /// Version before the first one.
    pub const NONE: Self = Self(0);

    /// Reads a version that an agent reports. A missing or unreadable one counts as none (device reference 2.7).
    pub fn reported(text: &str) -> Self {
        let number = text.parse().unwrap_or_default();
        if number > HIGHEST_REPORTED { Self::NONE } else { Self(number) }
    }

    /// The next version.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for RenderedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Name of a version of the template of a fleet, such as `v2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplateVersionName(pub Arc<str>);

/// Fleet and the version of its template that devices should run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetVersion {
    /// Name of the fleet.
    pub fleet: FleetName,
    /// Present version of the template; `None`: there is none yet.
    pub template_version: Option<TemplateVersionName>,
}
