//! Reads of one object from any store.

use domain::boot::template::image::LARGEST_MANIFEST;

use crate::dependency::{DependencyError, DependencyOutage};

/// Largest object that is read, in bytes. Kernel parameters are far shorter than a manifest may be.
pub(super) const LARGEST: usize = LARGEST_MANIFEST;

/// Reason why an object could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ObjectError {
    /// The object does not exist.
    Absent,
    /// The object has more than [`LARGEST`] bytes.
    TooLarge,
    /// The path cannot hold the object, for example because it is a directory.
    Unfit(String),
    /// The store does not answer.
    Outage(DependencyOutage),
}

impl ObjectError {
    /// Converts the error for the object at `path`; `what` names it in texts.
    pub(super) fn into_dependency_error(self, what: &str, path: &str) -> DependencyError {
        match self {
            Self::Absent => DependencyError::Fatal(format!("the {what} {path} does not exist")),
            Self::TooLarge => {
                DependencyError::Fatal(format!("the {what} {path} is larger than {LARGEST} bytes"))
            }
            Self::Unfit(why) => DependencyError::Fatal(format!("the {what} {path} {why}")),
            Self::Outage(outage) => DependencyError::Retryable(outage),
        }
    }
}
