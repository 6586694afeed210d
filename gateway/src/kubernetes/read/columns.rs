//! Cells of tables.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::super::{
    kinds::{CellSource, ResourceKind},
    object::{self, ApiObject},
};

/// Returns the definitions of the columns of a kind.
pub(super) fn definitions(kind: &ResourceKind) -> Value {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "description": "Name of the object", "priority": 0,
    });
    let others = kind.columns.iter().map(|column| {
        let form = match column.cell {
            CellSource::Since(_) => "date",
            CellSource::Count(_) => "integer",
            CellSource::At(_)
            | CellSource::Condition(_)
            | CellSource::ConditionReason(_)
            | CellSource::Involved => "string",
        };
        json!({
            "name": column.name, "type": form, "format": "", "description": column.description,
            "priority": column.priority,
        })
    });
    std::iter::once(name).chain(others).collect()
}

/// Returns the cells of an object.
pub(super) fn cells(kind: &ResourceKind, object: &ApiObject, now: DateTime<Utc>) -> Value {
    let name = Value::from(object::name(object));
    let others = kind.columns.iter().map(|column| cell(column.cell, object, now));
    std::iter::once(name).chain(others).collect()
}

fn cell(source: CellSource, object: &ApiObject, now: DateTime<Utc>) -> Value {
    match source {
        CellSource::At(path) => object::at(object, path).map_or(Value::Null, text),
        CellSource::Condition(word) => condition(object, word, "status"),
        CellSource::ConditionReason(word) => condition(object, word, "reason"),
        CellSource::Count(path) => {
            let members = object::at(object, path).and_then(Value::as_object).map_or(0, serde_json::Map::len);
            members.into()
        }
        CellSource::Since(path) => {
            let time = object::at(object, path).and_then(Value::as_str);
            let time = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
            time.map_or(Value::from("<unknown>"), |time| {
                age(now.signed_duration_since(time).num_seconds()).into()
            })
        }
        CellSource::Involved => {
            let member = |name| object::at(object, &["involvedObject", name]).and_then(Value::as_str);
            let kind = member("kind").unwrap_or_default().to_lowercase();
            format!("{kind}/{}", member("name").unwrap_or_default()).into()
        }
    }
}

/// Returns a value of a column of texts.
fn text(value: &Value) -> Value {
    match value {
        Value::Bool(_) | Value::Number(_) => value.to_string().into(),
        other => other.clone(),
    }
}

fn condition(object: &ApiObject, word: &str, member: &str) -> Value {
    let conditions = object::at(object, &["status", "conditions"]).and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == word);
    found.map_or(Value::Null, |condition| condition[member].clone())
}

/// Returns a time span as kubectl prints it, such as `5s`, `34m` or `3d4h`.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with_rest(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with_rest(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => with_rest(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () if days < 8 * 365 => with_rest(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

fn with_rest(whole: i64, unit: char, rest: i64, smaller: char) -> String {
    match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{smaller}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn ages_are_short() {
        let seconds =
            [-5, 0, 119, 120, 130, 599, 600, 10_799, 10_800, 11_100, 28_800, 172_799, 172_800, 180_000];
        let more = [691_200, 63_072_000, 70_000_000, 900_000_000];
        let shown: Vec<_> = seconds.into_iter().chain(more).map(age).collect();
        expect!["0s 0s 119s 2m 2m10s 9m59s 10m 179m 3h 3h5m 8h 47h 2d 2d2h 8d 2y 2y80d 28y"]
            .assert_eq(&shown.join(" "));
    }
}
