//! Questions about the caller and its rights. The gateway authenticates nobody, so everybody may do everything.

use serde_json::{Value, json};

use super::{
    kinds::{KINDS, ResourceKind},
    object::ApiObject,
};

/// Returns a question with its answer.
pub(crate) fn answered(kind: &ResourceKind, mut question: ApiObject) -> ApiObject {
    let status = match kind.kind {
        "SelfSubjectAccessReview" => {
            json!({ "allowed": true, "reason": "the gateway allows everybody everything" })
        }
        "SelfSubjectRulesReview" => rules(),
        _ => json!({ "userInfo": { "username": "system:anonymous", "groups": ["system:unauthenticated"] } }),
    };
    question.insert("status".to_owned(), status);
    question
}

fn rules() -> Value {
    let rules = KINDS
        .iter()
        .map(|kind| json!({ "verbs": kind.verbs, "apiGroups": [kind.group], "resources": [kind.plural] }));
    json!({
        "resourceRules": rules.collect::<Value>(),
        "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    })
}
