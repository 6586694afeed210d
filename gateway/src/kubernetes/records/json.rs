//! Members of JSON objects, written where they say something and read where they have the right type.

use chrono::{DateTime, SecondsFormat, Utc};
use prost_types::Timestamp;
use serde_json::{Map, Value};

/// Object under construction.
#[derive(Debug, Default)]
pub(super) struct ShownMembers(Map<String, Value>);

impl ShownMembers {
    /// Adds a text, unless it is empty.
    pub(super) fn text(self, name: &str, text: &str) -> Self {
        self.maybe(name, Some(text).filter(|text| !text.is_empty()))
    }

    /// Adds a truth, unless it is false.
    pub(super) fn flag(self, name: &str, flag: bool) -> Self {
        self.maybe(name, Some(flag).filter(|flag| *flag))
    }

    /// Adds a value, if there is one.
    pub(super) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.always(name, value),
            None => self,
        }
    }

    /// Adds a list, unless it is empty.
    pub(super) fn list(self, name: &str, items: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        self.maybe(name, Some(items).filter(|items| !items.is_empty()))
    }

    /// Adds a value.
    pub(super) fn always(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

impl From<ShownMembers> for Value {
    fn from(members: ShownMembers) -> Self {
        Self::Object(members.0)
    }
}

/// Returns a text; empty if there is none.
pub(super) fn text(members: &Map<String, Value>, name: &str) -> String {
    maybe_text(members, name).unwrap_or_default()
}

pub(super) fn maybe_text(members: &Map<String, Value>, name: &str) -> Option<String> {
    members.get(name)?.as_str().map(str::to_owned)
}

pub(super) fn flag(members: &Map<String, Value>, name: &str) -> bool {
    maybe_flag(members, name).unwrap_or_default()
}

pub(super) fn maybe_flag(members: &Map<String, Value>, name: &str) -> Option<bool> {
    members.get(name)?.as_bool()
}

pub(super) fn maybe_number(members: &Map<String, Value>, name: &str) -> Option<i64> {
    members.get(name)?.as_i64()
}

/// Returns a number; 0 if there is none.
pub(super) fn count(members: &Map<String, Value>, name: &str) -> u32 {
    maybe_number(members, name).and_then(|number| number.try_into().ok()).unwrap_or_default()
}

pub(super) fn nested<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    members.get(name)?.as_object()
}

/// Returns the objects of a list.
pub(super) fn objects<'a>(
    members: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    members.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Returns the texts of a list.
pub(super) fn texts(members: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = members.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the texts of an object.
pub(super) fn text_map(members: &Map<String, Value>, name: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = nested(members, name).into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
}

pub(super) fn maybe_time(members: &Map<String, Value>, name: &str) -> Option<Timestamp> {
    let time = DateTime::parse_from_rfc3339(members.get(name)?.as_str()?).ok()?;
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default();
    Some(Timestamp { seconds: time.timestamp(), nanos })
}

/// Returns a time to the second.
pub(super) fn shown_time(time: Timestamp) -> String {
    let nanos = u32::try_from(time.nanos).unwrap_or_default();
    let time = DateTime::<Utc>::from_timestamp(time.seconds, nanos).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
