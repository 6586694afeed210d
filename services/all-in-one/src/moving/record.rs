//! A record of a backup, with its place in the file and its defects.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Reason why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordDefect {
    /// Member of the record, such as `boot_sets.compute.path`; empty: the record as a whole.
    pub field: String,
    /// Description of the defect.
    pub reason: String,
}

impl RecordDefect {
    /// Creates a defect of the member `field`.
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// Returns the defect relative to the object that has the member `outer`.
    #[must_use]
    pub(crate) fn within(self, outer: &str) -> Self {
        let field = if self.field.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.field) };
        Self { field, ..self }
    }
}

impl fmt::Display for RecordDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.field, self.reason)
    }
}

/// Returns the members of `value`.
///
/// # Errors
/// When it is no object.
pub(crate) fn object(value: Value) -> Result<Object, RecordDefect> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(RecordDefect::new("", format!("is {}, not an object", kind(&other)))),
    }
}

/// Returns the type of `value`, for people.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns a hash of an object, for comparing many objects without holding them.
pub(crate) fn fingerprint(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
