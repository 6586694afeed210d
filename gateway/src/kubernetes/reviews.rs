//! Questions about the caller and its rights. Where callers are asked for no credentials, everybody may do everything.

use serde_json::{Value, json};

use super::{
    PREFIX,
    kinds::{KINDS, ResourceKind},
    object::ApiObject,
};
use crate::identity::RequestCaller;

/// Methods behind the verbs of Kubernetes.
const METHODS: [(&str, &str); 8] = [
    ("get", "GET"),
    ("list", "GET"),
    ("watch", "GET"),
    ("create", "POST"),
    ("update", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
    ("deletecollection", "DELETE"),
];

/// Verb and name for every one.
const EVERY: &str = "*";

/// Returns the method behind a verb.
#[cfg(test)]
pub(crate) fn method(verb: &str) -> Option<&'static str> {
    METHODS.iter().find(|(word, _)| *word == verb).map(|(_, method)| *method)
}

/// Returns a question with its answer.
pub(crate) fn answered(
    kind: &ResourceKind,
    mut question: ApiObject,
    caller: Option<&RequestCaller>,
) -> ApiObject {
    let status = match kind.kind {
        "SelfSubjectAccessReview" => review(question.get("spec").unwrap_or(&Value::Null), caller),
        "SelfSubjectRulesReview" => rules(caller),
        _ => json!({ "userInfo": user(caller) }),
    };
    question.insert("status".to_owned(), status);
    question
}

fn user(caller: Option<&RequestCaller>) -> Value {
    match caller.and_then(|caller| caller.caller.as_ref()) {
        Some(caller) => json!({ "username": caller.shown(), "groups": caller.roles }),
        None => json!({ "username": "system:anonymous", "groups": ["system:unauthenticated"] }),
    }
}

fn review(spec: &Value, caller: Option<&RequestCaller>) -> Value {
    let Some(caller) = caller else {
        return json!({ "allowed": true, "reason": "the gateway allows everybody everything" });
    };
    let (verb, path) = match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(resource), _) => (text(resource, "verb"), resource_path(resource)),
        (None, Some(other)) => (text(other, "verb"), format!("{PREFIX}{}", text(other, "path"))),
        (None, None) => return json!({ "allowed": false, "reason": "the question is about nothing" }),
    };
    match allowed(caller, verb, &path) {
        Ok(reason) => json!({ "allowed": true, "reason": reason }),
        Err(reason) => json!({ "allowed": false, "reason": reason }),
    }
}

/// Returns the rule that allows a verb; of every verb, if that is asked for.
fn allowed(caller: &RequestCaller, verb: &str, path: &str) -> Result<String, String> {
    let methods = METHODS.iter().filter(|(word, _)| verb == EVERY || *word == verb).map(|(_, method)| method);
    let mut outcome = Err(format!("there is no verb '{verb}'"));
    for method in methods {
        outcome = Ok(caller.may(method, path)?);
    }
    outcome
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the path of the objects that a question is about.
fn resource_path(resource: &Value) -> String {
    let (group, plural) = (text(resource, "group"), text(resource, "resource"));
    let known = KINDS.iter().find(|kind| kind.group == group && kind.plural == plural);
    let version = known.map_or_else(|| text(resource, "version"), |kind| kind.version);
    let root = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    let namespace = text(resource, "namespace");
    let namespace = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let rest = [text(resource, "name"), text(resource, "subresource")];
    let rest: String = rest.iter().filter(|one| !one.is_empty()).map(|one| format!("/{one}")).collect();
    format!("{PREFIX}/{root}{namespace}/{plural}{rest}")
}

fn rules(caller: Option<&RequestCaller>) -> Value {
    let rules = KINDS.iter().map(|kind| {
        let question = json!({ "group": kind.group, "resource": kind.plural });
        let path = resource_path(&question);
        let verbs =
            kind.verbs.iter().filter(|verb| caller.is_none_or(|caller| allowed(caller, verb, &path).is_ok()));
        json!({ "verbs": verbs.collect::<Vec<_>>(), "apiGroups": [kind.group], "resources": [kind.plural] })
    });
    json!({
        "resourceRules": rules.collect::<Value>(),
        "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["*"] }],
        "incomplete": caller.is_some(),
    })
}
