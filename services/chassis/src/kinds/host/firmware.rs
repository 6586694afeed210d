//! Records about the firmware of hosts: wishes are read from them, readings and judgements are written (host reference
//! 2.6).

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    core::{bos_time, time::Timestamp},
    host::evidence::FirmwareWish,
    host::firmware::{
        judgement::{FirmwareJudgement, FlawKind},
        reading::{FirmwareComponent, FirmwareUpdate, FirmwareWishes, SettingKind, SettingRule},
    },
};
use proto::host as wire;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{condition, judged, object};

/// Reasons of conditions, one of each pair for good news.
struct ConditionWords {
    good: &'static str,
    bad: &'static str,
}

const SETTINGS: ConditionWords = ConditionWords { good: "Success", bad: "ConfigurationError" };
const COMPONENTS: ConditionWords = ConditionWords { good: "OK", bad: "InvalidComponent" };

/// Reason of conditions where the hardware lacks the subject of the record.
const NOT_OFFERED: &str = "NotOffered";

/// Reads the wishes of the two records about the firmware of a host.
pub fn wishes(
    settings: Option<&wire::HostDocument>,
    components: Option<&wire::HostDocument>,
) -> FirmwareWishes {
    let spec = settings.map(|document| object(&document.spec_json)).unwrap_or_default();
    let updates = components.map(|document| updates(&object(&document.spec_json))).unwrap_or_default();
    FirmwareWishes { settings: values(&spec["settings"]), updates }
}

/// Reads the updates that were begun.
pub fn begun_updates(components: &wire::HostDocument) -> Vec<FirmwareUpdate> {
    updates(&object(&components.status_json))
}

/// Reads the components that were read last.
pub fn known_components(components: &wire::HostDocument) -> Vec<FirmwareComponent> {
    let status = object(&components.status_json);
    let listed = status["components"].as_array().into_iter().flatten();
    let component = |entry: &Value| FirmwareComponent {
        name: text(&entry["component"]),
        version: text(&entry["currentVersion"]),
    };
    listed.map(component).collect()
}

/// Reads the values of settings that were read last.
pub fn known_settings(settings: &wire::HostDocument) -> BTreeMap<Arc<str>, Arc<str>> {
    values(&object(&settings.status_json)["settings"])
}

/// Reads how the record of settings or versions judges its wishes, whether it has any or not.
pub fn judgement(document: &wire::HostDocument) -> FirmwareWish {
    judged(document, &object(&document.status_json))
}

/// Reads the name of the schema of settings; `None`: there is none yet.
pub fn schema_of(settings: &wire::HostDocument) -> Option<String> {
    Some(object(&settings.status_json)["schema"]["name"].as_str()?.to_owned())
}

/// Reads the rules of a schema.
pub fn rules(schema: &wire::HostDocument) -> BTreeMap<Arc<str>, SettingRule> {
    let spec = object(&schema.spec_json);
    let listed = spec["schema"].as_object().into_iter().flatten();
    listed.map(|(name, rule)| (name.as_str().into(), self::rule(rule))).collect()
}

fn rule(rule: &Value) -> SettingRule {
    let allowed = rule["allowable_values"].as_array().into_iter().flatten();
    SettingRule {
        kind: SettingKind::from_word(rule["attribute_type"].as_str().unwrap_or_default()),
        allowed: allowed.map(text).collect(),
        lower_bound: rule["lower_bound"].as_i64(),
        upper_bound: rule["upper_bound"].as_i64(),
        min_length: rule["min_length"].as_i64(),
        max_length: rule["max_length"].as_i64(),
        read_only: rule["read_only"] == true,
        unique: rule["unique"].as_bool(),
    }
}

/// Returns the spec of a schema with these rules.
pub fn schema_spec(rules: &BTreeMap<Arc<str>, SettingRule>, vendor: &str, model: &str) -> String {
    let listed: Map<_, _> = rules.iter().map(|(name, rule)| (name.to_string(), rule_to_json(rule))).collect();
    let mut spec = json!({ "schema": listed });
    for (name, value) in [("hardwareVendor", vendor), ("hardwareModel", model)] {
        if !value.is_empty() {
            spec[name] = value.into();
        }
    }
    spec.to_string()
}

fn rule_to_json(rule: &SettingRule) -> Value {
    let mut members = json!({ "read_only": rule.read_only });
    if rule.kind != SettingKind::Untyped {
        members["attribute_type"] = rule.kind.word().into();
    }
    if !rule.allowed.is_empty() {
        members["allowable_values"] = rule.allowed.iter().map(|value| Value::from(&**value)).collect();
    }
    for (name, bound) in [
        ("lower_bound", rule.lower_bound),
        ("upper_bound", rule.upper_bound),
        ("min_length", rule.min_length),
        ("max_length", rule.max_length),
    ] {
        if let Some(bound) = bound {
            members[name] = bound.into();
        }
    }
    if let Some(unique) = rule.unique {
        members["unique"] = unique.into();
    }
    members
}

/// Returns the name of a schema with that spec: like hosts share one.
pub fn schema_name(spec: &str) -> String {
    let digest = Sha256::digest(spec);
    let start: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("schema-{start}")
}

