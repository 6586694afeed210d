//! Merge patch.

use serde_json::{Map, Value};

/// Merges a patch into a value: null removes a member, arrays are replaced, and no null is stored.
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(members) = value else { return };
    for (name, patch) in patch {
        match patch {
            Value::Null => drop(members.remove(name)),
            patch => merge(members.entry(name.clone()).or_insert(Value::Null), patch),
        }
    }
}
