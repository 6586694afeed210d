//! Paths and operations.

use serde_json::{Map, Value, json};

use super::{
    super::kinds::{KINDS, ResourceKind},
    OpenApiVersion,
    schemas::{DELETE_OPTIONS, PATCH, STATUS, group_version_kind, name},
};

/// Media types of patches.
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// Parameters of writes.
const OF_WRITES: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
/// Parameters of lists.
const OF_LISTS: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// Operation of a kind.
struct ApiVerb {
    method: &'static str,
    verb: &'static str,
    /// Word of Kubernetes for it.
    action: &'static str,
    parameters: &'static [&'static str],
}

const COLLECTION: &[ApiVerb] = &[
    ApiVerb { method: "get", verb: "list", action: "list", parameters: &OF_LISTS },
    ApiVerb { method: "post", verb: "create", action: "post", parameters: &OF_WRITES },
    ApiVerb { method: "delete", verb: "deletecollection", action: "deletecollection", parameters: &OF_LISTS },
];
const SINGLE: &[ApiVerb] = &[
    ApiVerb { method: "get", verb: "get", action: "get", parameters: &[] },
    ApiVerb { method: "put", verb: "update", action: "put", parameters: &OF_WRITES },
    ApiVerb {
        method: "patch",
        verb: "patch",
        action: "patch",
        parameters: &["dryRun", "fieldManager", "fieldValidation", "force"],
    },
    ApiVerb {
        method: "delete",
        verb: "delete",
        action: "delete",
        parameters: &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
    },
];

/// Returns the paths of the kinds of the wanted groups.
pub(super) fn paths(version: OpenApiVersion, is_wanted: impl Fn(&str, &str) -> bool) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in KINDS.iter().filter(|kind| is_wanted(kind.group, kind.version)) {
        let root = match kind.group {
            "" => format!("/api/{}", kind.version),
            group => format!("/apis/{group}/{}", kind.version),
        };
        let place =
            if kind.is_namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
        let collection = format!("{place}/{}", kind.plural);
        let mut add = |path: String, verbs: &[ApiVerb]| {
            let item = path_item(kind, &path, verbs, version);
            paths.insert(path, item);
        };
        if kind.is_namespaced {
            add(format!("{root}/{}", kind.plural), &COLLECTION[..1]);
        }
        add(collection.clone(), COLLECTION);
        if kind.allows("get") {
            add(format!("{collection}/{{name}}"), SINGLE);
        }
        if kind.has_status {
            add(format!("{collection}/{{name}}/status"), &SINGLE[..3]);
        }
    }
    paths
}

fn path_item(kind: &ResourceKind, path: &str, verbs: &[ApiVerb], version: OpenApiVersion) -> Value {
    let allowed = verbs.iter().filter(|verb| kind.allows(verb.verb));
    let mut item: Map<_, _> =
        allowed.map(|verb| (verb.method.to_owned(), operation(kind, path, verb, version))).collect();
    let names = ["namespace", "name"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let parameters: Vec<_> = names.map(|name| parameter(name, "path", version)).collect();
    if !parameters.is_empty() {
        item.insert("parameters".to_owned(), parameters.into());
    }
    Value::Object(item)
}

fn operation(kind: &ResourceKind, path: &str, verb: &ApiVerb, version: OpenApiVersion) -> Value {
    let words: String = path.split(['/', '{', '}', '.', '-']).map(capitalized).collect();
    let mut parameters: Vec<_> =
        verb.parameters.iter().map(|name| parameter(name, "query", version)).collect();
    let mut operation = json!({
        "operationId": format!("{}{words}", verb.verb),
        "description": format!("{} {}", verb.action, kind.plural),
        "x-kubernetes-action": verb.action,
        "x-kubernetes-group-version-kind": group_version_kind(kind),
        "responses": { "200": response(kind, verb, version) },
    });
    if let Some(body) = body(kind, verb) {
        match version {
            OpenApiVersion::Two => {
                let schema = version.reference(&body);
                parameters.push(json!({ "name": "body", "in": "body", "required": verb.action != "delete", "schema": schema }));
                operation["consumes"] = json!(consumed(verb));
            }
            OpenApiVersion::Three => {
                let content = consumed(verb)
                    .into_iter()
                    .map(|form| (form.to_owned(), json!({ "schema": version.reference(&body) })));
                operation["requestBody"] = json!({ "content": content.collect::<Map<_, _>>() });
            }
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn body(kind: &ResourceKind, verb: &ApiVerb) -> Option<String> {
    match verb.action {
        "post" | "put" => Some(name(kind)),
        "patch" => Some(PATCH.to_owned()),
        "delete" | "deletecollection" => Some(DELETE_OPTIONS.to_owned()),
        _ => None,
    }
}

fn consumed(verb: &ApiVerb) -> Vec<&'static str> {
    match verb.action {
        "patch" => PATCHES.to_vec(),
        _ => vec!["application/json", "application/yaml"],
    }
}

fn response(kind: &ResourceKind, verb: &ApiVerb, version: OpenApiVersion) -> Value {
    let of = match verb.action {
        "list" => format!("{}List", name(kind)),
        "delete" | "deletecollection" => STATUS.to_owned(),
        _ => name(kind),
    };
    let schema = version.reference(&of);
    match version {
        OpenApiVersion::Two => json!({ "description": "OK", "schema": schema }),
        OpenApiVersion::Three => {
            json!({ "description": "OK", "content": { "application/json": { "schema": schema } } })
        }
    }
}

fn parameter(name: &str, place: &str, version: OpenApiVersion) -> Value {
    let form = match name {
        "allowWatchBookmarks" | "force" | "sendInitialEvents" | "watch" => "boolean",
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    };
    let mut parameter = json!({ "name": name, "in": place, "description": description(name) });
    if place == "path" {
        parameter["required"] = true.into();
    }
    match version {
        OpenApiVersion::Two => parameter["type"] = form.into(),
        OpenApiVersion::Three => parameter["schema"] = json!({ "type": form }),
    }
    parameter
}

fn description(name: &str) -> &'static str {
    match name {
        "name" => "Name of the object",
        "namespace" => "Namespace of the object",
        "dryRun" => "All: everything is checked and nothing stored",
        "fieldManager" => "Name of the writer",
        "fieldValidation" => "Ignore, Warn or Strict: reaction to unknown and repeated members",
        "force" => "Whether an apply takes fields of other writers",
        "gracePeriodSeconds" | "propagationPolicy" => "Ignored",
        "allowWatchBookmarks" => "Whether a watch tells its progress",
        "continue" => "Token of the next page",
        "fieldSelector" => "Selection by members",
        "labelSelector" => "Selection by labels",
        "limit" => "Most objects of a page",
        "resourceVersion" => "Version of a list, or version after which changes are watched",
        "resourceVersionMatch" => "NotOlderThan or Exact",
        "sendInitialEvents" => "Whether a watch begins with the present objects",
        "timeoutSeconds" => "Length of a watch",
        "watch" => "Whether changes are watched",
        _ => "",
    }
}
