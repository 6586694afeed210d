//! Schemas of the kinds, as each version of OpenAPI writes them.

use serde_json::{Map, Value, json};

use super::{
    super::kinds::{KINDS, ResourceKind},
    OpenApiVersion,
};

/// Name of the schema of metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Name of the schema of the metadata of lists.
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// Name of the schema of patches.
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
/// Name of the schema of the options of a deletion.
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
/// Name of the schema of refusals.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Members that OpenAPI 2 does not know.
const NOT_IN_2: &[&str] = &["nullable", "anyOf", "oneOf"];

/// Returns the name of the schema of a kind.
pub(super) fn name(kind: &ResourceKind) -> String {
    match kind.group {
        "" => format!("io.k8s.api.core.{}.{}", kind.version, kind.kind),
        "metal3.io" => format!("io.metal3.{}.{}", kind.version, kind.kind),
        group => {
            let group = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{group}.{}.{}", kind.version, kind.kind)
        }
    }
}

/// Returns group, version and kind as an extension names them.
pub(super) fn group_version_kind(kind: &ResourceKind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

/// Returns the schemas of the kinds of the wanted groups, and those that they refer to.
pub(super) fn schemas(version: OpenApiVersion, is_wanted: impl Fn(&str, &str) -> bool) -> Map<String, Value> {
    let mut schemas = common(version);
    for kind in KINDS.iter().filter(|kind| is_wanted(kind.group, kind.version)) {
        schemas.insert(name(kind), of_kind(kind, version));
        if kind.allows("list") {
            schemas.insert(format!("{}List", name(kind)), list_of(kind, version));
        }
    }
    schemas
}

fn of_kind(kind: &ResourceKind, version: OpenApiVersion) -> Value {
    let mut schema = written(kind.schema_document(), version);
    schema["properties"]["metadata"] = metadata(OBJECT_META, version);
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
    schema
}

/// Returns a reference to the schema of metadata. Version 3 allows no description beside a bare one.
fn metadata(name: &str, version: OpenApiVersion) -> Value {
    let description = "Facts about the object";
    match version {
        OpenApiVersion::Two => {
            let mut reference = version.reference(name);
            reference["description"] = description.into();
            reference
        }
        OpenApiVersion::Three => {
            json!({ "description": description, "allOf": [version.reference(name)], "default": {} })
        }
    }
}

fn list_of(kind: &ResourceKind, version: OpenApiVersion) -> Value {
    let list = json!({ "group": kind.group, "version": kind.version, "kind": format!("{}List", kind.kind) });
    json!({
        "description": format!("List of objects of the kind {}", kind.kind), "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string", "description": "Group and version of the kind" },
            "kind": { "type": "string", "description": "Kind of the list" },
            "metadata": metadata(LIST_META, version),
            "items": { "type": "array", "description": "Objects", "items": version.reference(&name(kind)) },
        },
        "x-kubernetes-group-version-kind": [list],
    })
}

fn common(version: OpenApiVersion) -> Map<String, Value> {
    let object_meta = KINDS[0].schema_document()["properties"]["metadata"].clone();
    let text = json!({ "type": "string" });
    let pairs = [
        (OBJECT_META, written(&object_meta, version)),
        (
            LIST_META,
            json!({
                "description": "Facts about a list", "type": "object",
                "properties": {
                    "continue": text, "remainingItemCount": { "type": "integer", "format": "int64" },
                    "resourceVersion": text, "selfLink": text,
                },
            }),
        ),
        (PATCH, json!({ "description": "Patch of an object", "type": "object" })),
        (
            DELETE_OPTIONS,
            json!({
                "description": "Options of a deletion", "type": "object",
                "properties": {
                    "apiVersion": text, "kind": text, "dryRun": { "type": "array", "items": text },
                    "gracePeriodSeconds": { "type": "integer", "format": "int64" }, "propagationPolicy": text,
                    "preconditions": { "type": "object", "properties": { "uid": text, "resourceVersion": text } },
                },
            }),
        ),
        (
            STATUS,
            json!({
                "description": "Refusal, or the end of a deletion", "type": "object",
                "properties": {
                    "apiVersion": text, "kind": text, "code": { "type": "integer", "format": "int32" },
                    "message": text, "reason": text, "status": text, "details": { "type": "object" },
                    "metadata": version.reference(LIST_META),
                },
            }),
        ),
    ];
    pairs.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Returns a schema as the version writes it.
fn written(schema: &Value, version: OpenApiVersion) -> Value {
    match schema {
        Value::Object(members) => {
            let is_left_out = |name: &str| version == OpenApiVersion::Two && NOT_IN_2.contains(&name);
            let members = members.iter().filter(|(name, _)| !is_left_out(name));
            Value::Object(members.map(|(name, value)| (name.clone(), written(value, version))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| written(item, version)).collect()),
        other => other.clone(),
    }
}
