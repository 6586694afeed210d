//! Strategic merge patch: a merge patch that adds to lists whose items have keys, and knows directives.

use serde_json::{Map, Value};

use super::super::schema::{ListMerging, SchemaNode};

const DIRECTIVE: &str = "$patch";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";
const RETAIN: &str = "$retainKeys";

/// Merges a patch into a value of that schema.
pub(super) fn merge(value: &mut Value, patch: &Value, schema: &SchemaNode) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() || directive(patch) == Some("replace") {
        *value = Value::Object(Map::new());
    }
    let Value::Object(members) = value else { return };
    if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
        members.retain(|name, _| retained.iter().any(|kept| kept == name));
    }
    for (name, patch) in patch {
        if name == DIRECTIVE || name == RETAIN || name.starts_with(ORDER) {
            continue;
        }
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            remove_items(members.get_mut(list), patch);
            continue;
        }
        merge_member(members, name, patch, schema.member(name));
    }
}

fn directive(patch: &Map<String, Value>) -> Option<&str> {
    patch.get(DIRECTIVE).and_then(Value::as_str)
}

fn merge_member(members: &mut Map<String, Value>, name: &str, patch: &Value, schema: Option<&SchemaNode>) {
    static ANY: std::sync::LazyLock<SchemaNode> = std::sync::LazyLock::new(SchemaNode::default);
    let schema = schema.unwrap_or(&ANY);
    let is_deleted = patch.as_object().and_then(directive) == Some("delete");
    if patch.is_null() || is_deleted {
        members.remove(name);
        return;
    }
    let value = members.entry(name.to_owned()).or_insert(Value::Null);
    match (patch, schema.list) {
        (Value::Array(items), ListMerging::Set) => add_to_set(value, items),
        (Value::Array(items), ListMerging::Map) => merge_items(value, items, schema),
        _ => merge(value, patch, schema),
    }
}

fn remove_items(list: Option<&mut Value>, removed: &Value) {
    if let (Some(Value::Array(items)), Value::Array(removed)) = (list, removed) {
        items.retain(|item| !removed.contains(item));
    }
}

fn list_of(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("the value was just made a list")
}

fn add_to_set(value: &mut Value, items: &[Value]) {
    let list = list_of(value);
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

fn merge_items(value: &mut Value, items: &[Value], schema: &SchemaNode) {
    let list = list_of(value);
    let Some(item_schema) = &schema.items else { return };
    for patch in items {
        let place =
            list.iter().position(|item| schema.list_keys.iter().all(|key| item.get(key) == patch.get(key)));
        let is_deleted = patch.as_object().and_then(directive) == Some("delete");
        match place {
            Some(place) if is_deleted => drop(list.remove(place)),
            Some(place) => merge(&mut list[place], patch, item_schema),
            None if is_deleted => {}
            None => list.push(patch.clone()),
        }
    }
}
