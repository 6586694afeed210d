//! The words that stand for enums in JSON and in query parameters (BOS reference 2.3).

use std::{any::type_name, borrow::Cow};

use proto::{
    component::{Action, Phase},
    session::{LeftOutReason, Operation, Progress},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// An enum with one word for each variant that clients may see.
pub(crate) trait EnumWord: Copy + PartialEq + 'static {
    /// Every variant with its word.
    const WORDS: &'static [(&'static str, Self)];

    /// The variant that `text` stands for; letter case counts.
    fn parse(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, variant)| *variant)
    }

    /// The word of this variant; empty for a variant without one.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, variant)| *variant == self).map_or("", |(word, _)| word)
    }

    /// The words, as a refusal of another word lists them.
    fn choices() -> String {
        let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| format!("'{word}'")).collect();
        words.join(", ")
    }
}

impl EnumWord for Phase {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("", Self::None),
        ("configuring", Self::Configuring),
        ("powering_off", Self::PoweringOff),
        ("powering_on", Self::PoweringOn),
    ];
}

impl EnumWord for Action {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("actual_state_cleanup", Self::ActualStateCleanup),
        ("apply_staged", Self::ApplyStaged),
        ("newly_discovered", Self::NewlyDiscovered),
        ("powering_off_forcefully", Self::PoweringOffForcefully),
        ("powering_off_gracefully", Self::PoweringOffGracefully),
        ("powering_on", Self::PoweringOn),
        ("session_setup", Self::SessionSetup),
    ];
}

impl EnumWord for Operation {
    const WORDS: &'static [(&'static str, Self)] =
        &[("boot", Self::Boot), ("reboot", Self::Reboot), ("shutdown", Self::Shutdown)];
}

impl EnumWord for Progress {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pending", Self::Pending), ("running", Self::Running), ("complete", Self::Complete)];
}

impl EnumWord for LeftOutReason {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("not_in_limit", Self::NotInLimit),
        ("locked", Self::Locked),
        ("foreign_tenant", Self::ForeignTenant),
        ("unknown_to_inventory", Self::UnknownToInventory),
        ("wrong_architecture", Self::WrongArchitecture),
        ("disabled", Self::Disabled),
        ("not_a_component", Self::NotAComponent),
        ("unknown_group", Self::UnknownGroup),
        ("unknown_role", Self::UnknownRole),
        ("in_later_boot_set", Self::InLaterBootSet),
    ];
}

/// An enum as a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpelledEnum<E>(pub E);

impl<E: EnumWord> Serialize for SpelledEnum<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<E: EnumWord> JsonSchema for SpelledEnum<E> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        type_name::<E>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = E::WORDS.iter().map(|(word, _)| word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

impl<'de, E: EnumWord> Deserialize<'de> for SpelledEnum<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let variant = E::parse(&text);
        variant
            .map(Self)
            .ok_or_else(|| D::Error::custom(format_args!("'{text}' is not one of {}", E::choices())))
    }
}
