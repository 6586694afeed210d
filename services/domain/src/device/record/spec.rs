//! Wishes for a device. Rules read the system and the end of the device's life; the rest is opaque.

use std::sync::Arc;

/// Spec of a device, or of the template of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Wanted system; `None`: whatever runs.
    pub os: Option<OsTarget>,
    /// Wish to end the life of the device, which the decommission call alone sets.
    pub decommissioning: Option<DecommissionTarget>,
    /// Everything else in its stored form: applications, configuration, resources, policies. Two texts are equal if
    /// and only if the specs are.
    pub document: Arc<str>,
}

/// Wanted system of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsTarget {
    /// Image, by its reference.
    Image(Arc<str>),
    /// Item of a catalogue.
    CatalogItem {
        /// Catalogue.
        catalog: Arc<str>,
        /// Item in the catalogue.
        item: Arc<str>,
        /// Version of the item.
        version: Arc<str>,
    },
}

/// End of the life of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecommissionTarget {
    /// The device forgets its certificate.
    Unenroll,
    /// The device is reset.
    FactoryReset,
}

impl DecommissionTarget {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 2] = [Self::Unenroll, Self::FactoryReset];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unenroll => "Unenroll",
            Self::FactoryReset => "FactoryReset",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}
