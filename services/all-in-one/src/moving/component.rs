//! Components of a backup.

use domain::limits::LONGEST_NAME;
use serde_json::{Value, json};

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
    form: u64,
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

impl Standing {
    /// Of a component as a list shows it.
    pub(crate) fn of(shown: Object) -> Self {
        let enabled = shown.get("enabled") == Some(&Value::Bool(true));
        Self { enabled, form: fingerprint(&as_written(staged_by_nobody(portable(shown)))) }
    }
}

/// The record that a component of a backup becomes.
///
/// # Errors
/// Says why it is none. Whoever stores it judges the rest.
pub(crate) fn prepare(item: Value, enabled: Enabled) -> Result<Prepared, Defect> {
    let mut record = staged_by_nobody(portable(object(item)?));
    let id = match record.get("id") {
        Some(Value::String(id)) if (1..=LONGEST_NAME).contains(&id.chars().count()) => id.clone(),
        Some(Value::String(_)) => {
            return Err(Defect::new("id", format!("needs between 1 and {LONGEST_NAME} characters")));
        }
        Some(other) => return Err(Defect::new("id", format!("is {}, not a text", kind(other)))),
        None => return Err(Defect::new("id", "is missing")),
    };
    let switched_off = enabled == Enabled::Off && record.get("enabled") == Some(&Value::Bool(true));
    if switched_off {
        record.insert("enabled".into(), false.into());
    }
    Ok(Prepared { id, record, switched_off })
}

impl Prepared {
    /// What becomes of it where it stands as `standing`. A component that is being acted on is not written over: a
    /// record of another place and time would send its node somewhere else.
    pub(crate) fn verdict(&self, standing: Option<Standing>) -> Verdict {
        match standing {
            None => Verdict::Create,
            Some(now) if now.form == fingerprint(&as_written(self.record.clone())) => Verdict::Leave,
            Some(now) if now.enabled => Verdict::Busy,
            Some(_) => Verdict::Change,
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

/// What a record is once it has been written: the hooks of a write (BOS reference 3.3) begin the count of attempts
/// anew, detach it from a session that is not named, and hold it when it is enabled.
fn as_written(mut record: Object) -> Object {
    let desired = record.get("desired_state").and_then(Value::as_object);
    let sets = desired.is_some_and(|desired| {
        desired.contains_key("boot_artifacts") || desired.contains_key("configuration")
    });
    if desired.is_some() {
        record.entry("session").or_insert_with(|| "".into());
    }
    if sets {
        let none = json!({
            "power_on_attempts": 0, "power_off_graceful_attempts": 0, "power_off_forceful_attempts": 0,
        });
        record.insert("event_stats".into(), none);
    }
    let held = record.get("enabled") == Some(&Value::Bool(true));
    let shown = if held { json!({}) } else { json!({"phase": "", "status_override": ""}) };
    let status = record.entry("status").or_insert(shown);
    if let Value::Object(status) = status
        && held
    {
        status.insert("status_override".into(), "on_hold".into());
    }
    record
}

#[cfg(test)]
mod tests {
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
        let prepared = prepare(given.clone(), Enabled::Off).expect("a component");
        let standing = Standing::of(object(given).expect("an object"));
        assert_eq!(prepared.verdict(Some(standing)), Verdict::Leave, "where it came from it stays staged");
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
        let shown = |component: Value| Some(Standing::of(object(component).expect("an object")));
        let changed = |component: &Value, member: &str, value: Value| {
            let mut changed = component.clone();
            changed[member] = value;
            changed
        };
        let off = discovered(false);
        let bare = json!({"id": "x1", "enabled": false});
        let bare_shown =
            changed(&bare, "status", json!({"phase": "", "status": "stable", "status_override": ""}));
        for (backup, standing, verdict) in [
            (&off, None, Verdict::Create),
            (&off, shown(off.clone()), Verdict::Leave),
            (&discovered(true), shown(off.clone()), Verdict::Leave),
            (&off, shown(changed(&off, "event_stats", json!({"power_on_attempts": 0}))), Verdict::Leave),
            (&off, shown(changed(&off, "error", "broken".into())), Verdict::Change),
            (&off, shown(discovered(true)), Verdict::Busy),
            (&bare, shown(bare_shown), Verdict::Leave),
            (&bare, shown(changed(&bare, "status", json!({"phase": "configuring"}))), Verdict::Change),
        ] {
            let prepared = prepare(backup.clone(), Enabled::Off).expect("a component");
            assert_eq!(prepared.verdict(standing), verdict, "{backup} {standing:?}");
        }
    }
}
