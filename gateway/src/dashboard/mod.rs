//! Page for people: the machine as the live stream shows it. The page brings everything that it needs, for networks
//! where nothing else can be reached, and calls nothing but the gateway.

use axum::{
    Router,
    extract::{Path, Request},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};

/// Path of the page. Its slash at the end makes the addresses of its files relative to it.
const PATH: &str = "/dashboard/";

/// Name under which the page itself is a file.
const INDEX: &str = "index.html";

/// Rights of the page: its own files, and calls of the gateway. Nothing may frame it, so no other site can have its
/// buttons pressed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Files of the page: name, media type, content.
const FILES: [(&str, &str, &str); 16] = [
    (INDEX, HTML, include_str!("assets/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("main.js", SCRIPT, include_str!("assets/main.js")),
    ("elements.js", SCRIPT, include_str!("assets/elements.js")),
    ("fleet.js", SCRIPT, include_str!("assets/fleet.js")),
    ("gateway.js", SCRIPT, include_str!("assets/gateway.js")),
    ("layout.js", SCRIPT, include_str!("assets/layout.js")),
    ("map.js", SCRIPT, include_str!("assets/map.js")),
    ("node.js", SCRIPT, include_str!("assets/node.js")),
    ("readings.js", SCRIPT, include_str!("assets/readings.js")),
    ("rollout.js", SCRIPT, include_str!("assets/rollout.js")),
    ("sessions.js", SCRIPT, include_str!("assets/sessions.js")),
    ("stream.js", SCRIPT, include_str!("assets/stream.js")),
    ("tables.js", SCRIPT, include_str!("assets/tables.js")),
    ("troubles.js", SCRIPT, include_str!("assets/troubles.js")),
];

/// Returns the routes of the page, also under `prefix`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(prefix: &'static str) -> Router<S> {
    let named = get(|Path(name): Path<String>| async move { file(&name) });
    let index = get(|| async { file(INDEX) });
    let to_page = get(|| async { Redirect::temporary("dashboard/") });
    [prefix, ""].into_iter().fold(Router::new(), |router, prefix| {
        router
            .route(&format!("{prefix}/dashboard"), to_page.clone())
            .route(&format!("{prefix}{PATH}"), index.clone())
            .route(&format!("{prefix}{PATH}{{file}}"), named.clone())
    })
}

/// Sends browsers that ask for the root to the page. Programs do not ask for HTML, and get the versions of the contract.
pub(crate) async fn welcome(prefix: &'static str, request: Request, next: Next) -> Response {
    let is_root = matches!(request.uri().path().strip_prefix(prefix).unwrap_or(request.uri().path()), "/");
    if is_root && *request.method() == Method::GET && wants_page(request.headers()) {
        // Relative, because a proxy may have removed a prefix.
        return Redirect::temporary("dashboard/").into_response();
    }
    next.run(request).await
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| one.trim_start().starts_with("text/html"))
}

fn file(name: &str) -> Response {
    let Some((_, media_type, content)) = FILES.iter().find(|(known, ..)| *known == name) else {
        return (StatusCode::NOT_FOUND, "the page has no such file\n").into_response();
    };
    (headers(media_type), *content).into_response()
}

/// Returns the headers of a file. Browsers ask again for each, so that a new version of the gateway never mixes with an
/// old page.
fn headers(media_type: &'static str) -> [(HeaderName, HeaderValue); 4] {
    [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Largest size of the whole page, so that it opens at once over a slow line.
    const LARGEST_PAGE: usize = 200_000;

    #[test]
    fn page_is_small_and_complete() {
        assert!(FILES.iter().map(|(.., content)| content.len()).sum::<usize>() < LARGEST_PAGE);
        let known: BTreeSet<_> = FILES.iter().map(|(name, ..)| *name).collect();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/dashboard/assets");
        let present = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let present: Vec<_> = present.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(known, present.iter().map(String::as_str).collect());
    }

    #[test]
    fn page_calls_no_other_server() {
        for (name, _, content) in FILES {
            let foreign = content.split("http://www.w3.org/2000/svg").any(|part| part.contains("://"));
            assert!(!foreign, "{name}");
        }
    }

    #[test]
    fn only_browsers_are_sent_to_the_page() {
        for (accepted, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json, text/html", true),
            ("*/*", false),
            ("application/json", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accepted).unwrap())]);
            assert_eq!(wants_page(&headers), expected, "{accepted}");
        }
    }
}
