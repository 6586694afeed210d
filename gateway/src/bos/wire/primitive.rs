//! The primitive types of the contract (BOS reference 2.3) as its description shows them.
//!
//! No value has these types: they stand for the texts and numbers of the wire in `#[schemars(with = "…")]`. The service
//! that owns a value refuses longer or larger ones, by the same limits.

use std::borrow::Cow;

use chassis::limits::{
    AGE_PATTERN, ARCHITECTURES, BATCHES, COUNTS, DISCOVERY, LOGGING_LEVELS, LONGEST_AGE, LONGEST_DESCRIPTION,
    LONGEST_ERROR, LONGEST_ETAG, LONGEST_KERNEL_PARAMETERS, LONGEST_LIMIT, LONGEST_NAME, LONGEST_PASSTHROUGH,
    LONGEST_PATH, LONGEST_PROVIDER, LONGEST_TIME, LONGEST_TOKEN, MOST_ATTEMPTS, MOST_GROUPS, MOST_NODES,
    MOST_ROLES, NAME_PATTERN, READ_TIMEOUTS, TTL_PATTERN,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub(crate) use crate::http::document::{BoundedText, WholeNumber};

/// Most characters of a component id.
pub(crate) const LONGEST_ID: usize = LONGEST_NAME;

/// A list of names.
pub(crate) struct NameList<const MOST: usize>;

/// The name of a session, session template or boot set.
pub(crate) struct ResourceName;

/// The name of a session, or nothing.
pub(crate) struct NameOrEmpty;

/// `15m`, `4h`, `7d`, `2w` or `0`.
pub(crate) struct AgeText;

/// An age of at least one hour.
pub(crate) struct TtlText;

/// A level of the log, in any letter case.
pub(crate) struct LoggingLevel;

/// The architecture of nodes.
pub(crate) struct ArchitectureName;

pub(crate) type ComponentId = BoundedText<1, LONGEST_NAME>;
pub(crate) type TenantName = BoundedText<0, LONGEST_NAME>;
pub(crate) type ConfigurationName = BoundedText<0, LONGEST_NAME>;
pub(crate) type BootSetType = BoundedText<1, LONGEST_NAME>;
pub(crate) type ArtifactPath = BoundedText<0, LONGEST_PATH>;
pub(crate) type ManifestPath = BoundedText<1, LONGEST_PATH>;
pub(crate) type KernelParameters = BoundedText<0, LONGEST_KERNEL_PARAMETERS>;
pub(crate) type Token = BoundedText<0, LONGEST_TOKEN>;
pub(crate) type ErrorText = BoundedText<0, LONGEST_ERROR>;
pub(crate) type Description = BoundedText<1, LONGEST_DESCRIPTION>;
pub(crate) type Etag = BoundedText<0, LONGEST_ETAG>;
pub(crate) type Provider = BoundedText<1, LONGEST_PROVIDER>;
pub(crate) type Passthrough = BoundedText<0, LONGEST_PASSTHROUGH>;
pub(crate) type Limit = BoundedText<0, LONGEST_LIMIT>;
pub(crate) type Time = BoundedText<0, LONGEST_TIME>;
pub(crate) type Attempts = WholeNumber<0, MOST_ATTEMPTS>;
pub(crate) type ReadTimeout = WholeNumber<{ *READ_TIMEOUTS.start() }, { *READ_TIMEOUTS.end() }>;
pub(crate) type Count = WholeNumber<{ *COUNTS.start() }, { *COUNTS.end() }>;
pub(crate) type DiscoveryFrequency = WholeNumber<{ *DISCOVERY.start() }, { *DISCOVERY.end() }>;
pub(crate) type BatchSize = WholeNumber<{ *BATCHES.start() }, { *BATCHES.end() }>;
pub(crate) type NodeList = NameList<MOST_NODES>;
pub(crate) type NodeRoleList = NameList<MOST_ROLES>;
pub(crate) type NodeGroupList = NameList<MOST_GROUPS>;

/// True if a session or template can have the name `text` (SessionName): 1 to 127 letters, digits, dots, underscores
/// and hyphens, with a letter or digit at either end.
pub(crate) fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= LONGEST_NAME
        && ends.iter().all(|byte| byte.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte))
}

impl<const MOST: usize> JsonSchema for NameList<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NamesTo{MOST}").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<BoundedText<1, LONGEST_NAME>>();
        json_schema!({ "type": "array", "items": name, "minItems": 1, "maxItems": MOST })
    }
}

impl JsonSchema for ResourceName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": LONGEST_NAME })
    }
}

impl JsonSchema for NameOrEmpty {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NameOrEmpty".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!("^$|{NAME_PATTERN}");
        json_schema!({ "type": "string", "pattern": pattern, "minLength": 0, "maxLength": LONGEST_NAME })
    }
}

impl JsonSchema for AgeText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Age".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": AGE_PATTERN, "minLength": 1, "maxLength": LONGEST_AGE })
    }
}

impl JsonSchema for TtlText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Ttl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": TTL_PATTERN, "minLength": 2, "maxLength": LONGEST_AGE })
    }
}

impl JsonSchema for LoggingLevel {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LoggingLevel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Patterns have no flags in JSON.
        let either = |letter: char| format!("[{}{}]", letter, letter.to_ascii_uppercase());
        let levels = LOGGING_LEVELS.map(|level| level.chars().map(either).collect::<String>());
        json_schema!({ "type": "string", "pattern": format!("^({})$", levels.join("|")) })
    }
}

impl JsonSchema for ArchitectureName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Architecture".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ARCHITECTURES })
    }
}
