//! Sets of fields, and the leaves of objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::{
    object::ApiObject,
    schema::{ListMerging, MapMerging, SchemaNode},
};

/// Path of a field, in the elements of `fieldsV1`.
pub(crate) type FieldPath = Vec<String>;

/// Set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(pub BTreeSet<FieldPath>);

/// Element for the presence of an item or object itself.
const SELF: &str = ".";

/// Members of metadata that belong to the server or name the object, and so to no writer.
const NOT_OWNED: &[&str] = &[
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Returns every leaf of an object with its value: scalars, atomic lists and objects, empty ones, and items of lists
/// whose items have keys. Members that belong to nobody are left out.
pub(crate) fn leaves<'a>(object: &'a ApiObject, schema: &SchemaNode) -> BTreeMap<FieldPath, &'a Value> {
    let mut found = BTreeMap::new();
    for (name, value) in object {
        match (&**name, value, schema.member(name)) {
            ("apiVersion" | "kind", _, _) | (_, _, None) => {}
            ("metadata", Value::Object(members), Some(schema)) => {
                let owned = members.iter().filter(|(name, _)| !NOT_OWNED.contains(&&***name));
                for (name, value) in owned {
                    if let Some(schema) = schema.member(name) {
                        visit(value, schema, vec!["f:metadata".to_owned(), field(name)], &mut found);
                    }
                }
            }
            (_, value, Some(schema)) => visit(value, schema, vec![field(name)], &mut found),
        }
    }
    found
}

fn field(name: &str) -> String {
    format!("f:{name}")
}

fn visit<'a>(
    value: &'a Value,
    schema: &SchemaNode,
    path: FieldPath,
    found: &mut BTreeMap<FieldPath, &'a Value>,
) {
    match value {
        Value::Object(members) if is_granular(members, schema) => {
            for (name, value) in members {
                let path = joined(&path, field(name));
                match schema.member(name) {
                    Some(schema) => visit(value, schema, path, found),
                    None => drop(found.insert(path, value)),
                }
            }
        }
        Value::Array(items) if !items.is_empty() && schema.list == ListMerging::Set => {
            for item in items {
                found.insert(joined(&path, format!("v:{item}")), item);
            }
        }
        Value::Array(items) if !items.is_empty() && schema.list == ListMerging::Map => {
            for item in items {
                let path = joined(&path, item_element(item, schema));
                found.insert(joined(&path, SELF.to_owned()), &Value::Null);
                if let Some(schema) = &schema.items {
                    visit(item, schema, path, found);
                }
            }
        }
        _ => drop(found.insert(path, value)),
    }
}

/// Returns whether the members of an object have writers of their own.
pub(super) fn is_granular(members: &Map<String, Value>, schema: &SchemaNode) -> bool {
    !members.is_empty() && schema.map == MapMerging::Granular && !schema.keeps_unknown
}

fn joined(path: &[String], element: String) -> FieldPath {
    path.iter().cloned().chain([element]).collect()
}

/// Returns the element of an item of a list whose items have keys.
pub(super) fn item_element(item: &Value, schema: &SchemaNode) -> String {
    let keys = schema.list_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    format!("k:{}", Value::Object(keys.collect()))
}

impl FieldSet {
    /// Returns the fields of an object.
    pub(crate) fn of(object: &ApiObject, schema: &SchemaNode) -> Self {
        Self(leaves(object, schema).into_keys().collect())
    }

    /// Reads a set in its stored form; none if it has another.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let mut paths = BTreeSet::new();
        read(value.as_object()?, &mut Vec::new(), &mut paths)?;
        Some(Self(paths))
    }

    /// Returns the stored form.
    pub(crate) fn shown(&self) -> Value {
        let mut tree = Map::new();
        for path in &self.0 {
            let mut level = &mut tree;
            for element in path {
                let next = level.entry(element.clone()).or_insert_with(|| Value::Object(Map::new()));
                level = next.as_object_mut().expect("every level of a field set is an object");
            }
        }
        Value::Object(tree)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn read(tree: &Map<String, Value>, path: &mut FieldPath, paths: &mut BTreeSet<FieldPath>) -> Option<()> {
    for (element, below) in tree {
        let is_known =
            element == SELF || ["f:", "k:", "v:", "i:"].iter().any(|start| element.starts_with(start));
        let below = below.as_object().filter(|_| is_known)?;
        path.push(element.clone());
        if below.is_empty() {
            paths.insert(path.clone());
        } else {
            read(below, path, paths)?;
        }
        path.pop();
    }
    Some(())
}

/// Returns a path as people read it, such as `.spec.online` or `.status.conditions[type="Ready"].status`.
pub(crate) fn shown_path(path: &[String]) -> String {
    let elements = path.iter().map(|element| match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => shown_keys(keys),
        Some(("v", value)) => format!("[={value}]"),
        Some(_) | None => String::new(),
    });
    elements.collect()
}

fn shown_keys(keys: &str) -> String {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let keys: Vec<_> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("[{}]", keys.join(","))
}
