//! Calls at the start.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::time::timeout;
use upstream::{FirstCall, Peer, Request, make_first_calls};

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the number of first calls until the answer, of a server whose answers have these statuses in turn.
async fn calls_until_answered(statuses: &'static [u16]) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let answer = move || async move { answer(statuses[counted.fetch_add(1, Ordering::Relaxed)]) };
    let server = Server::of(Router::new().route("/v2/status", get(answer))).await;
    let peer = Peer::new("PEER", &server.settings()).unwrap();
    let first = FirstCall { peer, request: Request::get("status", "/status") };
    timeout(PATIENCE, make_first_calls([first])).await.expect("an answer");
    calls.load(Ordering::Relaxed)
}

fn answer(status: u16) -> Response {
    (StatusCode::from_u16(status).unwrap(), r#"{"detail": "so it is"}"#).into_response()
}

#[tokio::test]
async fn first_call_is_repeated_until_it_is_answered() {
    assert_eq!(calls_until_answered(&[200]).await, 1);
    assert_eq!(calls_until_answered(&[401, 401, 200]).await, 3, "credentials may be mounted later");
    assert_eq!(calls_until_answered(&[500, 200]).await, 2);
    assert_eq!(calls_until_answered(&[400]).await, 1, "a refusal is an answer");
}
