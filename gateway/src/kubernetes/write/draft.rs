//! The object that a write is to store: which members belong to the server, which are unknown, and which are wrong.

use std::collections::BTreeSet;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::{
    super::{
        failure::{ApiFailure, FailureCause},
        kinds::{ObjectSource, ResourceKind},
        object::{self, ApiObject},
        records,
        schema::{check, drop_nulls, drop_unknown, fill_defaults},
    },
    options::{FieldValidation, WriteOptions},
};

/// Metadata that only the server sets.
const OF_SERVER: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Returns the present time as metadata have it.
pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the body as an object of the kind.
///
/// # Errors
/// When it is none.
pub(super) fn object_of(kind: &ResourceKind, value: Value) -> Result<ApiObject, ApiFailure> {
    let Value::Object(mut object) = value else {
        return Err(ApiFailure::bad_request("the body of the request is no object"));
    };
    for (member, expected) in [("kind", kind.kind.to_owned()), ("apiVersion", kind.api_version())] {
        match object.get(member).and_then(Value::as_str).filter(|given| !given.is_empty()) {
            Some(given) if given == expected => {}
            Some(given) => {
                let message = format!(
                    "the {member} in the data ({given}) does not match the expected one ({expected})"
                );
                return Err(ApiFailure::bad_request(message));
            }
            None if kind.is_core() || kind.source == ObjectSource::Question => {
                object.insert(member.to_owned(), expected.into());
            }
            None => {
                let message = format!("Object '{}' is missing in the data", capital(member));
                return Err(ApiFailure::bad_request(message));
            }
        }
    }
    if object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(ApiFailure::bad_request("the metadata of the object are no object"));
    }
    object::metadata_mut(&mut object);
    Ok(object)
}

fn capital(member: &str) -> &str {
    match member {
        "kind" => "Kind",
        other => other,
    }
}

/// Makes the namespace of an object that of the path.
///
/// # Errors
/// When the two differ.
pub(super) fn place(object: &mut ApiObject, namespace: Option<&str>) -> Result<(), ApiFailure> {
    let given = object::namespace(object).to_owned();
    match namespace {
        Some(namespace) if given.is_empty() || given == namespace => {
            object::metadata_mut(object).insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
        None if given.is_empty() => Ok(()),
        _ => Err(ApiFailure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Removes or restores metadata that only the server sets.
pub(super) fn keep_server_metadata(object: &mut ApiObject, before: Option<&ApiObject>) {
    let none = Map::new();
    let known = before.and_then(object::metadata).unwrap_or(&none);
    let metadata = object::metadata_mut(object);
    for member in OF_SERVER {
        match known.get(*member) {
            Some(value) => drop(metadata.insert((*member).to_owned(), value.clone())),
            None => drop(metadata.remove(*member)),
        }
    }
    // An absent list, an empty one and null are the same.
    metadata.retain(|_, value| match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        value => !value.is_null(),
    });
}

/// Fills the defaults of an object.
pub(super) fn complete(kind: &ResourceKind, object: &mut ApiObject) {
    change(object, |value| fill_defaults(value, kind.schema()));
}

fn change<T>(object: &mut ApiObject, change: impl FnOnce(&mut Value) -> T) -> T {
    let mut value = Value::Object(std::mem::take(object));
    let outcome = change(&mut value);
    if let Value::Object(changed) = value {
        *object = changed;
    }
    outcome
}

/// Cleans an object: unknown members and nulls go. Returns the remarks for the client.
///
/// # Errors
/// When the client wants unknown and repeated members to be refused.
pub(super) fn clean(
    object: &mut ApiObject,
    repeated: &[String],
    options: &WriteOptions,
) -> Result<Vec<String>, ApiFailure> {
    let schema = options.kind.schema();
    if options.kind.source == ObjectSource::Secrets {
        records::normalize(object);
    }
    let unknown = change(object, |value| {
        drop_nulls(value, schema);
        drop_unknown(value, schema, "")
    });
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    let repeated = repeated.iter().map(|path| format!("duplicate field \"{path}\""));
    let remarks: Vec<_> = unknown.chain(repeated).collect();
    match options.validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(remarks),
        FieldValidation::Strict if remarks.is_empty() => Ok(remarks),
        FieldValidation::Strict => {
            let message = format!(
                "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                options.kind.kind,
                options.kind.version,
                options.kind.kind,
                remarks.join(", "),
            );
            Err(ApiFailure::bad_request(message))
        }
    }
}

/// Checks an object by its schema, and its metadata.
///
/// # Errors
/// All defects.
pub(super) fn judge(kind: &ResourceKind, object: &ApiObject) -> Result<(), ApiFailure> {
    let mut causes = check(&Value::Object(object.clone()), kind.schema(), "");
    let name = object::name(object);
    if let Some(why) = name_defect(name) {
        causes.push(FailureCause::invalid("metadata.name", format!("Invalid value: \"{name}\": {why}")));
    }
    match causes.is_empty() {
        true => Ok(()),
        false => Err(ApiFailure::invalid(kind, name, causes)),
    }
}

fn name_defect(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST_NAME {
        return Some("must be no more than 253 characters");
    }
    let is_end = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_end)
            && part.ends_with(is_end)
            && part.chars().all(|letter| is_end(letter) || letter == '-')
    };
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
               start and end with an alphanumeric character";
    (!name.split('.').all(is_part)).then_some(why)
}

/// Checks that an object under deletion gets no further finalizer.
///
/// # Errors
/// When it does.
pub(super) fn judge_finalizers(
    kind: &ResourceKind,
    before: &ApiObject,
    object: &ApiObject,
) -> Result<(), ApiFailure> {
    if !object::is_being_deleted(before) {
        return Ok(());
    }
    let known = finalizers(before);
    let added: Vec<_> = finalizers(object).difference(&known).cloned().collect();
    if added.is_empty() {
        return Ok(());
    }
    let message =
        format!("Forbidden: no new finalizers can be added if the object is being deleted, found {added:?}");
    let cause = FailureCause::new("FieldValueForbidden", "metadata.finalizers", message);
    Err(ApiFailure::invalid(kind, object::name(object), vec![cause]))
}

fn finalizers(object: &ApiObject) -> BTreeSet<String> {
    let listed =
        object::metadata(object).and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether two objects are the same but for their versions and the rows of writers.
pub(super) fn is_same(before: &ApiObject, after: &ApiObject) -> bool {
    comparable(before) == comparable(after)
}

fn comparable(object: &ApiObject) -> ApiObject {
    let mut object = object.clone();
    let metadata = object::metadata_mut(&mut object);
    metadata.remove("managedFields");
    metadata.remove("resourceVersion");
    metadata.remove("generation");
    object
}
