//! Custom resource definitions of the kinds of hosts, for the chart: a cluster that has them explains the kinds, and other
//! tools find them there.

use std::path::Path;

use expect_test::expect_file;
use serde_json::{Map, Value, json};

use super::super::kinds::{self, CellSource, METAL3, PrintedColumn, ResourceKind};

/// Folder of the definitions in the chart.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/reveille/definitions");

/// The files of the chart are those that follow from the table of kinds. `UPDATE_EXPECT=1` with this test writes them.
#[test]
fn definitions_of_the_chart_are_current() {
    for kind in kinds::of_group(METAL3, "v1alpha1") {
        let text = serde_json::to_string_pretty(&definition(kind)).unwrap();
        let path = Path::new(FOLDER).join(format!("{}.json", kind.plural));
        expect_file![path].assert_eq(&format!("{text}\n"));
    }
}

/// A cluster refuses a definition with a schema that is not structural.
#[test]
fn schemas_of_definitions_are_structural() {
    let defects = kinds::of_group(METAL3, "v1alpha1").flat_map(|kind| {
        let mut defects = Vec::new();
        find_defects(&schema(kind), kind.kind, &mut defects);
        defects
    });
    assert_eq!(defects.collect::<Vec<_>>(), Vec::<String>::new());
}

fn definition(kind: &ResourceKind) -> Value {
    let columns: Value = kind.columns.iter().map(|column| printed(kind, column)).collect();
    let mut version = json!({
        "name": kind.version, "served": true, "storage": true, "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": schema(kind) },
    });
    if kind.has_status {
        version["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // Without a definition the cluster would delete all of its objects.
        "metadata": { "name": kind.qualified(), "annotations": { "helm.sh/resource-policy": "keep" } },
        "spec": {
            "group": kind.group, "scope": "Namespaced", "versions": [version],
            "names": {
                "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
                "singular": kind.singular, "shortNames": kind.short_names, "categories": kind.categories,
            },
        },
    })
}

/// Returns the schema as definitions have it: the cluster itself knows metadata.
fn schema(kind: &ResourceKind) -> Value {
    let mut schema = kind.schema_document().clone();
    schema["properties"]["metadata"] = json!({ "type": "object" });
    schema
}

fn printed(kind: &ResourceKind, column: &PrintedColumn) -> Value {
    let condition = |of_type: &str, member: &str| {
        (format!(".status.conditions[?(@.type==\"{of_type}\")].{member}"), "string".to_owned())
    };
    let (path, of_type) = match column.cell {
        CellSource::At(path) => (format!(".{}", path.join(".")), type_at(kind, path)),
        CellSource::Since(path) => (format!(".{}", path.join(".")), "date".to_owned()),
        CellSource::Condition(of_type) => condition(of_type, "status"),
        CellSource::ConditionReason(of_type) => condition(of_type, "reason"),
        CellSource::Count(_) | CellSource::Involved => {
            panic!("{}: a definition cannot say that", column.name)
        }
    };
    json!({
        "name": column.name, "description": column.description, "priority": column.priority, "jsonPath": path,
        "type": of_type,
    })
}

fn type_at(kind: &ResourceKind, path: &[&str]) -> String {
    let schema = path.iter().fold(kind.schema_document(), |schema, name| &schema["properties"][name]);
    schema["type"].as_str().expect("every printed member has a type").to_owned()
}

fn find_defects(schema: &Value, path: &str, defects: &mut Vec<String>) {
    let has = |member: &str| schema.get(member).is_some();
    if !has("type") && !has("x-kubernetes-int-or-string") && !has("x-kubernetes-preserve-unknown-fields") {
        defects.push(format!("{path}: has no type"));
    }
    if has("properties") && has("additionalProperties") {
        defects.push(format!("{path}: has both known and other members"));
    }
    if schema["type"] == "array" && !has("items") {
        defects.push(format!("{path}: has no items"));
    }
    let required: Vec<_> = schema["items"]["required"].as_array().into_iter().flatten().collect();
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    defects
        .extend(keys.filter(|key| !required.contains(key)).map(|key| format!("{path}: {key} may be absent")));
    let members = schema["properties"].as_object().into_iter().flat_map(Map::iter);
    for (name, below) in members {
        find_defects(below, &format!("{path}.{name}"), defects);
    }
    for member in ["items", "additionalProperties"].into_iter().filter(|member| has(member)) {
        find_defects(&schema[member], &format!("{path}[]"), defects);
    }
}
