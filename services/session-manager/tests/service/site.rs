//! Systems with an HTTP API and scripted answers.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use chassis::settings;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};

/// A system at an address of its own. Clones share it.
#[derive(Clone)]
pub struct Site {
    pub url: String,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    calls: Arc<watch::Sender<Vec<String>>>,
}

/// Scripted answer to a path.
#[derive(Debug, Clone)]
pub enum Answer {
    Says(StatusCode, Vec<u8>),
    /// No answer at all.
    Hangs,
}

impl Site {
    /// A system that knows no path yet.
    pub async fn start() -> Self {
        let site = Self { url: String::new(), answers: Arc::default(), calls: Arc::default() };
        let answering = site.clone();
        let url = serve(Router::new().fallback(move |uri: Uri| answering.clone().answer(uri))).await;
        Self { url, ..site }
    }

    /// Answers `path`, as encoded on the wire, with `body` from now on.
    pub fn says(&self, path: &str, status: u16, body: &str) {
        self.answers(path, Answer::Says(StatusCode::from_u16(status).unwrap(), body.into()));
    }

    pub fn answers(&self, path: &str, answer: Answer) {
        self.answers.lock().insert(path.to_owned(), answer);
    }

    /// The paths of the calls so far.
    pub fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }

    /// Counts calls from now on.
    pub fn forget_calls(&self) {
        self.calls.send_modify(Vec::clear);
    }

    /// Waits for that many calls.
    pub async fn called(&self, count: usize) {
        self.calls.subscribe().wait_for(|calls| calls.len() >= count).await.unwrap();
    }

    async fn answer(self, uri: Uri) -> Response {
        self.calls.send_modify(|calls| calls.push(uri.path().to_owned()));
        let answer = self.answers.lock().get(uri.path()).cloned();
        match answer {
            Some(Answer::Says(status, body)) => (status, Body::from(body)).into_response(),
            Some(Answer::Hangs) => std::future::pending().await,
            None => (StatusCode::NOT_FOUND, "no such thing").into_response(),
        }
    }
}

/// Serves `router` until the test ends and returns its address.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Settings of the system at `url`: as `usual`, but without TLS.
pub fn peer(url: &str, usual: settings::Peer) -> settings::Peer {
    settings::Peer { url: url.to_owned(), plain_http: true, ..usual }
}

/// The path and the decoded query of a request.
pub fn parts(request: &Request) -> (String, BTreeMap<String, String>) {
    let query = request.uri().query().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let query = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
    (decoded(request.uri().path()), query)
}

/// Returns the part of an error text after its beginning time; the whole text if there is none.
pub fn words(text: &str) -> &str {
    text.split_once("Z: ").map_or(text, |(_, error)| error.strip_suffix(')').unwrap_or(error))
}
