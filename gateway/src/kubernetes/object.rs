//! Objects of the Kubernetes API as JSON, and access to their metadata. Typed structures would lose the difference
//! between null and absent, and every member that they do not know.

use serde_json::{Map, Value};

/// Object, such as a `BareMetalHost`.
pub(crate) type ApiObject = Map<String, Value>;

/// Returns the metadata; none if there are none.
pub(crate) fn metadata(object: &ApiObject) -> Option<&ApiObject> {
    object.get("metadata").and_then(Value::as_object)
}

/// Returns the metadata to be changed, and makes them an object.
pub(crate) fn metadata_mut(object: &mut ApiObject) -> &mut ApiObject {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("the metadata were just made an object")
}

/// Returns a text of the metadata; empty if it is absent.
pub(crate) fn metadata_text<'a>(object: &'a ApiObject, member: &str) -> &'a str {
    metadata(object).and_then(|metadata| metadata.get(member)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the name; empty if there is none.
pub(crate) fn name(object: &ApiObject) -> &str {
    metadata_text(object, "name")
}

/// Returns the namespace; empty if there is none.
pub(crate) fn namespace(object: &ApiObject) -> &str {
    metadata_text(object, "namespace")
}

/// Returns whether the deletion of the object was requested.
pub(crate) fn is_being_deleted(object: &ApiObject) -> bool {
    !metadata_text(object, "deletionTimestamp").is_empty()
}

/// Returns the value at a path of members.
pub(crate) fn at<'a>(object: &'a ApiObject, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, member| value.get(*member))
}
