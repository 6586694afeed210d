//! Session templates of a backup: their owners, and the repairs before they are accepted.

use domain::{
    boot::template::image::STORE_TYPE,
    core::{
        id::check_name,
        limits::{LONGEST_DESCRIPTION, LONGEST_NAME},
        xname::canonical_xname,
    },
};
use serde_json::Value;

use super::record::{Object, RecordDefect, fingerprint, kind, object};

/// Members of a template in a request (BOS reference 2.8.1).
const MEMBERS: [&str; 4] = ["boot_sets", "cfs", "description", "enable_cfs"];

/// Members outside a template's body: a part of its address, or never used.
const ADDRESS: [&str; 3] = ["name", "tenant", "links"];

/// Lists of nodes, of which a boot set needs one.
const SPECIFIERS: [&str; 3] = ["node_list", "node_roles_groups", "node_groups"];

/// Other members of a boot set (BOS reference 2.8.2).
const BOOT_SET_MEMBERS: [&str; 8] = [
    "arch",
    "cfs",
    "etag",
    "kernel_parameters",
    "path",
    "rootfs_provider",
    "rootfs_provider_passthrough",
    "type",
];

/// Tenant and name of a template; no tenant: empty.
pub(crate) type Key = (String, String);

/// A template of a backup in the form of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct PreparedTemplate {
    /// Tenant and name.
    pub key: Key,
    /// The body of the request.
    pub body: Object,
    /// Repairs, for people.
    pub mended: Vec<String>,
}

impl PreparedTemplate {
    /// Returns the fingerprint of the body.
    pub(crate) fn form(&self) -> u64 {
        fingerprint(&self.body)
    }
}

/// Converts a template of a backup to a request. Remains of older releases are repaired like in the upgrade of BOS (BOS
/// reference 10.4), except names, which users know.
///
/// # Errors
/// Names the member that makes it useless.
pub(crate) fn prepare(item: Value) -> Result<PreparedTemplate, RecordDefect> {
    let mut body = object(item)?;
    let key = (tenant(body.get("tenant"))?, name(body.get("name"))?);
    let mut mended = Vec::new();
    for member in ADDRESS {
        body.remove(member);
    }
    clean(&mut body, &MEMBERS, "", &mut mended);
    clean_cfs(&mut body, "", &mut mended);
    clean_description(&mut body, &mut mended);
    let boot_sets = body.remove("boot_sets").ok_or_else(|| RecordDefect::new("boot_sets", "is missing"))?;
    let boot_sets = object(boot_sets).map_err(|defect| defect.within("boot_sets"))?;
    if boot_sets.is_empty() {
        return Err(RecordDefect::new("boot_sets", "needs at least one boot set"));
    }
    let boot_sets = boot_sets.into_iter().map(|(name, boot_set)| {
        let path = format!("boot_sets.{name}");
        let boot_set =
            prepare_boot_set(boot_set, &path, &mut mended).map_err(|defect| defect.within(&path))?;
        Ok((name, Value::Object(boot_set)))
    });
    let boot_sets = boot_sets.collect::<Result<Object, RecordDefect>>()?;
    body.insert("boot_sets".into(), boot_sets.into());
    Ok(PreparedTemplate { key, body, mended })
}

/// Returns the label of a template in texts.
pub(crate) fn label((tenant, name): &Key) -> String {
    if tenant.is_empty() { name.clone() } else { format!("{name} (tenant {tenant})") }
}

fn name(value: Option<&Value>) -> Result<String, RecordDefect> {
    let Some(value) = value else { return Err(RecordDefect::new("name", "is missing")) };
    let name = text("name", value)?;
    check_name("name", name).map_err(|invalid| RecordDefect::new(invalid.field, invalid.reason))?;
    Ok(name.to_owned())
}

fn tenant(value: Option<&Value>) -> Result<String, RecordDefect> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(String::new()) };
    let tenant = text("tenant", value)?;
    if tenant.chars().count() > LONGEST_NAME {
        return Err(RecordDefect::new("tenant", format!("has more than {LONGEST_NAME} characters")));
    }
    Ok(tenant.to_owned())
}

fn text<'a>(field: &str, value: &'a Value) -> Result<&'a str, RecordDefect> {
    value.as_str().ok_or_else(|| RecordDefect::new(field, format!("is {}, not a text", kind(value))))
}

/// Removes members without a value and unknown members.
fn clean(object: &mut Object, known: &[&str], path: &str, mended: &mut Vec<String>) {
    object.retain(|member, value| {
        let keep = known.contains(&member.as_str());
        if !keep {
            mended.push(format!("{}: unknown, left out", joined(path, member)));
        }
        keep && !value.is_null()
    });
}

/// Removes an empty `cfs`, which means none.
fn clean_cfs(object: &mut Object, path: &str, mended: &mut Vec<String>) {
    let Some(Value::Object(cfs)) = object.get_mut("cfs") else { return };
    clean(cfs, &["configuration"], &joined(path, "cfs"), mended);
    cfs.retain(|_, configuration| configuration.as_str() != Some(""));
    if cfs.is_empty() {
        object.remove("cfs");
    }
}

fn clean_description(template: &mut Object, mended: &mut Vec<String>) {
    let Some(value) = template.get("description") else { return };
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else {
        mended.push("description: empty or no text, left out".into());
        template.remove("description");
        return;
    };
    if text.chars().count() > LONGEST_DESCRIPTION {
        mended.push(format!("description: cut to {LONGEST_DESCRIPTION} characters"));
        let cut = text.chars().take(LONGEST_DESCRIPTION).collect::<String>();
        template.insert("description".into(), cut.into());
    }
}

