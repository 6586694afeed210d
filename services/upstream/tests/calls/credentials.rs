//! Credentials: their sources, the calls that carry them, and the texts that never show them.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use chassis::settings;
use expect_test::expect;
use parking_lot::Mutex;
use serde_json::json;
use upstream::{Credentials, FailureKind, Peer, Request};

use crate::server::{Server, steady};

/// Answers with the `Authorization` header of the call; refuses the token `expired`.
async fn whoami(headers: HeaderMap) -> (StatusCode, String) {
    let shown = headers.get("authorization").map_or("nobody", |value| value.to_str().unwrap()).to_owned();
    let status = if shown.contains("expired") { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    (status, shown)
}

async fn server() -> Server {
    Server::of(Router::new().route("/v2/whoami", get(whoami))).await
}

pub(crate) fn peer(server: &Server, file: &Path) -> Peer {
    let credentials = format!("file:{}", file.display());
    Peer::new("PCS", &settings::Peer { credentials, ..server.settings() }).unwrap()
}

async fn shown(peer: &Peer) -> String {
    let answer = peer.call(Request::get("whoami", "/whoami")).await.unwrap();
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Replaces the file atomically, like a rotation of secrets.
pub(crate) fn put(file: &Path, text: &str) {
    let next = file.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, file).unwrap();
}

#[tokio::test]
async fn credentials_are_sent_and_reread_when_they_change() {
    let (server, directory) = (server().await, tempfile::tempdir().unwrap());
    let file = directory.path().join("pcs.toml");
    let peer = peer(&server, &file);
    let failure = peer.call(Request::get("whoami", "/whoami")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.text.contains(&file.display().to_string()), "{failure}");
    for (document, shows) in [
        ("token = 'one'", "Bearer one"),
        ("token = 'two'", "Bearer two"),
        ("username = 'root'\npassword = 'initial0'", "Basic cm9vdDppbml0aWFsMA=="),
        ("access_key = 'a'\nsecret_key = 'b'", "nobody"),
    ] {
        put(&file, document);
        assert_eq!(shown(&peer).await, shows);
    }
    let keys = peer.secrets().await.unwrap();
    assert!(
        matches!(&keys, Credentials::Keys { access_key, secret_key } if access_key == "a" && secret_key.reveal() == "b")
    );
    put(&file, "token = 's3cret");
    let failure = peer.call(Request::get("whoami", "/whoami")).await.unwrap_err();
    assert!(!format!("{failure:?}").contains("s3cret"));
    let path = file.display().to_string();
    expect!["PCS at ADDRESS (not called: credentials: FILE: not a TOML document with texts for one of: token; username and password; token_url, client_id, client_secret and, if needed, scope; access_key and secret_key)"].assert_eq(&steady(&failure.text, server.address).replace(&path, "FILE"));
    assert!(peer.secrets().await.is_err());
}

#[tokio::test]
async fn anonymous_calls_and_own_credentials_get_no_others() {
    let (server, directory) = (server().await, tempfile::tempdir().unwrap());
    let file = directory.path().join("pcs.toml");
    put(&file, "token = 'one'");
    let peer = peer(&server, &file);
    let own =
        Request::get("whoami", "/whoami").header("authorization".parse().unwrap(), "Mine 1".parse().unwrap());
    assert_eq!(&peer.call(own).await.unwrap().body[..], b"Mine 1");
    let anonymous = Request::get("whoami", "/whoami").anonymous();
    assert_eq!(&peer.call(anonymous).await.unwrap().body[..], b"nobody");
}

#[tokio::test]
async fn repeated_secrets_do_not_appear_in_texts() {
    let (server, directory) = (server().await, tempfile::tempdir().unwrap());
    let file = directory.path().join("pcs.toml");
    for document in ["token = 'expired-s3cret'", "token = 'expired'"] {
        put(&file, document);
        let failure = peer(&server, &file).call(Request::get("whoami", "/whoami")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        let text = steady(&failure.text, server.address);
        let told = "PCS at ADDRESS (refused GET /whoami since TIME: 401 Unauthorized: Bearer [hidden])";
        assert_eq!(text, told);
    }
}

#[tokio::test]
async fn credentials_come_from_the_environment_too() {
    let server = server().await;
    let settings = settings::Peer { credentials: "env:PATH".into(), ..server.settings() };
    let failure =
        Peer::new("PCS", &settings).unwrap().call(Request::get("whoami", "/whoami")).await.unwrap_err();
    let path = std::env::var("PATH").unwrap();
    assert!(failure.text.contains("PATH: not a TOML document") && !failure.text.contains(&path), "{failure}");
    let settings = settings::Peer { credentials: "env:REVEILLE_NOT_SET".into(), ..server.settings() };
    let failure =
        Peer::new("PCS", &settings).unwrap().call(Request::get("whoami", "/whoami")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.text.contains("REVEILLE_NOT_SET"), "{failure}");
}

/// A token endpoint that numbers its tokens, states their lifetime and counts its calls.
pub(crate) struct Tokens {
    asked: Arc<AtomicUsize>,
    pub(crate) answer: Arc<Mutex<(StatusCode, &'static str, u64)>>,
    server: Server,
}

impl Tokens {
    pub(crate) async fn new() -> Self {
        let (asked, answer) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new((StatusCode::OK, "good", 60))));
        let (count, say) = (Arc::clone(&asked), Arc::clone(&answer));
        let token = move |form: String| async move {
            assert_eq!(
                form,
                "grant_type=client_credentials&client_id=reveille&client_secret=s3cret%26&scope=pcs"
            );
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let (status, word, life) = *say.lock();
            tokio::time::sleep(Duration::from_millis(5)).await;
            if status != StatusCode::OK {
                let told = format!("unknown client with s3cret& and {word}");
                return (status, json!({"error": "invalid_client", "error_description": told}).to_string());
            }
            (status, json!({"access_token": format!("{word}-{number}"), "expires_in": life}).to_string())
        };
        let server = Server::of(Router::new().route("/realms/shasta/token", post(token))).await;
        Self { asked, answer, server }
    }

    pub(crate) fn peer(&self, server: &Server, directory: &Path) -> Peer {
        let file = directory.join("grant.toml");
        let document = format!(
            "token_url = 'http://{}/realms/shasta/token'\nclient_id = 'reveille'\nclient_secret = 's3cret&'\n\
             scope = 'pcs'\n",
            self.server.address
        );
        put(&file, &document);
        peer(server, &file)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn tokens_are_fetched_once_and_again_before_they_expire() {
    let (server, directory, tokens) = (server().await, tempfile::tempdir().unwrap(), Tokens::new().await);
    let peer = tokens.peer(&server, directory.path());
    let all = futures_util::future::join_all((0..8).map(|_| shown(&peer))).await;
    assert!(all.iter().all(|shown| shown == "Bearer good-1"), "{all:?}");
    assert_eq!(tokens.asked(), 1);
    tokens.answer.lock().2 = 1;
    let peer = tokens.peer(&server, directory.path());
    assert_eq!(shown(&peer).await, "Bearer good-2");
    assert_eq!(shown(&peer).await, "Bearer good-2");
    tokio::time::sleep(Duration::from_millis(920)).await;
    assert_eq!(shown(&peer).await, "Bearer good-3");
}

#[tokio::test]
async fn a_refused_token_is_dropped_once() {
    let (directory, tokens) = (tempfile::tempdir().unwrap(), Tokens::new().await);
    let good = Arc::new(Mutex::new("Bearer good-1".to_owned()));
    let now = Arc::clone(&good);
    let answer = move |headers: HeaderMap| async move {
        if headers["authorization"] == *now.lock() {
            (StatusCode::OK, "1")
        } else {
            (StatusCode::UNAUTHORIZED, "")
        }
    };
    let server = Server::of(Router::new().route("/v2/whoami", get(answer))).await;
    let peer = tokens.peer(&server, directory.path());
    shown(&peer).await;
    *good.lock() = "Bearer good-2".into();
    shown(&peer).await;
    assert_eq!(tokens.asked(), 2, "the second token is fetched and tried at once");
    *good.lock() = "none is good".into();
    for _ in 0..5 {
        let failure = peer.call(Request::get("whoami", "/whoami")).await.unwrap_err();
        assert_eq!((failure.kind, failure.status), (FailureKind::Denied, Some(StatusCode::UNAUTHORIZED)));
    }
    assert_eq!(tokens.asked(), 3, "a token that never worked is kept for a while");
}

#[tokio::test]
async fn without_a_token_no_call_is_made() {
    let (server, directory, tokens) = (server().await, tempfile::tempdir().unwrap(), Tokens::new().await);
    let peer = tokens.peer(&server, directory.path());
    tokens.answer.lock().0 = StatusCode::UNAUTHORIZED;
    let failure = peer.call(Request::get("whoami", "/whoami")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let text = steady(&steady(&failure.text, server.address), tokens.server.address);
    expect!["PCS at ADDRESS (not called: token source at ADDRESS (refused POST / since TIME: 401 Unauthorized: unknown client with [hidden] and good))"].assert_eq(&text);
    tokens.answer.lock().0 = StatusCode::INTERNAL_SERVER_ERROR;
    let failure = peer.call(Request::get("whoami", "/whoami")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let text = steady(&steady(&failure.text, server.address), tokens.server.address);
    expect!["PCS at ADDRESS (not called: token source at ADDRESS (failing since TIME: 500 Internal Server Error: unknown client with [hidden] and good))"].assert_eq(&text);
    tokens.answer.lock().0 = StatusCode::OK;
    assert_eq!(shown(&peer).await, "Bearer good-3");
}
