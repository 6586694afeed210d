//! Words for the values of enums.

use std::{borrow::Cow, marker::PhantomData};

use proto::insight::{
    BootStage, CauseClass, CauseOutcome, CauseReason, EvidenceSource, EvidenceVerdict, Peer,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// Enum of the mesh whose values answers show as words, numbered from 1 without a gap.
pub(in crate::reveille) trait ShownEnum: TryFrom<i32> {
    /// Beginning of the name of each value.
    const PREFIX: &str;
    /// Returns the name of the value.
    fn name(&self) -> &'static str;
}

/// Word for a value, such as `node_locked`; `unspecified` for one that only a later version knows.
pub(in crate::reveille) struct EnumWord<E> {
    word: String,
    value: PhantomData<E>,
}

impl<E: ShownEnum> EnumWord<E> {
    /// Returns the word for a value.
    pub(in crate::reveille) fn of(value: i32) -> Self {
        let word = E::try_from(value).map_or_else(|_| "unspecified".to_owned(), |value| word(&value));
        Self { word, value: PhantomData }
    }

    /// Returns the word as a text, for names of members.
    pub(in crate::reveille) fn into_text(self) -> String {
        self.word
    }

    /// Returns the word for a value; `None`: it is unspecified.
    pub(in crate::reveille) fn set(value: i32) -> Option<Self> {
        (value != 0).then(|| Self::of(value))
    }
}

fn word<E: ShownEnum>(value: &E) -> String {
    value.name().strip_prefix(E::PREFIX).unwrap_or_else(|| value.name()).to_ascii_lowercase()
}

impl<E> Serialize for EnumWord<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.word)
    }
}

impl<E: ShownEnum> JsonSchema for EnumWord<E> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        E::PREFIX.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let values = (1..).map_while(|number| E::try_from(number).ok());
        let words: Vec<_> = values.map(|value| word(&value)).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

impl ShownEnum for CauseReason {
    const PREFIX: &str = "CAUSE_REASON_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for CauseClass {
    const PREFIX: &str = "CAUSE_CLASS_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for CauseOutcome {
    const PREFIX: &str = "CAUSE_OUTCOME_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for BootStage {
    const PREFIX: &str = "BOOT_STAGE_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for Peer {
    const PREFIX: &str = "PEER_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for EvidenceSource {
    const PREFIX: &str = "EVIDENCE_SOURCE_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}

impl ShownEnum for EvidenceVerdict {
    const PREFIX: &str = "EVIDENCE_VERDICT_";

    fn name(&self) -> &'static str {
        self.as_str_name()
    }
}
