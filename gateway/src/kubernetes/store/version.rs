//! Resource versions: one rising decimal number for an incarnation of the registry and a revision in it.

use uuid::Uuid;

use super::super::failure::ApiFailure;

/// Revisions that fit into a second. No registry commits as many, so that every version of an incarnation is above all
/// of an earlier one. Versions stay below 2^53 for a hundred years, which every client reads exactly.
const REVISIONS_PER_SECOND: u64 = 1 << 20;

/// 2025, in seconds of Unix.
const EPOCH: u64 = 1_735_689_600;

/// Version before the first revision of an incarnation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct VersionBase(u64);

impl VersionBase {
    /// Returns the base of an incarnation. Ids of incarnations have the time of their beginning.
    pub(crate) fn of(incarnation: Option<Uuid>) -> Self {
        let began = incarnation.and_then(|id| id.get_timestamp()).map_or(0, |time| time.to_unix().0);
        Self(began.saturating_sub(EPOCH) * REVISIONS_PER_SECOND)
    }

    /// Returns the version of a revision. 0 is no version.
    pub(crate) fn version(self, revision: u64) -> u64 {
        (self.0 + revision).max(1)
    }

    /// Returns the revision of a version; none if it is of an earlier incarnation.
    pub(crate) fn revision(self, version: u64) -> Option<u64> {
        version.checked_sub(self.0)
    }
}

/// Reads a version that a client has sent; 0 if it is empty.
///
/// # Errors
/// When the text is no version.
pub(crate) fn read_version(text: &str) -> Result<u64, ApiFailure> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| ApiFailure::bad_request(format!("invalid resource version \"{text}\"")))
}
