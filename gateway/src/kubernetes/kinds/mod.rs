//! The kinds of the API. Discovery, printed columns, validation and OpenAPI follow from one table and one file of
//! schemas.

use std::{collections::BTreeMap, sync::LazyLock};

use proto::host::DocumentKind;
use serde_json::Value;

use super::schema::SchemaNode;

mod columns;
mod table;

pub(crate) use columns::{CellSource, PrintedColumn};
pub(crate) use table::KINDS;

/// Group of bare-metal hosts.
pub(crate) const METAL3: &str = "metal3.io";

/// Version of the kinds of hosts.
pub(crate) const HOST_VERSION: &str = "v1alpha1";
/// Group of questions about rights.
const AUTHORIZATION: &str = "authorization.k8s.io";
/// Group of questions about the caller.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Kind of objects.
#[derive(Debug)]
pub(crate) struct ResourceKind {
    /// Group; empty for the core.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub is_namespaced: bool,
    pub verbs: &'static [&'static str],
    /// Whether the status is written through a subresource of its own.
    pub has_status: bool,
    /// Columns after the name.
    pub columns: &'static [PrintedColumn],
    /// Members that a field selector may name, beside the name and the namespace.
    pub selectable: &'static [&'static str],
    pub source: ObjectSource,
}

/// Place that keeps the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectSource {
    Hosts,
    Documents(DocumentKind),
    Secrets,
    /// Durable events of hosts.
    Events,
    /// No store: there are no such objects, but clients ask.
    Nowhere,
    /// A question that is answered at once.
    Question,
}

impl PartialEq for ResourceKind {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl ResourceKind {
    /// Returns group and version, such as `metal3.io/v1alpha1`.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the plural with the group, such as `baremetalhosts.metal3.io`.
    pub(crate) fn qualified(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// Returns the kind with the group, such as `BareMetalHost.metal3.io`.
    pub(crate) fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    /// Returns whether the kind belongs to the core, where clients send other forms.
    pub(crate) fn is_core(&self) -> bool {
        self.group.is_empty()
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Returns the schema of a whole object.
    pub(crate) fn schema(&self) -> &'static SchemaNode {
        SCHEMAS.get(self.kind).map_or(&NO_SCHEMA, |(_, node)| node)
    }

    /// Returns the schema as JSON, with every reference resolved.
    pub(crate) fn schema_document(&self) -> &'static Value {
        SCHEMAS.get(self.kind).map_or(&Value::Null, |(document, _)| document)
    }
}

fn qualified(word: &str, group: &str) -> String {
    match group {
        "" => word.to_owned(),
        group => format!("{word}.{group}"),
    }
}

/// Returns the kind of that plural.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static ResourceKind> {
    KINDS.iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
}

/// Returns the groups with their versions, the core first.
pub(crate) fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for kind in KINDS {
        if !found.contains(&(kind.group, kind.version)) {
            found.push((kind.group, kind.version));
        }
    }
    found
}

/// Returns the kinds of a group.
pub(crate) fn of_group<'a>(
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'static ResourceKind> + 'a {
    KINDS.iter().filter(move |kind| kind.group == group && kind.version == version)
}

/// Schemas by kind, as JSON and parsed.
static SCHEMAS: LazyLock<BTreeMap<String, (Value, SchemaNode)>> = LazyLock::new(|| {
    let file: Value = serde_json::from_str(include_str!("schemas.json")).expect("the schemas are JSON");
    let kinds = file["kinds"].as_object().expect("the file has kinds");
    let whole = kinds.iter().map(|(kind, schema)| {
        let document = whole(resolved(schema, &file["shared"]), &file["shared"]);
        let node = serde_json::from_value(document.clone()).expect("every schema has a known form");
        (kind.clone(), (document, node))
    });
    whole.collect()
});

static NO_SCHEMA: LazyLock<SchemaNode> = LazyLock::new(SchemaNode::default);

/// Returns a schema with the members that every object has.
fn whole(mut schema: Value, shared: &Value) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        let text = |text: &str| serde_json::json!({ "description": text, "type": "string" });
        properties.insert("apiVersion".to_owned(), text("Group and version of the kind"));
        properties.insert("kind".to_owned(), text("Kind of the object"));
        properties.insert("metadata".to_owned(), resolved(&shared["ObjectMeta"], shared));
    }
    schema
}

/// Returns a schema with shared ones in place of references; a description beside a reference replaces its own.
fn resolved(schema: &Value, shared: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                let mut referenced = resolved(&shared[name], shared);
                if let Some(description) = members.get("description") {
                    referenced["description"] = description.clone();
                }
                return referenced;
            }
            Value::Object(
                members.iter().map(|(name, value)| (name.clone(), resolved(value, shared))).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| resolved(item, shared)).collect()),
        other => other.clone(),
    }
}
