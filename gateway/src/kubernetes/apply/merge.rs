//! The merge of an applied object into the present one.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    super::{
        failure::{ApiFailure, FailureCause},
        object::ApiObject,
        schema::{ListMerging, SchemaNode},
    },
    fields::{FieldPath, FieldSet, is_granular, item_element, leaves, shown_path},
    managed::{ManagedRow, ManagedRows, WriterName, changed},
};

/// Object after an apply.
#[derive(Debug)]
pub(crate) struct AppliedObject {
    pub object: ApiObject,
    pub rows: ManagedRows,
}

/// Applies the wishes of a writer to the present object.
///
/// # Errors
/// When wishes contradict fields of other writers, unless the writer insists.
pub(crate) fn apply(
    present: &ApiObject,
    mut rows: ManagedRows,
    wishes: &ApiObject,
    writer: &WriterName,
    insists: bool,
    schema: &SchemaNode,
    now: &str,
) -> Result<AppliedObject, ApiFailure> {
    rows.begin(present, schema, &writer.api_version, now);
    let wanted = FieldSet::of(wishes, schema);
    let mut object = present.clone();
    merge_members(&mut object, wishes, schema);
    let taken: BTreeSet<_> = {
        let old = leaves(present, schema);
        let new = leaves(&object, schema);
        changed(&old, &new).cloned().collect()
    };
    let causes: Vec<_> = rows.others(writer).flat_map(|row| conflicts(row, &taken)).collect();
    if !causes.is_empty() && !insists {
        return Err(ApiFailure::owned_by_others(causes));
    }
    let left_out = left_out(&rows, writer, &wanted);
    for path in &left_out {
        remove(&mut object, path, schema);
    }
    let still = FieldSet::of(&object, schema);
    let before = FieldSet::of(present, schema);
    rows.take_from_others(writer, |path| {
        taken.contains(path) || before.0.contains(path) && !still.0.contains(path)
    });
    rows.set(writer, wanted, now);
    Ok(AppliedObject { object, rows })
}

/// Returns the fields of another writer that the merge changes.
fn conflicts(row: &ManagedRow, taken: &BTreeSet<FieldPath>) -> Vec<FailureCause> {
    let fields = row.fields.0.intersection(taken);
    let fields = fields
        .map(|path| FailureCause::new("FieldManagerConflict", shown_path(path), described(&row.writer)));
    fields.collect()
}

fn described(writer: &WriterName) -> String {
    let WriterName { manager, applies, api_version, subresource } = writer;
    let mut text = format!("conflict with {manager:?}");
    if !subresource.is_empty() {
        text += &format!(" with subresource {subresource:?}");
    }
    if !applies {
        text += &format!(" using {api_version}");
    }
    text
}

/// Returns the fields that the writer applied before and now leaves out, and that nobody else has.
fn left_out(rows: &ManagedRows, writer: &WriterName, wanted: &FieldSet) -> Vec<FieldPath> {
    let before = rows.of(writer);
    let dropped = before.0.difference(&wanted.0).filter(|path| {
        let is_shared = rows.others(writer).any(|row| row.fields.0.contains(*path));
        // A wish for a member of it keeps an object that was empty before.
        let is_parent = wanted.0.iter().any(|other| other.starts_with(path));
        !is_shared && !is_parent
    });
    dropped.cloned().collect()
}

fn merge_members(members: &mut Map<String, Value>, wishes: &Map<String, Value>, schema: &SchemaNode) {
    for (name, wish) in wishes {
        match (members.get_mut(name), schema.member(name)) {
            (Some(value), Some(schema)) => merge_value(value, wish, schema),
            (_, _) => drop(members.insert(name.clone(), wish.clone())),
        }
    }
}

fn merge_value(value: &mut Value, wish: &Value, schema: &SchemaNode) {
    match (value, wish, schema.list) {
        (Value::Object(members), Value::Object(wishes), _) if is_granular(wishes, schema) => {
            merge_members(members, wishes, schema);
        }
        // A wish for an empty object is met by any object.
        (Value::Object(members), Value::Object(wishes), _)
            if wishes.is_empty() && is_granular(members, schema) => {}
        (Value::Array(items), Value::Array(wishes), ListMerging::Set) => {
            for wish in wishes {
                if !items.contains(wish) {
                    items.push(wish.clone());
                }
            }
        }
        (Value::Array(items), Value::Array(wishes), ListMerging::Map) => merge_items(items, wishes, schema),
        (value, wish, _) => *value = wish.clone(),
    }
}

fn merge_items(items: &mut Vec<Value>, wishes: &[Value], schema: &SchemaNode) {
    for wish in wishes {
        let element = item_element(wish, schema);
        let item = items.iter_mut().find(|item| item_element(item, schema) == element);
        match (item, &schema.items) {
            (Some(item), Some(schema)) => merge_value(item, wish, schema),
            (Some(item), None) => *item = wish.clone(),
            (None, _) => items.push(wish.clone()),
        }
    }
}

/// Removes a field, and the objects that become empty by that.
fn remove(object: &mut ApiObject, path: &[String], schema: &SchemaNode) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(name) = first.strip_prefix("f:") else { return };
    let (Some(value), Some(schema)) = (object.get_mut(name), schema.member(name)) else {
        object.remove(name);
        return;
    };
    if rest.is_empty() || remove_below(value, rest, schema) {
        object.remove(name);
    }
}

/// Removes a field below a value, and returns whether nothing is left of the value.
fn remove_below(value: &mut Value, path: &[String], schema: &SchemaNode) -> bool {
    match value {
        Value::Object(members) => {
            remove(members, path, schema);
            members.is_empty()
        }
        Value::Array(items) => {
            remove_item(items, path, schema);
            items.is_empty()
        }
        _ => false,
    }
}

fn remove_item(items: &mut Vec<Value>, path: &[String], schema: &SchemaNode) {
    let Some((element, rest)) = path.split_first() else { return };
    let is_it = |item: &Value| match schema.list {
        ListMerging::Set => format!("v:{item}") == *element,
        ListMerging::Map => item_element(item, schema) == *element,
        ListMerging::Atomic => false,
    };
    let Some(place) = items.iter().position(is_it) else { return };
    let is_whole = rest.is_empty() || rest == ["."];
    match (&schema.items, &mut items[place]) {
        (Some(schema), Value::Object(members)) if !is_whole => remove(members, rest, schema),
        _ => drop(items.remove(place)),
    }
}
