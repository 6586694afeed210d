//! Destination of the audit log.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Word for standard output.
const STANDARD_OUTPUT: &str = "stdout";

/// Audit log: a line for each request that changes something, and for each that is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// Directory in which each part has a file of its own, or `stdout`; empty: there is no audit log.
    pub to: String,
}

/// Place of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditPlace<'a> {
    /// No place: there is no audit log.
    Nowhere,
    /// Standard output.
    StandardOutput,
    /// Files in this directory.
    Directory(&'a Path),
}

impl AuditSettings {
    /// Returns the place of the lines.
    pub fn place(&self) -> AuditPlace<'_> {
        match self.to.as_str() {
            "" => AuditPlace::Nowhere,
            STANDARD_OUTPUT => AuditPlace::StandardOutput,
            directory => AuditPlace::Directory(Path::new(directory)),
        }
    }
}