fn prepare_boot_set(value: Value, path: &str, mended: &mut Vec<String>) -> Result<Object, RecordDefect> {
    let mut boot_set = object(value)?;
    // The name repeats the key, and is not stored.
    boot_set.remove("name");
    clean(&mut boot_set, &[&BOOT_SET_MEMBERS[..], &SPECIFIERS].concat(), path, mended);
    clean_cfs(&mut boot_set, path, mended);
    let empty = |member: &str, value: &Value| match member {
        "rootfs_provider" => value.as_str() == Some(""),
        _ => SPECIFIERS.contains(&member) && value.as_array().is_some_and(Vec::is_empty),
    };
    boot_set.retain(|member, value| !empty(member, value));
    if !SPECIFIERS.iter().any(|specifier| boot_set.contains_key(*specifier)) {
        return Err(RecordDefect::new("", format!("needs one of {}", SPECIFIERS.join(", "))));
    }
    match boot_set.get("path") {
        Some(Value::String(path)) if !path.is_empty() => {}
        _ => return Err(RecordDefect::new("path", "is missing or empty")),
    }
    if boot_set.get("type").and_then(Value::as_str) != Some(STORE_TYPE) {
        mended.push(format!("{path}.type: set to {STORE_TYPE}"));
        boot_set.insert("type".into(), STORE_TYPE.into());
    }
    boot_set.entry("arch").or_insert_with(|| "X86".into());
    if let Some(Value::Array(nodes)) = boot_set.get_mut("node_list") {
        nodes.iter_mut().for_each(respell);
    }
    Ok(boot_set)
}

fn respell(node: &mut Value) {
    if let Value::String(name) = node {
        *name = canonical_xname(name);
    }
}

fn joined(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn told(item: Value) -> String {
        match prepare(item) {
            Ok(PreparedTemplate { key, body, mended }) => {
                format!("{}: {} {mended:?}\n", label(&key), Value::Object(body))
            }
            Err(defect) => format!("skipped: {defect}\n"),
        }
    }

    #[test]
    fn templates_are_mended_as_an_upgrade_does_it() {
        let boot_set = json!({"path": "p", "type": "s3", "arch": "X86", "node_list": ["x1c0s0b0n0"]});
        let with = |member: &str, value: Value| {
            let mut changed = boot_set.clone();
            changed[member] = value;
            json!({"name": "t", "tenant": null, "boot_sets": {"a": changed}})
        };
        let template = |member: &str, value: Value| {
            let mut changed = json!({"name": "t", "boot_sets": {"a": boot_set}});
            changed[member] = value;
            changed
        };
        let items = [
            template("tenant", "blue".into()),
            template("tenant", "".into()),
            template("links", json!([])),
            template("cfs", json!({"configuration": ""})),
            template("cfs", json!({"configuration": "c", "clone_url": "u"})),
            template("description", "".into()),
            template("description", Value::Null),
            template("enable_cfs", Value::Null),
            template("cloud-init", json!({})),
            with("name", "a".into()),
            with("type", "ims".into()),
            with("arch", Value::Null),
            with("node_list", json!(["X001c0s0b0n0"])),
            with("node_groups", json!([])),
            with("rootfs_provider", "".into()),
            with("cfs", json!({})),
            with("ordinal", 1.into()),
        ];
        expect![[r#"
            t (tenant blue): {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}},"cfs":{"configuration":"c"}} ["cfs.clone_url: unknown, left out"]
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} ["description: empty or no text, left out"]
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} ["cloud-init: unknown, left out"]
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} ["boot_sets.a.type: set to s3"]
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} []
            t: {"boot_sets":{"a":{"arch":"X86","node_list":["x1c0s0b0n0"],"path":"p","type":"s3"}}} ["boot_sets.a.ordinal: unknown, left out"]
        "#]]
        .assert_eq(&items.map(told).concat());
    }

    #[test]
    fn useless_templates_are_told_why() {
        let items = [
            json!([]),
            json!({"boot_sets": {}}),
            json!({"name": 5, "boot_sets": {}}),
            json!({"name": "-t", "boot_sets": {}}),
            json!({"name": "t", "tenant": 1, "boot_sets": {}}),
            json!({"name": "t", "tenant": "x".repeat(128), "boot_sets": {}}),
            json!({"name": "t"}),
            json!({"name": "t", "boot_sets": []}),
            json!({"name": "t", "boot_sets": {}}),
            json!({"name": "t", "boot_sets": {"a": 1}}),
            json!({"name": "t", "boot_sets": {"a": {"path": "p", "type": "s3", "node_list": []}}}),
            json!({"name": "t", "boot_sets": {"a": {"type": "s3", "node_list": ["x1"]}}}),
        ];
        expect![[r#"
            skipped: is an array, not an object
            skipped: name: is missing
            skipped: name: is a number, not a text
            skipped: name: '-t' must begin and end with a letter or a digit
            skipped: tenant: is a number, not a text
            skipped: tenant: has more than 127 characters
            skipped: boot_sets: is missing
            skipped: boot_sets: is an array, not an object
            skipped: boot_sets: needs at least one boot set
            skipped: boot_sets.a: is a number, not an object
            skipped: boot_sets.a: needs one of node_list, node_roles_groups, node_groups
            skipped: boot_sets.a.path: is missing or empty
        "#]]
        .assert_eq(&items.map(told).concat());
    }

    #[test]
    fn long_descriptions_are_cut() {
        let boot_sets = json!({"a": {"path": "p", "type": "s3", "node_list": ["x1"]}});
        let item = json!({"name": "t", "description": "d".repeat(1_024), "boot_sets": boot_sets});
        let prepared = prepare(item).expect("a template");
        assert_eq!(prepared.body["description"], "d".repeat(1_023));
        assert_eq!(prepared.mended, ["description: cut to 1023 characters"]);
    }
}
