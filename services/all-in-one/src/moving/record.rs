//! One record of a backup: where it stands in its file, and what may be wrong with it.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defect {
    /// The member it is about, such as `boot_sets.compute.path`; empty: the record as a whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Defect {
    /// A defect of the member `field`.
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// The same, seen from the object that has the member `outer`.
    #[must_use]
    pub(crate) fn within(self, outer: &str) -> Self {
        let field = if self.field.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.field) };
        Self { field, ..self }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.field, self.reason)
    }
}

/// The members of `value`.
///
/// # Errors
/// When it is no object.
pub(crate) fn object(value: Value) -> Result<Object, Defect> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(Defect::new("", format!("is {}, not an object", kind(&other)))),
    }
}

/// What `value` is, for people.
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

/// Stands for an object where many are compared and none needs to be held.
pub(crate) fn fingerprint(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
