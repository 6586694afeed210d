//! Shapes of JSON, for answers that vary (BOS reference 0.2).
//!
//! A shape is JSON itself, with texts that stand for many: `<time>`, `<duration>`, `<uuid>`, and `<text>` for any that
//! is not empty. An object with the member `...` may have other members besides. The order of a list is ignored if its
//! members have a `name`.

use serde_json::{Map, Value};

/// Returns the first mismatch between `value` and `shape`, with its place; `None`: it fits.
pub fn mismatch(shape: &Value, value: &Value) -> Option<String> {
    at("", shape, value)
}

fn at(path: &str, shape: &Value, value: &Value) -> Option<String> {
    match (shape, value) {
        (Value::Object(shape), Value::Object(value)) => object(path, shape, value),
        (Value::Array(shape), Value::Array(value)) => array(path, shape, value),
        (Value::String(shape), Value::String(value)) if fits(shape, value) => None,
        (shape, value) if shape == value => None,
        (_, value) => Some(format!("{}is {value}", place(path))),
    }
}

fn object(path: &str, shape: &Map<String, Value>, value: &Map<String, Value>) -> Option<String> {
    let open = shape.contains_key("...");
    if let Some(member) = value.keys().find(|member| !open && !shape.contains_key(*member)) {
        return Some(format!("{}has the member '{member}'", place(path)));
    }
    let mut members = shape.iter().filter(|(member, _)| *member != "...");
    members.find_map(|(member, shape)| match value.get(member) {
        Some(value) => at(&format!("{path}.{member}"), shape, value),
        None => Some(format!("{}has no member '{member}'", place(path))),
    })
}

fn array(path: &str, shape: &[Value], value: &[Value]) -> Option<String> {
    if shape.len() != value.len() {
        return Some(format!("{}has {} items, not {}", place(path), value.len(), shape.len()));
    }
    let (shape, value) = (by_name(shape), by_name(value));
    let mut pairs = shape.iter().zip(&value).enumerate();
    pairs.find_map(|(index, (shape, value))| at(&format!("{path}[{index}]"), shape, value))
}

fn by_name(items: &[Value]) -> Vec<&Value> {
    let mut items: Vec<_> = items.iter().collect();
    items.sort_by_key(|item| item.get("name").and_then(Value::as_str).map(str::to_owned));
    items
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{} ", path.trim_start_matches('.')) }
}

fn fits(shape: &str, text: &str) -> bool {
    match shape {
        "<text>" => !text.is_empty(),
        "<time>" => outline(text) == "####-##-##T##:##:##",
        "<uuid>" => text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]),
        "<duration>" => is_duration(text),
        _ => shape == text,
    }
}

/// `0:02:17`, with a fraction while it still grows, and days before it (BOS reference 3.9).
fn is_duration(text: &str) -> bool {
    let (_, clock) = text.rsplit_once(", ").unwrap_or(("", text));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "000000"));
    fraction.len() == 6 && matches!(outline(clock).as_str(), "#:##:##" | "##:##:##")
}

fn outline(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect()
}
