//! Access to a BMC: by a session, or by a password with every call.
//!
//! A session spares the BMC the check of the password, which takes some BMCs a second. It begins with the first call,
//! is used until the BMC has forgotten it, and ends when the process stops. A BMC has few sessions, but running out of
//! them is no reason to fail: without a session the password is sent with every call.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::LOCATION};
use serde_json::Value;
use upstream::{Failure, FailureKind};

use crate::system;

/// Header that carries the token of a session.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Known way to access a BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum BmcAccess {
    /// No way was tried, or the last one does not work any more.
    #[default]
    Unknown,
    /// The credentials are sent with every call, if there are any.
    EveryCall,
    Session(BmcSession),
}

/// Session at a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BmcSession {
    /// Token, marked as sensitive so that it is not printed.
    pub(crate) token: HeaderValue,
    /// Path for ending the session; `None`: the BMC did not report one.
    pub(crate) path: Option<String>,
}

impl BmcSession {
    /// Reads the answer to the request for a session. `None`: the answer has no token.
    pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let mut token = headers.get(&TOKEN)?.clone();
        token.set_sensitive(true);
        let located = headers.get(LOCATION).and_then(|location| system::path(location.to_str().ok()?));
        let described = || system::link(&serde_json::from_slice(body).ok()?);
        Some(Self { token, path: located.or_else(described) })
    }
}

/// Returns the path for beginning sessions, read from the service root; `None`: the BMC has no sessions.
pub(crate) fn sessions_path(root: &Value) -> Option<String> {
    let linked = system::link(&root["Links"]["Sessions"]);
    linked.or_else(|| {
        Some(format!("{}/Sessions", system::link(&root["SessionService"])?.trim_end_matches('/')))
    })
}

/// Returns whether a BMC that refused a session may still be called with the password. It may if the refusal was not
/// about the password, but about having no sessions, or none left.
pub(crate) fn may_do_without_session(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::Refused | FailureKind::Denied => failure.status != Some(StatusCode::UNAUTHORIZED),
        FailureKind::Unreachable | FailureKind::Ambiguous => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_are_begun_where_the_service_root_says() {
        let rows = [
            (
                json!({"Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions/"}}}),
                Some("/redfish/v1/SessionService/Sessions/"),
            ),
            (
                json!({"SessionService": {"@odata.id": "/redfish/v1/SessionService/"}, "Links": {}}),
                Some("/redfish/v1/SessionService/Sessions"),
            ),
            (json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}}), None),
            (json!({"Links": {"Sessions": "/sessions"}}), None),
        ];
        for (root, expected) in rows {
            assert_eq!(sessions_path(&root).as_deref(), expected, "{root}");
        }
    }

    #[test]
    fn a_session_is_a_token_and_where_to_end_it() {
        let here = "/redfish/v1/SessionService/Sessions/7";
        let there = "https://10.1.0.17/redfish/v1/SessionService/Sessions/7";
        for (token, location, body, expected) in [
            (Some("s3cret"), Some(here), "{}", Some(Some(here))),
            (Some("s3cret"), Some(there), "", Some(Some(here))),
            (Some("s3cret"), None, r#"{"@odata.id": "/sessions/8"}"#, Some(Some("/sessions/8"))),
            (Some("s3cret"), None, "none", Some(None)),
            (None, Some(here), "{}", None),
        ] {
            let value = |value: &'static str| HeaderValue::from_static(value);
            let headers = [(TOKEN, token.map(value)), (LOCATION, location.map(value))];
            let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let session = BmcSession::read(&headers, body.as_bytes());
            assert!(!format!("{session:?}").contains("s3cret"));
            assert_eq!(session.as_ref().map(|session| session.path.as_deref()), expected);
            assert!(session.is_none_or(|session| session.token == "s3cret"));
        }
    }

    #[test]
    fn a_refused_password_is_not_sent_again() {
        use FailureKind::{Ambiguous, Denied, Refused, Unreachable};
        for (kind, status, expected) in [
            (Denied, 401, false),
            (Denied, 403, true),
            (Denied, 405, true),
            (Denied, 501, true),
            (Refused, 400, true),
            (Refused, 404, true),
            (Unreachable, 429, false),
            (Ambiguous, 500, false),
        ] {
            let failure = Failure { kind, status: StatusCode::from_u16(status).ok(), text: String::new() };
            assert_eq!(may_do_without_session(&failure), expected, "{status}");
        }
    }
}
