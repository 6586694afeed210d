//! Peers that work and answer, also with refusals.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    extract::{Path, RawQuery},
    http::{HeaderMap, HeaderValue, StatusCode, header::LOCATION},
    response::IntoResponse,
    routing::{get, post},
};
use expect_test::expect;
use serde::Deserialize;
use serde_json::json;
use upstream::{FailureKind, Request};

use crate::server::{Server, say, steady};

#[derive(Debug, Deserialize)]
struct Node {
    #[serde(rename = "ID")]
    id: String,
}

#[tokio::test]
async fn an_answer_is_read_to_its_end() {
    let page = "x".repeat(300_000);
    let node = async |RawQuery(query): RawQuery, headers: HeaderMap| {
        assert_eq!(query.as_deref(), Some("role=Compute&q=a+b%26c"));
        assert_eq!(headers["accept"], "application/json");
        assert_eq!(headers["x-request-id"], "request-1");
        assert!(headers["user-agent"].to_str().unwrap().starts_with("reveille/"));
        json!({"ID": "x1"}).to_string()
    };
    let echo = async |body: String| (StatusCode::ACCEPTED, [("x-told", "yes")], body);
    let router = Router::new()
        .route("/v2/nodes", get(node))
        .route("/v2/echo", post(echo))
        .route("/v2/page", get(async || page));
    let server = Server::of(router).await;
    let peer = server.peer();
    let request = Request::get("nodes", "/nodes").query("role", "Compute").query("q", "a b&c");
    let node: Node = chassis::mesh::request_id::scope("request-1".into(), peer.json(request)).await.unwrap();
    assert_eq!(node.id, "x1");
    let answer = peer.call(Request::post("echo", "/echo").json(&json!({"a": 1}))).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::ACCEPTED, &b"{\"a\":1}"[..]));
    assert_eq!(answer.headers["x-told"], "yes");
    assert_eq!(peer.call(Request::get("page", "/page")).await.unwrap().body.len(), 300_000);
}

