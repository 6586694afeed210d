//! Validation of a value by its schema, all defects at once.

use chrono::DateTime;
use serde_json::Value;

use super::{super::failure::FailureCause, SchemaNode, ValueKind};

/// Returns the defects of a value at `path`.
pub(crate) fn check(value: &Value, schema: &SchemaNode, path: &str) -> Vec<FailureCause> {
    let mut causes = Vec::new();
    visit(value, schema, path, &mut causes);
    causes
}

fn visit(value: &Value, schema: &SchemaNode, path: &str, causes: &mut Vec<FailureCause>) {
    if value.is_null() && (schema.nullable || schema.kind == ValueKind::Any) {
        return;
    }
    if !has_type(value, schema) {
        let message = format!("Invalid value: {}: must be of type {}", shown(value), word(schema));
        causes.push(FailureCause::new("FieldValueTypeInvalid", path, message));
        return;
    }
    if !schema.allowed.is_empty() && !schema.allowed.contains(value) {
        let words: Vec<_> = schema.allowed.iter().map(shown).collect();
        let message = format!("Unsupported value: {}: supported values: {}", shown(value), words.join(", "));
        causes.push(FailureCause::new("FieldValueNotSupported", path, message));
    }
    match value {
        Value::Object(members) => {
            for name in schema.required.iter().filter(|name| !members.contains_key(*name)) {
                causes.push(FailureCause::new("FieldValueRequired", member(path, name), "Required value"));
            }
            for (name, value) in members {
                if let Some(schema) = schema.member(name) {
                    visit(value, schema, &member(path, name), causes);
                }
            }
        }
        Value::Array(items) => {
            causes.extend(number_of_items(items, schema, path));
            for (n, item) in items.iter().enumerate() {
                if let Some(schema) = &schema.items {
                    visit(item, schema, &format!("{path}[{n}]"), causes);
                }
            }
        }
        Value::String(text) => causes.extend(text_defect(text, schema).map(|why| invalid(value, path, &why))),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            causes.extend(number_defect(number, schema).map(|why| invalid(value, path, &why)));
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn member(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false if name.contains(['.', '/']) => format!("{path}[{name}]"),
        false => format!("{path}.{name}"),
    }
}

fn invalid(value: &Value, path: &str, why: &str) -> FailureCause {
    FailureCause::invalid(path, format!("Invalid value: {}: {why}", shown(value)))
}

/// Returns a value for a message, which is not to be megabytes long.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

fn word(schema: &SchemaNode) -> &'static str {
    match schema.kind {
        ValueKind::Any => "integer or string",
        ValueKind::Object => "object",
        ValueKind::Array => "array",
        ValueKind::String => "string",
        ValueKind::Integer => "integer",
        ValueKind::Number => "number",
        ValueKind::Boolean => "boolean",
    }
}

fn has_type(value: &Value, schema: &SchemaNode) -> bool {
    match schema.kind {
        ValueKind::Any => !schema.is_number_or_text || value.is_string() || value.is_i64() || value.is_u64(),
        ValueKind::Object => value.is_object(),
        ValueKind::Array => value.is_array(),
        ValueKind::String => value.is_string(),
        ValueKind::Integer => value.is_i64() || value.is_u64(),
        ValueKind::Number => value.is_number(),
        ValueKind::Boolean => value.is_boolean(),
    }
}

fn number_of_items(items: &[Value], schema: &SchemaNode, path: &str) -> Option<FailureCause> {
    let number = items.len();
    if let Some(most) = schema.max_items.filter(|most| number > *most) {
        let message = format!("Too many: {number}: must have at most {most} items");
        return Some(FailureCause::new("FieldValueTooMany", path, message));
    }
    let least = schema.min_items.filter(|least| number < *least)?;
    Some(FailureCause::invalid(path, format!("Invalid value: {number}: should have at least {least} items")))
}

fn text_defect(text: &str, schema: &SchemaNode) -> Option<String> {
    let length = text.chars().count();
    if let Some(most) = schema.max_length.filter(|most| length > *most) {
        return Some(format!("may not be more than {most} characters"));
    }
    if let Some(least) = schema.min_length.filter(|least| length < *least) {
        return Some(format!("should be at least {least} characters long"));
    }
    if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        return Some(format!("should match '{pattern}'"));
    }
    let is_time = schema.format == "date-time";
    (is_time && DateTime::parse_from_rfc3339(text).is_err())
        .then(|| "must be a time such as 2026-01-31T12:00:00Z".to_owned())
}

fn number_defect(number: f64, schema: &SchemaNode) -> Option<String> {
    if let Some(least) = schema.minimum.filter(|least| number < *least) {
        return Some(format!("should be greater than or equal to {least}"));
    }
    let most = schema.maximum.filter(|most| number > *most)?;
    Some(format!("should be less than or equal to {most}"))
}