/// Result of a reading, as it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct ReadingNote<'a> {
    /// Judgement of the wishes.
    pub judgement: &'a FirmwareJudgement,
    /// Time of the reading.
    pub read_at: Timestamp,
    /// Time of the last end of a preparation or servicing: a record of an earlier reading gets the time of this one.
    pub changed_at: Option<Timestamp>,
}

/// Returns the new status of the record of settings; `None`: it says the same already. `values` are `None` where the
/// hardware offers no settings.
pub fn settings_status(
    document: &wire::HostDocument,
    values: Option<&BTreeMap<Arc<str>, Arc<str>>>,
    schema: Option<&str>,
    note: ReadingNote<'_>,
) -> Option<String> {
    let namespace = document.meta.as_ref().map_or("", |meta| &meta.namespace);
    let mut status = object_or_empty(&document.status_json);
    let read = values.into_iter().flatten().map(|(name, value)| (name.to_string(), Value::from(&**value)));
    status["settings"] = Value::Object(read.collect());
    if let Some(schema) = schema {
        status["schema"] = json!({"namespace": namespace, "name": schema});
    }
    finish(document, status, &SETTINGS, values.is_some(), note)
}

/// Returns the new status of the record of versions; `None`: it says the same already. `components` are `None` where the
/// hardware offers no updates.
pub fn components_status(
    document: &wire::HostDocument,
    components: Option<&[FirmwareComponent]>,
    note: ReadingNote<'_>,
) -> Option<String> {
    let mut status = object_or_empty(&document.status_json);
    let known = status["components"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| known.iter().find(|entry| entry["component"] == name);
    let listed = components.unwrap_or_default().iter();
    let listed = listed.map(|component| component_to_json(component, of(&component.name), note.read_at));
    status["components"] = listed.collect();
    // A wish that was withdrawn and comes back is a new one.
    if updates(&object(&document.spec_json)).is_empty() || status["updates"].is_null() {
        status["updates"] = json!([]);
    }
    finish(document, status, &COMPONENTS, components.is_some(), note)
}

fn component_to_json(component: &FirmwareComponent, known: Option<&Value>, now: Timestamp) -> Value {
    let version = Value::from(&*component.version);
    let Some(known) = known else {
        return json!({"component": &*component.name, "initialVersion": version, "currentVersion": version});
    };
    let mut entry = known.clone();
    if entry["currentVersion"] != version {
        entry["lastVersionFlashed"] = version.clone();
        entry["updatedAt"] = time(now).into();
        entry["currentVersion"] = version;
    }
    entry
}

fn finish(
    document: &wire::HostDocument,
    mut status: Value,
    words: &ConditionWords,
    is_offered: bool,
    note: ReadingNote<'_>,
) -> Option<String> {
    let known = object(&document.status_json);
    let generation = document.meta.as_ref().map_or(0, |meta| meta.generation);
    let FirmwareJudgement { is_changed, flaws } = note.judgement;
    let texts: Vec<_> = flaws.iter().map(ToString::to_string).collect();
    let lacks = flaws.iter().any(|flaw| flaw.problem == FlawKind::NotOffered);
    let bad = if lacks { NOT_OFFERED } else { words.bad };
    let good = if is_offered { words.good } else { NOT_OFFERED };
    let conditions = [
        ("ChangeDetected", *is_changed, good, String::new()),
        ("Valid", flaws.is_empty(), if flaws.is_empty() { good } else { bad }, texts.join("; ")),
    ];
    let now = time(note.read_at);
    let conditions = conditions.map(|(name, is_true, reason, message)| {
        let word = if is_true { "True" } else { "False" };
        let before = condition(&known, name).filter(|before| before["status"] == word);
        let since = before.map_or_else(|| now.clone().into(), |before| before["lastTransitionTime"].clone());
        json!({"type": name, "status": word, "reason": reason, "message": message,
            "observedGeneration": generation, "lastTransitionTime": since})
    });
    status["conditions"] = conditions.into_iter().collect();
    let recorded_at = known["lastUpdated"].as_str().and_then(bos_time::read).unwrap_or_default();
    let is_outdated = note.changed_at.is_some_and(|changed| recorded_at <= changed);
    if status == known && !is_outdated {
        return None;
    }
    status["lastUpdated"] = now.into();
    Some(status.to_string())
}

fn time(at: Timestamp) -> String {
    format!("{}Z", bos_time::text(at))
}

fn object_or_empty(text: &str) -> Value {
    let read = object(text);
    if read.is_object() { read } else { json!({}) }
}

fn values(settings: &Value) -> BTreeMap<Arc<str>, Arc<str>> {
    let listed = settings.as_object().into_iter().flatten();
    listed.map(|(name, value)| (name.as_str().into(), text(value))).collect()
}

fn updates(holder: &Value) -> Vec<FirmwareUpdate> {
    let listed = holder["updates"].as_array().into_iter().flatten();
    let update =
        |entry: &Value| FirmwareUpdate { component: text(&entry["component"]), url: text(&entry["url"]) };
    listed.map(update).collect()
}

/// Returns a value as text: a setting may be a number.
fn text(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Null => "".into(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn document(spec: &Value, status: &str) -> wire::HostDocument {
        let meta = wire::ObjectMeta {
            namespace: "m".to_owned(),
            name: "h".to_owned(),
            generation: 2,
            ..wire::ObjectMeta::default()
        };
        wire::HostDocument {
            meta: Some(meta),
            spec_json: spec.to_string(),
            status_json: status.to_owned(),
            ..wire::HostDocument::default()
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    #[test]
    fn settings_are_recorded_with_what_is_wrong_with_the_wishes() {
        let spec = json!({"settings": {"Delay": 5, "Turbo": "Off"}});
        let first = document(&spec, "");
        assert_eq!(wishes(Some(&first), None).settings["Delay"], "5".into());
        let values = BTreeMap::from([("Delay".into(), "4".into())]);
        let judgement = domain::host::firmware::judgement::judge_settings(
            &wishes(Some(&first), None),
            Some(&values),
            &BTreeMap::new(),
        );
        let note =
            |seconds, changed_at| ReadingNote { judgement: &judgement, read_at: at(seconds), changed_at };
        let status = settings_status(&first, Some(&values), Some("schema-1"), note(1, None)).unwrap();
        expect![[r#"{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":2,"reason":"Success","status":"True","type":"ChangeDetected"},{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"Turbo: the hardware has none of that name","observedGeneration":2,"reason":"ConfigurationError","status":"False","type":"Valid"}],"lastUpdated":"1970-01-01T00:00:01Z","schema":{"name":"schema-1","namespace":"m"},"settings":{"Delay":"4"}}"#]].assert_eq(&status);
        let second = document(&spec, &status);
        let again = |note| settings_status(&second, Some(&values), Some("schema-1"), note);
        assert_eq!(again(note(9, None)), None);
        assert!(again(note(9, Some(at(1)))).unwrap().contains("1970-01-01T00:00:09Z"));
        assert_eq!(schema_of(&second).unwrap(), "schema-1");
        assert!(super::super::document::settings(&second).unwrap().is_judged);
    }

    #[test]
    fn hardware_without_settings_fulfils_no_wish() {
        let spec = json!({"settings": {"Turbo": "Off"}});
        let first = document(&spec, "");
        let judgement = domain::host::firmware::judgement::judge_settings(
            &wishes(Some(&first), None),
            None,
            &BTreeMap::new(),
        );
        let note = ReadingNote { judgement: &judgement, read_at: at(1), changed_at: None };
        expect![[r#"{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":2,"reason":"NotOffered","status":"True","type":"ChangeDetected"},{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"Turbo: the hardware offers no such change","observedGeneration":2,"reason":"NotOffered","status":"False","type":"Valid"}],"lastUpdated":"1970-01-01T00:00:01Z","settings":{}}"#]].assert_eq(&settings_status(&first, None, None, note).unwrap());
    }

    #[test]
    fn components_remember_their_first_version() {
        let spec = json!({"updates": [{"component": "bios", "url": "http://i/b"}]});
        let component = |version: &str| [FirmwareComponent { name: "bios".into(), version: version.into() }];
        let judgement = FirmwareJudgement { is_changed: true, flaws: Vec::new() };
        let note = |seconds| ReadingNote { judgement: &judgement, read_at: at(seconds), changed_at: None };
        let status = components_status(&document(&spec, ""), Some(&component("1.0")), note(1)).unwrap();
        let known = document(&spec, &status);
        assert_eq!(known_components(&known), component("1.0"));
        assert!(begun_updates(&known).is_empty());
        expect![[r#"{"components":[{"component":"bios","currentVersion":"1.1","initialVersion":"1.0","lastVersionFlashed":"1.1","updatedAt":"1970-01-01T00:00:02Z"}],"conditions":[{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":2,"reason":"OK","status":"True","type":"ChangeDetected"},{"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":2,"reason":"OK","status":"True","type":"Valid"}],"lastUpdated":"1970-01-01T00:00:02Z","updates":[]}"#]].assert_eq(&components_status(&known, Some(&component("1.1")), note(2)).unwrap());
    }

    #[test]
    fn a_schema_is_named_by_its_content() {
        let rule = SettingRule {
            kind: SettingKind::Enumeration,
            allowed: vec!["On".into(), "Off".into()],
            lower_bound: Some(1),
            unique: Some(false),
            ..SettingRule::default()
        };
        let listed = BTreeMap::from([("Turbo".into(), rule)]);
        let spec = schema_spec(&listed, "ACME", "");
        let schema = wire::HostDocument { spec_json: spec.clone(), ..wire::HostDocument::default() };
        assert_eq!(rules(&schema), listed);
        expect![[r#"schema-3a12e627 {"hardwareVendor":"ACME","schema":{"Turbo":{"allowable_values":["On","Off"],"attribute_type":"Enumeration","lower_bound":1,"read_only":false,"unique":false}}}"#]].assert_eq(&format!("{} {spec}", schema_name(&spec)));
    }
}
