//! Components of a backup.

use domain::core::limits::LONGEST_NAME;
use serde_json::Value;

use super::{
    EnabledComponents,
    record::{Object, RecordDefect, fingerprint, kind, object},
};

/// Members of a component that have a time stamp.
const STAMPED: [&str; 4] = ["actual_state", "desired_state", "staged_state", "last_action"];

/// A component of a backup in the form of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct PreparedComponent {
    /// Id of the component.
    pub id: String,
    /// Record to write.
    pub record: Object,
    /// Whether the component was enabled in the backup and is not enabled in `record`.
    pub switched_off: bool,
}

/// State of an existing component in little memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExistingComponent {
    /// Whether the component is enabled.
    pub enabled: bool,
    /// Fingerprint of the component after a rewrite; none: it cannot be rewritten.
    pub form: Option<u64>,
}

/// Decision about a component of a backup.
#[derive(Debug, PartialEq)]
pub(crate) enum ComponentDecision {
    /// The component does not exist.
    Create,
    /// The component exists and differs.
    Change,
    /// The component exists and is equal.
    Leave,
    /// The component exists, differs, and is enabled.
    Busy,
}

/// Converts a listed component to the record that rewrites it.
pub(crate) fn again(shown: Object) -> Object {
    staged_by_nobody(portable(shown))
}

/// Whether a record enables its component.
pub(crate) fn is_enabled(record: &Object) -> bool {
    record.get("enabled") == Some(&Value::Bool(true))
}

/// Returns the fingerprint of a component as the service shows it after a write. Two records with the same
/// fingerprint have the same effect: the service computes the effect, so the import needs no knowledge of its rules.
pub(crate) fn form(shown: Object) -> u64 {
    fingerprint(&portable(shown))
}

/// Converts a component of a backup to a record.
///
/// # Errors
/// The defect of the record. The gateway judges the rest.
pub(crate) fn prepare(item: Value, enabled: EnabledComponents) -> Result<PreparedComponent, RecordDefect> {
    let mut record = again(object(item)?);
    let id = match record.get("id") {
        Some(Value::String(id)) if (1..=LONGEST_NAME).contains(&id.chars().count()) => id.clone(),
        Some(Value::String(_)) => {
            return Err(RecordDefect::new("id", format!("needs between 1 and {LONGEST_NAME} characters")));
        }
        Some(other) => return Err(RecordDefect::new("id", format!("is {}, not a text", kind(other)))),
        None => return Err(RecordDefect::new("id", "is missing")),
    };
    let switched_off = enabled == EnabledComponents::Off && is_enabled(&record);
    if switched_off {
        record.insert("enabled".into(), false.into());
    }
    Ok(PreparedComponent { id, record, switched_off })
}

impl ComponentDecision {
    /// Decides about a record with that fingerprint if the existing component is `standing`. An enabled component is
    /// not overwritten: a record of another place and time would redirect its node.
    pub(crate) fn of(form: u64, standing: Option<ExistingComponent>) -> Self {
        match standing {
            None => Self::Create,
            Some(now) if now.form == Some(form) => Self::Leave,
            Some(now) if now.enabled => Self::Busy,
            Some(_) => Self::Change,
        }
    }
}

/// Removes the members that only the service may write: times and the computed status (BOS reference 2.1, read-only
/// fields).
pub(crate) fn portable(mut component: Object) -> Object {
    for part in STAMPED {
        remove(&mut component, &[part], "last_updated");
    }
    remove(&mut component, &["status"], "status");
    remove(&mut component, &["actual_state", "boot_artifacts"], "timestamp");
    component
}

/// Removes staging sessions: sessions are not moved, and a staged state must not belong to a later session of the
/// same name.
fn staged_by_nobody(mut component: Object) -> Object {
    remove(&mut component, &["staged_state"], "session");
    component
}

