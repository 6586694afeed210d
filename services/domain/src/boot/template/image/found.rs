//! Results of the lookups of an image in its store and in the catalogue (BOS reference 7.3, 7.4).

use std::collections::BTreeMap;

use super::Manifest;

/// Contents of an image in its store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects of the image.
    pub manifest: Manifest,
    /// Objects of the manifest that could not be read, each with the reason in words for operators.
    pub missing: BTreeMap<Part, String>,
    /// Contents of the file of boot parameters, if they were read.
    pub boot_parameters: Option<String>,
}

/// Object that a node needs from the store itself, and that is therefore looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The kernel.
    Kernel,
    /// The initial RAM disk.
    Initrd,
    /// The file of boot parameters.
    BootParameters,
}

impl Part {
    /// Returns the name of the part in findings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Initrd => "initrd",
            Self::BootParameters => "boot parameters",
        }
    }
}

/// Reason why the contents of an image are unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The store gave no manifest.
    #[error("Unable to read manifest file '{path}'. Error: {why}")]
    NotRead {
        /// Path of the manifest.
        path: String,
        /// State of the store or of the way there, or the defect of the path.
        why: String,
    },
    /// The manifest is JSON of another kind, here in the words of Python.
    #[error("Manifest should be dict. Invalid data type: {0}")]
    NotAnObject(&'static str),
    /// The manifest describes no image.
    #[error("{path}: {why}")]
    Defective {
        /// Path of the manifest.
        path: String,
        /// Defect of the manifest.
        why: String,
    },
}

/// Answer of the catalogue of images about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// The catalogue has no such image.
    Absent,
    /// The catalogue has the image.
    Image {
        /// Architecture in the words of the catalogue, such as `x86_64` or `aarch64`.
        arch: String,
    },
    /// The catalogue did not answer, for this reason.
    Silent(String),
}