#[tokio::test]
async fn an_unwanted_call_does_not_arrive() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    let take = async move |headers: HeaderMap, body: String| {
        assert_eq!((&headers["content-length"], &body[..]), (&HeaderValue::from(7), r#"{"a":1}"#));
        count.fetch_add(1, Ordering::Relaxed);
    };
    let server = Server::of(Router::new().route("/v2/actions", post(take))).await;
    let peer = server.peer();
    // `still_wanted` is called before the connection and again on the open connection.
    for (wanted_for, arrives) in [(0, false), (1, false), (2, true)] {
        let checks = AtomicUsize::new(0);
        let still_wanted = move || checks.fetch_add(1, Ordering::Relaxed) < wanted_for;
        let request = Request::post("act", "/actions").json(&json!({"a": 1})).while_wanted(still_wanted);
        let before = arrived.load(Ordering::Relaxed);
        let answer = peer.call(request).await.map_err(|failure| failure.kind);
        assert_eq!(answer.map(drop), if arrives { Ok(()) } else { Err(FailureKind::Unreachable) });
        assert_eq!(arrived.load(Ordering::Relaxed) > before, arrives, "{wanted_for}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_request_and_the_reason() {
    let refuse = async |Path(status): Path<u16>| {
        let status = StatusCode::from_u16(status).unwrap();
        let body = json!({"title": "no", "detail": format!("because of {}", status.as_u16())}).to_string();
        (status, [(LOCATION, "https://elsewhere.example/?key=s3cret")], body).into_response()
    };
    let server = Server::of(Router::new().route("/v2/{status}", post(refuse).get(refuse))).await;
    let mut table = String::new();
    for status in [302, 400, 401, 403, 404, 405, 409, 422, 501] {
        let peer = server.peer();
        let request = Request::post("test", format!("/{status}?key=s3cret")).query("signature", "s3cret");
        let failure = peer.call(request).await.unwrap_err();
        assert_eq!(failure.status.unwrap().as_u16(), status);
        let text = steady(&failure.text, server.address);
        writeln!(table, "{:<11} | {text}", failure.kind.word()).unwrap();
        assert!(!format!("{failure:?} {failure}").contains("s3cret"));
    }
    expect![[r#"
        denied      | HSM at ADDRESS (refused POST /302 since TIME: 302 Found: redirects are not followed)
        refused     | HSM at ADDRESS (refused POST /400: 400 Bad Request: because of 400)
        denied      | HSM at ADDRESS (refused POST /401 since TIME: 401 Unauthorized: because of 401)
        denied      | HSM at ADDRESS (refused POST /403 since TIME: 403 Forbidden: because of 403)
        refused     | HSM at ADDRESS (refused POST /404: 404 Not Found: because of 404)
        denied      | HSM at ADDRESS (refused POST /405 since TIME: 405 Method Not Allowed: because of 405)
        refused     | HSM at ADDRESS (refused POST /409: 409 Conflict: because of 409)
        refused     | HSM at ADDRESS (refused POST /422: 422 Unprocessable Entity: because of 422)
        denied      | HSM at ADDRESS (refused POST /501 since TIME: 501 Not Implemented: because of 501)
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn the_text_of_a_denial_stays_until_its_outage_ends() {
    let status = Arc::new(AtomicUsize::new(401));
    let count = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&status);
    let answer = move || async move {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let status = u16::try_from(now.load(Ordering::Relaxed)).unwrap();
        (StatusCode::from_u16(status).unwrap(), format!("\"trace {number}\""))
    };
    let server = Server::of(Router::new().route("/v2/nodes", get(answer))).await;
    let peer = server.peer();
    let mut texts = Vec::new();
    for now in [401, 401, 403, 404, 403] {
        status.store(now, Ordering::Relaxed);
        texts.push(peer.call(Request::get("nodes", "/nodes")).await.unwrap_err().text);
    }
    assert_eq!(texts[0], texts[1]);
    texts.remove(1);
    let texts = texts.iter().map(|text| steady(text, server.address)).collect::<Vec<_>>();
    expect![[r#"
        HSM at ADDRESS (refused GET /nodes since TIME: 401 Unauthorized: "trace 0")
        HSM at ADDRESS (refused GET /nodes since TIME: 403 Forbidden: "trace 2")
        HSM at ADDRESS (refused GET /nodes: 404 Not Found: "trace 3")
        HSM at ADDRESS (refused GET /nodes since TIME: 403 Forbidden: "trace 2")
    "#]]
    .assert_eq(&(texts.join("\n") + "\n"));
}

#[tokio::test]
async fn refusals_do_not_open_the_circuit() {
    let server = Server::of(Router::new()).await;
    let peer = server.peer();
    for _ in 0..30 {
        let failure = peer.call(Request::get("test", "/none")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
    }
}

#[tokio::test]
async fn long_error_texts_are_cut() {
    let router = Router::new().route("/v2/long", get(async || (StatusCode::CONFLICT, "x".repeat(5_000_000))));
    let server = Server::of(router).await;
    let failure = server.peer().call(Request::get("test", "/long")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.text.chars().count() < 400, "{failure}");
}

#[tokio::test]
async fn a_path_to_another_host_is_not_called() {
    let server = Server::of(Router::new()).await;
    let settings = chassis::settings::Peer { url: format!("http://{}", server.address), ..server.settings() };
    let peer = upstream::Peer::new("BMC b1", &settings).unwrap();
    let failure = peer.call(Request::get("test", "@elsewhere.example/")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused, "taken as a path of the peer");
    let failure = peer.call(Request::get("test", "/a b\u{0}")).await.unwrap_err();
    expect!["BMC b1 at ADDRESS (refused GET /a b: 404 Not Found)"]
        .assert_eq(&steady(&failure.text, server.address));
}

#[tokio::test]
async fn a_refusal_without_its_body_is_a_refusal() {
    let server = Server::raw(|mut connection| async move {
        say(&mut connection, b"HTTP/1.1 404 Not Found\r\ncontent-length: 1000\r\n\r\nno").await;
        std::future::pending().await
    })
    .await;
    let peer = upstream::Peer::new("HSM", &server.hasty()).unwrap();
    let failure = peer.call(Request::get("test", "/x")).await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Refused, Some(StatusCode::NOT_FOUND)));
}
