//! Options of a backup.

use serde_json::Value;

use super::record::{Defect, Object};

/// Options that BOS had once. A backup of an older release holds them, and nothing is lost without them.
const REMOVED: [&str; 1] = ["disable_components_on_completion"];

/// What is to be done about the options of a backup.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Options that are to get another value.
    pub changes: Object,
    /// How many have their value already.
    pub left: usize,
    /// Options that exist no more.
    pub removed: Vec<String>,
    /// Options that nobody knows, or without a value.
    pub defects: Vec<Defect>,
}

/// Compares the options of a backup with those in force, which are all that there are.
pub(crate) fn plan(backup: Object, current: &Object) -> Plan {
    let mut plan = Plan::default();
    for (name, value) in backup {
        let value = stored(&name, value);
        match current.get(&name) {
            Some(now) if *now == value => plan.left += 1,
            Some(_) if value.is_null() => plan.defects.push(Defect::new(name, "has no value")),
            Some(_) => {
                plan.changes.insert(name, value);
            }
            None if REMOVED.contains(&name.as_str()) => plan.removed.push(name),
            None => plan.defects.push(Defect::new(name, "is no option")),
        }
    }
    plan
}

/// The value in the letters in which nodes understand it (BOS reference 12, BUG-07).
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
            (json!({}), "changes {} left 0 removed [] defects []"),
            (
                json!({"clear_stage": false, "component_actual_state_ttl": "4H"}),
                "changes {} left 2 removed [] defects []",
            ),
            (
                json!({"polling_frequency": 20, "clear_stage": false}),
                "changes {\"polling_frequency\":20} left 1 removed [] defects []",
            ),
            (
                json!({"disable_components_on_completion": true}),
                "changes {} left 0 removed [\"disable_components_on_completion\"] defects []",
            ),
            (
                json!({"frobnicate": 1, "clear_stage": null}),
                "changes {} left 0 removed [] defects [clear_stage: has no value, frobnicate: is no option]",
            ),
        ] {
            let plan = plan(object(backup).expect("an object"), &current);
            let defects: Vec<_> = plan.defects.iter().map(ToString::to_string).collect();
            let told = format!(
                "changes {} left {} removed {:?} defects [{}]",
                Value::Object(plan.changes),
                plan.left,
                plan.removed,
                defects.join(", ")
            );
            assert_eq!(told, expected);
        }
    }
}
