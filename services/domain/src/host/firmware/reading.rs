//! Firmware of a host: wishes about it, and its values as a driver reads them (host reference 2.6).

use std::{collections::BTreeMap, sync::Arc};

/// Part of the names of settings that hold passwords. They are neither shown nor changed.
const PASSWORD: &str = "Password";

/// Wishes about the firmware of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareWishes {
    /// Wished values of settings, by name.
    pub settings: BTreeMap<Arc<str>, Arc<str>>,
    /// Wished versions, in order.
    pub updates: Vec<FirmwareUpdate>,
}

/// Wish for another version of a component.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FirmwareUpdate {
    /// Component: `bios`, `bmc`, or `nic:` and a name.
    pub component: Arc<str>,
    /// Address of the image.
    pub url: Arc<str>,
}

/// Firmware of a host as its driver reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareReading {
    /// Settings; `None`: the hardware offers none.
    pub settings: Option<SettingsReading>,
    /// Components with their versions; `None`: the hardware offers no updates.
    pub components: Option<Vec<FirmwareComponent>>,
}

/// Firmware settings of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsReading {
    /// Values by name.
    pub values: BTreeMap<Arc<str>, Arc<str>>,
    /// Rules by name; `None`: they were not asked for, or the hardware tells none.
    pub rules: Option<BTreeMap<Arc<str>, SettingRule>>,
}

/// Component with its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareComponent {
    /// Name, as in [`FirmwareUpdate::component`].
    pub name: Arc<str>,
    /// Version that runs.
    pub version: Arc<str>,
}

/// Rule for the value of a setting. A bound that is absent does not bind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingRule {
    /// Kind of the value.
    pub kind: SettingKind,
    /// Values that the setting takes, of an enumeration.
    pub allowed: Vec<Arc<str>>,
    /// Least number.
    pub lower_bound: Option<i64>,
    /// Greatest number.
    pub upper_bound: Option<i64>,
    /// Fewest characters.
    pub min_length: Option<i64>,
    /// Most characters.
    pub max_length: Option<i64>,
    /// Whether the value cannot be changed.
    pub read_only: bool,
    /// Whether the value has to differ from the one of every other host; `None`: not said.
    pub unique: Option<bool>,
}

/// Kind of the value of a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum SettingKind {
    /// The hardware does not say.
    #[default]
    Untyped,
    Enumeration,
    Text,
    Integer,
    Boolean,
    Password,
    /// Another word of the hardware.
    Other(Arc<str>),
}

impl SettingKind {
    /// Reads the word of the contract.
    pub fn from_word(word: &str) -> Self {
        match word {
            "" => Self::Untyped,
            "Enumeration" => Self::Enumeration,
            "String" => Self::Text,
            "Integer" => Self::Integer,
            "Boolean" => Self::Boolean,
            "Password" => Self::Password,
            other => Self::Other(other.into()),
        }
    }

    /// Word of the contract.
    pub fn word(&self) -> &str {
        match self {
            Self::Untyped => "",
            Self::Enumeration => "Enumeration",
            Self::Text => "String",
            Self::Integer => "Integer",
            Self::Boolean => "Boolean",
            Self::Password => "Password",
            Self::Other(word) => word,
        }
    }
}

impl FirmwareWishes {
    /// Returns the wished settings whose values differ from those of `known`, or are missing there.
    pub fn changed_settings<'a>(
        &'a self,
        known: &BTreeMap<Arc<str>, Arc<str>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)> {
        let is_changed = move |name: &str, value: &str| {
            known.get(name).is_none_or(|present| !is_same_value(present, value))
        };
        self.settings.iter().filter(move |(name, value)| is_changed(name, value))
    }
}

impl SettingsReading {
    /// Returns the reading without passwords.
    #[must_use]
    pub fn without_passwords(mut self) -> Self {
        self.values.retain(|name, _| !is_password(name));
        if let Some(rules) = &mut self.rules {
            rules.retain(|name, _| !is_password(name));
        }
        self
    }
}

/// Returns whether a setting holds a password, by its name.
pub(crate) fn is_password(name: &str) -> bool {
    name.contains(PASSWORD)
}

/// Returns whether two values are the same. Hardware and people spell truth values in several ways.
fn is_same_value(one: &str, two: &str) -> bool {
    let is_truth = |text: &str| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    one == two || (is_truth(one) && one.eq_ignore_ascii_case(two))
}
