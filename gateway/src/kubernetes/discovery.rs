//! Lists of groups, versions and kinds.

use serde_json::{Map, Value, json};

use super::{
    kinds::{self, ResourceKind},
    request::negotiation::DiscoveryForm,
};

/// Version of Kubernetes whose interface is served: vendors' kubectl choose a client by it.
const MINOR: &str = "33";

/// Returns the version of the server.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+reveille-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "unknown", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Returns the versions of the core, or everything in it.
pub(crate) fn core(form: DiscoveryForm) -> Value {
    match form {
        DiscoveryForm::Groups => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "" }],
        }),
        DiscoveryForm::Aggregated(version) => aggregated(version, |group| group.is_empty()),
    }
}

/// Returns the groups, or everything in them.
pub(crate) fn groups(form: DiscoveryForm) -> Value {
    match form {
        DiscoveryForm::Groups => {
            let groups = kinds::group_versions().into_iter().filter(|(group, _)| !group.is_empty());
            let groups: Value = groups.map(|(name, version)| group_of(name, version)).collect();
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
        }
        DiscoveryForm::Aggregated(version) => aggregated(version, |group| !group.is_empty()),
    }
}

/// Returns one group; none if there is no such group.
pub(crate) fn group(name: &str) -> Option<Value> {
    let (group, version) =
        kinds::group_versions().into_iter().find(|(group, _)| *group == name && !group.is_empty())?;
    let mut shown = group_of(group, version);
    shown["kind"] = "APIGroup".into();
    shown["apiVersion"] = "v1".into();
    Some(shown)
}

fn group_of(name: &str, version: &str) -> Value {
    let version = json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    json!({ "name": name, "versions": [version], "preferredVersion": version })
}

/// Returns the kinds of a group; none if there is no such group.
pub(crate) fn resources(group: &str, version: &str) -> Option<Value> {
    let listed: Vec<Value> = kinds::of_group(group, version).flat_map(resource).collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!listed.is_empty()).then(|| {
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed })
    })
}

fn resource(kind: &'static ResourceKind) -> Vec<Value> {
    let mut shown = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.is_namespaced, "kind": kind.kind,
        "verbs": kind.verbs,
    });
    add_words(&mut shown, kind);
    let status = kind.has_status.then(|| {
        json!({
            "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.is_namespaced,
            "kind": kind.kind, "verbs": STATUS_VERBS,
        })
    });
    std::iter::once(shown).chain(status).collect()
}

const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

fn add_words(shown: &mut Value, kind: &ResourceKind) {
    for (member, words) in [("shortNames", kind.short_names), ("categories", kind.categories)] {
        if !words.is_empty() {
            shown[member] = json!(words);
        }
    }
}

fn aggregated(form: &str, is_wanted: fn(&str) -> bool) -> Value {
    let groups = kinds::group_versions().into_iter().filter(|(group, _)| is_wanted(group));
    let items = groups.map(|(group, version)| {
        let mut metadata = Map::new();
        if !group.is_empty() {
            metadata.insert("name".to_owned(), group.into());
        }
        let resources: Value = kinds::of_group(group, version).map(aggregated_resource).collect();
        json!({
            "metadata": metadata,
            "versions": [{ "version": version, "resources": resources, "freshness": "Current" }],
        })
    });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{form}"), "metadata": {},
        "items": items.collect::<Value>(),
    })
}

fn aggregated_resource(kind: &'static ResourceKind) -> Value {
    let response = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
    let mut shown = json!({
        "resource": kind.plural, "responseKind": response, "singularResource": kind.singular, "verbs": kind.verbs,
        "scope": if kind.is_namespaced { "Namespaced" } else { "Cluster" },
    });
    add_words(&mut shown, kind);
    if kind.has_status {
        shown["subresources"] =
            json!([{ "subresource": "status", "responseKind": response, "verbs": STATUS_VERBS }]);
    }
    shown
}

/// Returns the media type of an answer in that form.
pub(crate) fn media_type(form: DiscoveryForm) -> &'static str {
    match form {
        DiscoveryForm::Aggregated("v2") => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
        DiscoveryForm::Aggregated(_) => {
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
        }
        DiscoveryForm::Groups => "application/json",
    }
}
