//! The prefix of the face, and the class and tag that follow from a path alone.

use chassis::mesh::call_class::CallClass;
use http::Method;

/// Path under which BOS is found from outside (BOS reference 2.1). Every path of the contract is served at the root
/// too.
pub(crate) const PREFIX: &str = "/apis/bos";

/// Tag of paths that no BOS has.
const AROUND: &str = "around the contract";

/// Returns the admission class of a request; `None`: it is always admitted. So are paths of the contract that cost next
/// to nothing, and all others, which are probes of the gateway or answer firmware.
pub(crate) fn class_of(method: &Method, path: &str) -> Option<CallClass> {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    let mut parts = path.trim_start_matches('/').split('/');
    if parts.next() != Some("v2") {
        return None;
    }
    let reads = *method == Method::GET || *method == Method::HEAD;
    let rest: Vec<_> = parts.collect();
    match rest[..] {
        [] | ["version" | "healthz"] => None,
        ["components" | "sessions" | "sessiontemplates"] | ["sessions", _, "left_out"] if reads => {
            Some(CallClass::List)
        }
        ["components", _] if *method == Method::PATCH => Some(CallClass::Report),
        _ if *method == Method::OPTIONS => None,
        _ => Some(CallClass::Operator),
    }
}

/// Returns the tag of a path in the document.
pub(crate) fn tag(path: &'static str) -> &'static str {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some("v2"), Some("version" | "healthz") | None) | (None, _) => "service",
        (Some("v2"), Some(noun)) if noun.starts_with("sessiontemplate") => "session templates",
        (Some("v2"), Some("applystaged")) => "components",
        (Some("v2"), Some(noun)) => noun,
        _ => AROUND,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn requests_are_told_apart_by_what_they_are_about() {
        let mut rows = String::new();
        for (method, path) in [
            (Method::GET, "/v2/components"),
            (Method::GET, "/apis/bos/v2/components"),
            (Method::HEAD, "/v2/sessions"),
            (Method::GET, "/v2/sessiontemplates"),
            (Method::GET, "/v2/sessions/s/left_out"),
            (Method::PATCH, "/v2/components"),
            (Method::PATCH, "/v2/components/x1"),
            (Method::PATCH, "/apis/bos/v2/components/x1"),
            (Method::PUT, "/v2/components/x1"),
            (Method::GET, "/v2/components/x1"),
            (Method::POST, "/v2/sessions"),
            (Method::GET, "/v2/options"),
            (Method::OPTIONS, "/v2/options"),
            (Method::GET, "/v2/healthz"),
            (Method::GET, "/apis/bos/v2/version"),
            (Method::GET, "/v2"),
            (Method::GET, "/"),
            (Method::GET, "/readyz"),
            (Method::GET, "/metrics"),
            (Method::GET, "/boot/v1/bootscript"),
        ] {
            let class = class_of(&method, path).map_or("always let in", CallClass::word);
            writeln!(rows, "{method} {path}: {class}").unwrap();
        }
        expect![[r#"
            GET /v2/components: list
            GET /apis/bos/v2/components: list
            HEAD /v2/sessions: list
            GET /v2/sessiontemplates: list
            GET /v2/sessions/s/left_out: list
            PATCH /v2/components: operator
            PATCH /v2/components/x1: report
            PATCH /apis/bos/v2/components/x1: report
            PUT /v2/components/x1: operator
            GET /v2/components/x1: operator
            POST /v2/sessions: operator
            GET /v2/options: operator
            OPTIONS /v2/options: always let in
            GET /v2/healthz: always let in
            GET /apis/bos/v2/version: always let in
            GET /v2: always let in
            GET /: always let in
            GET /readyz: always let in
            GET /metrics: always let in
            GET /boot/v1/bootscript: always let in
        "#]]
        .assert_eq(&rows);
    }
}