fn remove(component: &mut Object, path: &[&str], member: &str) {
    let mut within = component;
    for part in path {
        let Some(Value::Object(inner)) = within.get_mut(*part) else { return };
        within = inner;
    }
    within.remove(member);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn discovered(enabled: bool) -> Value {
        let artifacts = json!({"kernel": "", "kernel_parameters": "", "initrd": ""});
        json!({
            "id": "x1", "enabled": enabled, "error": "", "session": "",
            "actual_state": {"boot_artifacts": artifacts, "bss_token": "", "last_updated": "2026-01-01T00:00:00"},
            "desired_state": {"boot_artifacts": artifacts, "configuration": "c", "last_updated": "2026-01-01T00:00:00"},
            "staged_state": {"last_updated": "2026-01-01T00:00:00"},
            "last_action": {"action": "newly_discovered", "failed": false, "last_updated": "2026-01-01T00:00:00"},
            "event_stats": {"power_on_attempts": 3, "power_off_graceful_attempts": 0, "power_off_forceful_attempts": 0},
            "status": {"phase": "", "status": "stable", "status_override": ""},
        })
    }

    #[test]
    fn what_only_the_service_may_write_is_taken_out() {
        let artifacts = json!({"kernel": "", "kernel_parameters": "", "initrd": ""});
        let expected = json!({
            "id": "x1", "enabled": false, "error": "", "session": "",
            "actual_state": {"boot_artifacts": artifacts, "bss_token": ""},
            "desired_state": {"boot_artifacts": artifacts, "configuration": "c"},
            "staged_state": {},
            "last_action": {"action": "newly_discovered", "failed": false},
            "event_stats": {"power_on_attempts": 3, "power_off_graceful_attempts": 0, "power_off_forceful_attempts": 0},
            "status": {"phase": "", "status_override": ""},
        });
        let portable = portable(object(discovered(false)).expect("an object"));
        assert_eq!(Value::Object(portable.clone()), expected);
        assert_eq!(super::portable(portable.clone()), portable, "what is portable stays as it is");
    }

    #[test]
    fn components_of_a_backup_are_stored_disabled_unless_wanted_otherwise() {
        for (given, wish, stored, switched_off) in [
            (
                json!({"id": "x1", "enabled": true}),
                EnabledComponents::Off,
                json!({"id": "x1", "enabled": false}),
                true,
            ),
            (
                json!({"id": "x1", "enabled": true}),
                EnabledComponents::Keep,
                json!({"id": "x1", "enabled": true}),
                false,
            ),
            (
                json!({"id": "x1", "enabled": false}),
                EnabledComponents::Off,
                json!({"id": "x1", "enabled": false}),
                false,
            ),
            (json!({"id": "x1"}), EnabledComponents::Off, json!({"id": "x1"}), false),
        ] {
            let prepared = prepare(given.clone(), wish).expect("a component");
            let record = object(stored).expect("an object");
            assert_eq!(
                prepared,
                PreparedComponent { id: "x1".into(), record, switched_off },
                "{given} {wish:?}"
            );
        }
    }

    #[test]
    fn nothing_is_staged_by_a_session_that_is_not_moved() {
        let given = json!({"id": "x1", "staged_state": {"configuration": "c", "session": "s"}});
        let record = prepare(given.clone(), EnabledComponents::Off).expect("a component").record;
        assert_eq!(Value::Object(record), json!({"id": "x1", "staged_state": {"configuration": "c"}}));
        assert_eq!(
            Value::Object(again(object(given).expect("an object"))),
            json!({"id": "x1", "staged_state": {"configuration": "c"}})
        );
    }

    #[test]
    fn what_is_no_component_is_told_why() {
        for (item, told) in [
            (json!(5), "is a number, not an object"),
            (json!({}), "id: is missing"),
            (json!({"id": ["x1"]}), "id: is an array, not a text"),
            (json!({"id": ""}), "id: needs between 1 and 127 characters"),
            (json!({"id": "x".repeat(128)}), "id: needs between 1 and 127 characters"),
        ] {
            let defect = prepare(item.clone(), EnabledComponents::Off).expect_err("a defect");
            assert_eq!(defect.to_string(), told, "{item}");
        }
    }

    #[test]
    fn an_unchanged_record_is_not_written() {
        let form_of = |shown: Value| form(object(shown).expect("an object"));
        let later = |mut shown: Value| {
            shown["desired_state"]["last_updated"] = "2026-02-02T00:00:00".into();
            form_of(shown)
        };
        assert_eq!(form_of(discovered(false)), later(discovered(false)));
        assert_ne!(form_of(discovered(false)), form_of(discovered(true)));
        let standing = |enabled, form| Some(ExistingComponent { enabled, form });
        for (now, verdict) in [
            (None, ComponentDecision::Create),
            (standing(false, Some(1)), ComponentDecision::Leave),
            (standing(true, Some(1)), ComponentDecision::Leave),
            (standing(false, Some(2)), ComponentDecision::Change),
            (standing(false, None), ComponentDecision::Change),
            (standing(true, Some(2)), ComponentDecision::Busy),
            (standing(true, None), ComponentDecision::Busy),
        ] {
            assert_eq!(ComponentDecision::of(1, now), verdict, "{now:?}");
        }
    }
}
