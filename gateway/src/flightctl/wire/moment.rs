//! Times, as RFC 3339 writes them.

use std::borrow::Cow;

use chrono::{DateTime, SecondsFormat, Utc};
use prost_types::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Time of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(pub Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = u32::try_from(self.0.nanos).unwrap_or_default();
        let time = DateTime::<Utc>::from_timestamp(self.0.seconds, nanos).unwrap_or_default();
        serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        let time = DateTime::parse_from_rfc3339(&text)
            .map_err(|_| D::Error::custom(format!("'{text}' is no time such as 2026-01-31T12:00:00Z")))?;
        let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
        Ok(Self(Timestamp { seconds: time.timestamp(), nanos }))
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
