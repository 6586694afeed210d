//! Members that a schema does not know, and defaults.

use serde_json::Value;

use super::{SchemaNode, ValueKind};

/// Removes the members that the schema does not know, and returns their paths.
pub(crate) fn drop_unknown(value: &mut Value, schema: &SchemaNode, path: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    visit(value, schema, path, &mut unknown);
    unknown
}

fn visit(value: &mut Value, schema: &SchemaNode, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(members) if !schema.keeps_unknown && schema.kind != ValueKind::Any => {
            members.retain(|name, value| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match schema.member(name) {
                    Some(schema) => visit(value, schema, &path, unknown),
                    None => unknown.push(path),
                }
                schema.member(name).is_some()
            });
        }
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                if let Some(schema) = &schema.items {
                    visit(item, schema, &format!("{path}[{n}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

/// Removes nulls that the schema does not allow.
pub(crate) fn drop_nulls(value: &mut Value, schema: &SchemaNode) {
    match value {
        Value::Object(members) if !schema.keeps_unknown => {
            members.retain(|name, value| {
                !value.is_null() || schema.member(name).is_some_and(|node| node.nullable)
            });
            for (name, value) in members {
                if let Some(schema) = schema.member(name) {
                    drop_nulls(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, schema));
            }
        }
        _ => {}
    }
}

/// Fills absent members that have a default.
pub(crate) fn fill_defaults(value: &mut Value, schema: &SchemaNode) {
    match value {
        Value::Object(members) => {
            for (name, schema) in &schema.properties {
                if let Some(default) = &schema.default {
                    members.entry(name.clone()).or_insert_with(|| default.clone());
                }
            }
            for (name, value) in members {
                if let Some(schema) = schema.member(name) {
                    fill_defaults(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| fill_defaults(item, schema));
            }
        }
        _ => {}
    }
}
