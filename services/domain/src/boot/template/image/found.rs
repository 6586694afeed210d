//! What was found out about an image where it is kept and where it is listed (BOS reference 7.3, 7.4).

use std::collections::BTreeMap;

use super::Manifest;

/// What a store keeps of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// What the image consists of.
    pub manifest: Manifest,
    /// Objects that the manifest lists and that could not be looked at, and why, for people.
    pub missing: BTreeMap<Part, String>,
    /// Contents of the file of boot parameters, if they were read.
    pub boot_parameters: Option<String>,
}

/// An object that a node needs from the store itself, and that is therefore looked at.
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
    /// What it is called in findings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Initrd => "initrd",
            Self::BootParameters => "boot parameters",
        }
    }
}

/// Why it is not known what an image consists of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The store gave no manifest.
    #[error("Unable to read manifest file '{path}'. Error: {why}")]
    NotRead {
        /// Path of the manifest.
        path: String,
        /// What the store or its way there is like, or what is wrong with the path.
        why: String,
    },
    /// The manifest is JSON of another kind, here in the words of Python.
    #[error("Manifest should be dict. Invalid data type: {0}")]
    NotAnObject(&'static str),
    /// What the store gave describes no image.
    #[error("{path}: {why}")]
    Defective {
        /// Path of the manifest.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What the catalogue of images says about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// The catalogue has no such image.
    Absent,
    /// The catalogue has the image.
    Image {
        /// Its architecture in the words of the catalogue, such as `x86_64` or `aarch64`.
        arch: String,
    },
    /// The catalogue does not say, because of this.
    Silent(String),
}
