//! Options of a backup.

use serde_json::Value;

use super::record::{Object, RecordDefect};

/// Former option of BOS that is shown only while it is false (BOS reference 10.3, row 8).
const SHOWN_WHILE_FALSE: &str = "disable_components_on_completion";

/// Changes for the options of a backup.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct OptionChanges {
    /// Options that get another value.
    pub changes: Object,
    /// Number of options that have their value already.
    pub left: usize,
    /// Unknown options, and options without a value.
    pub defects: Vec<RecordDefect>,
}

/// Compares the options of a backup with those in force; all known options but one are in force.
pub(crate) fn plan(backup: Object, current: &Object) -> OptionChanges {
    let mut plan = OptionChanges::default();
    for (name, value) in backup {
        let value = stored(&name, value);
        let hidden = (name == SHOWN_WHILE_FALSE).then_some(&Value::Bool(true));
        match current.get(&name).or(hidden) {
            Some(now) if *now == value => plan.left += 1,
            Some(_) if value.is_null() => plan.defects.push(RecordDefect::new(name, "has no value")),
            Some(_) => {
                plan.changes.insert(name, value);
            }
            None => plan.defects.push(RecordDefect::new(name, "is no option")),
        }
    }
    plan
}

/// Returns the value in the letter case that nodes understand (BOS reference 12, BUG-07).
fn stored(name: &str, value: Value) -> Value {
    match value {
        Value::String(text) if name == "component_actual_state_ttl" => text.to_lowercase().into(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::record::object, *};

    #[test]
    fn only_what_differs_is_changed() {
        let current =
            json!({"clear_stage": false, "component_actual_state_ttl": "4h", "polling_frequency": 15});
        let current = object(current).expect("an object");
        for (backup, expected) in [
            (json!({}), "changes {} left 0 defects []"),
            (
                json!({"clear_stage": false, "component_actual_state_ttl": "4H"}),
                "changes {} left 2 defects []",
            ),
            (
                json!({"polling_frequency": 20, "clear_stage": false}),
                "changes {\"polling_frequency\":20} left 1 defects []",
            ),
            (json!({"disable_components_on_completion": true}), "changes {} left 1 defects []"),
            (
                json!({"disable_components_on_completion": false}),
                "changes {\"disable_components_on_completion\":false} left 0 defects []",
            ),
            (
                json!({"frobnicate": 1, "clear_stage": null}),
                "changes {} left 0 defects [clear_stage: has no value, frobnicate: is no option]",
            ),
        ] {
            let plan = plan(object(backup).expect("an object"), &current);
            let defects: Vec<_> = plan.defects.iter().map(ToString::to_string).collect();
            let told = format!(
                "changes {} left {} defects [{}]",
                Value::Object(plan.changes),
                plan.left,
                defects.join(", ")
            );
            assert_eq!(told, expected);
        }
    }
}
