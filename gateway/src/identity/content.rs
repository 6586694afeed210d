//! The body of a report: an actual state and nothing else.

use access_policy::RefusalReason;
use serde_json::{Map, Value};

use super::refusal::AccessProblem;
use crate::http::problem::RequestProblem;

/// Members that a report may have. The path names the node, whatever the id says.
const MEMBERS: [&str; 2] = ["actual_state", "id"];

/// Checks that a body has nothing but an actual state.
///
/// # Errors
/// A bad request if the body is no object, and the refusal if it has anything else.
pub(super) fn only_actual_state(body: &[u8]) -> Result<(), RequestProblem> {
    let Ok(members) = serde_json::from_slice::<Map<String, Value>>(body) else {
        return Err(RequestProblem::bad_request("the request body is not a JSON object that can be read"));
    };
    match members.keys().find(|member| !MEMBERS.contains(&member.as_str())) {
        None => Ok(()),
        Some(other) => {
            let other: String = other.chars().take(64).collect();
            let reason = RefusalReason::MoreThanActualState;
            Err(AccessProblem::forbidden(format!("{reason}: the body has '{other}'")).problem())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn reports_have_an_actual_state_and_nothing_else() {
        for (body, refused) in [
            (r#"{"actual_state": {"bss_token": "t"}}"#, None),
            (r#"{"id": "x1", "actual_state": {"bss_token": "t"}}"#, None),
            (r#"{"actual_state": {}, "enabled": true}"#, Some(StatusCode::FORBIDDEN)),
            (r#"{"actual_state": {}, "\u0065nabled": true}"#, Some(StatusCode::FORBIDDEN)),
            (r#"{"desired_state": {}}"#, Some(StatusCode::FORBIDDEN)),
            ("[]", Some(StatusCode::BAD_REQUEST)),
            ("", Some(StatusCode::BAD_REQUEST)),
        ] {
            let status = only_actual_state(body.as_bytes()).err().map(|problem| problem.status);
            assert_eq!(status, refused, "{body}");
        }
    }
}
