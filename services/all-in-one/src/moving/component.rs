//! Components of a backup.

use domain::limits::LONGEST_NAME;
use serde_json::Value;

use super::{
    Enabled,
    record::{Defect, Object, fingerprint, kind, object},
};

/// Parts of a component that say when they were written.
const STAMPED: [&str; 4] = ["actual_state", "desired_state", "staged_state", "last_action"];

/// What a component is to be, and what it is already.
#[derive(Debug, PartialEq)]
pub(crate) struct Prepared {
    /// Which one.
    pub id: String,
    /// The record to write.
    pub record: Object,
    /// Whether it was enabled in the backup and is not in `record`.
    pub switched_off: bool,
}

/// How a component stands where a backup is imported, in little memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Whether it is being acted on.
    pub enabled: bool,
    /// What stands for it once it has been written again; none: it could not be.
    pub form: Option<u64>,
}

/// What becomes of a component of a backup.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// There is no such component.
    Create,
    /// It is there and differs.
    Change,
    /// It is there and the same.
    Leave,
    /// It is there, differs, and is being acted on.
    Busy,
}

/// The record that puts a component in its own place, as a list shows it.
pub(crate) fn again(shown: Object) -> Object {
    staged_by_nobody(portable(shown))
}

/// Whether a record asks for its component to be acted on.
pub(crate) fn is_enabled(record: &Object) -> bool {
    record.get("enabled") == Some(&Value::Bool(true))
}

/// What stands for a component, as it is shown once it has been written. Two records with the same form come to the
/// same: whoever stores them says so, and nobody has to know here what a write does beyond what it says.
pub(crate) fn form(shown: Object) -> u64 {
    fingerprint(&portable(shown))
}

/// The record that a component of a backup becomes.
///
/// # Errors
/// Says why it is none. Whoever stores it judges the rest.
pub(crate) fn prepare(item: Value, enabled: Enabled) -> Result<Prepared, Defect> {
    let mut record = again(object(item)?);
    let id = match record.get("id") {
        Some(Value::String(id)) if (1..=LONGEST_NAME).contains(&id.chars().count()) => id.clone(),
        Some(Value::String(_)) => {
            return Err(Defect::new("id", format!("needs between 1 and {LONGEST_NAME} characters")));
        }
        Some(other) => return Err(Defect::new("id", format!("is {}, not a text", kind(other)))),
        None => return Err(Defect::new("id", "is missing")),
    };
    let switched_off = enabled == Enabled::Off && is_enabled(&record);
    if switched_off {
        record.insert("enabled".into(), false.into());
    }
    Ok(Prepared { id, record, switched_off })
}

impl Verdict {
    /// What becomes of a record of that `form` where its component stands as `standing`. A component that is being
    /// acted on is not written over: a record of another place and time would send its node somewhere else.
    pub(crate) fn of(form: u64, standing: Option<Standing>) -> Self {
        match standing {
            None => Self::Create,
            Some(now) if now.form == Some(form) => Self::Leave,
            Some(now) if now.enabled => Self::Busy,
            Some(_) => Self::Change,
        }
    }
}

/// A component without what only the service that holds it may write: times, the computed status (BOS reference
/// 2.1, read-only fields).
pub(crate) fn portable(mut component: Object) -> Object {
    for part in STAMPED {
        remove(&mut component, &[part], "last_updated");
    }
    remove(&mut component, &["status"], "status");
    remove(&mut component, &["actual_state", "boot_artifacts"], "timestamp");
    component
}

/// Sessions are not moved, and what one has staged must not become that of a later one of the same name.
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
            (json!({"id": "x1", "enabled": true}), Enabled::Off, json!({"id": "x1", "enabled": false}), true),
            (
                json!({"id": "x1", "enabled": true}),
                Enabled::Keep,
                json!({"id": "x1", "enabled": true}),
                false,
            ),
            (
                json!({"id": "x1", "enabled": false}),
                Enabled::Off,
                json!({"id": "x1", "enabled": false}),
                false,
            ),
            (json!({"id": "x1"}), Enabled::Off, json!({"id": "x1"}), false),
        ] {
            let prepared = prepare(given.clone(), wish).expect("a component");
            let record = object(stored).expect("an object");
            assert_eq!(prepared, Prepared { id: "x1".into(), record, switched_off }, "{given} {wish:?}");
        }
    }

    #[test]
    fn nothing_is_staged_by_a_session_that_is_not_moved() {
        let given = json!({"id": "x1", "staged_state": {"configuration": "c", "session": "s"}});
        let record = prepare(given.clone(), Enabled::Off).expect("a component").record;
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
            let defect = prepare(item.clone(), Enabled::Off).expect_err("a defect");
            assert_eq!(defect.to_string(), told, "{item}");
        }
    }

    #[test]
    fn a_record_is_left_alone_when_writing_it_would_change_nothing() {
        let form_of = |shown: Value| form(object(shown).expect("an object"));
        let later = |mut shown: Value| {
            shown["desired_state"]["last_updated"] = "2026-02-02T00:00:00".into();
            form_of(shown)
        };
        assert_eq!(form_of(discovered(false)), later(discovered(false)));
        assert_ne!(form_of(discovered(false)), form_of(discovered(true)));
        let standing = |enabled, form| Some(Standing { enabled, form });
        for (now, verdict) in [
            (None, Verdict::Create),
            (standing(false, Some(1)), Verdict::Leave),
            (standing(true, Some(1)), Verdict::Leave),
            (standing(false, Some(2)), Verdict::Change),
            (standing(false, None), Verdict::Change),
            (standing(true, Some(2)), Verdict::Busy),
            (standing(true, None), Verdict::Busy),
        ] {
            assert_eq!(Verdict::of(1, now), verdict, "{now:?}");
        }
    }
}
