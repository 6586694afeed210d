//! BSS, CFS and IMS over HTTP, as they are on the wire.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::pending,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, patch, put},
};
use chassis::{Settings, settings};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

/// All three peers, in this process. They live as long as the test.
#[derive(Clone)]
pub(crate) struct PlayedPeers {
    pub(crate) host: String,
    state: Arc<Mutex<PlayedState>>,
}

/// State of the peers and their troubles.
pub(crate) struct PlayedState {
    pub(crate) cfs: BTreeMap<String, Value>,
    /// Number of components on a page.
    pub(crate) page: usize,
    /// Boot data by host: token and body.
    pub(crate) bss: BTreeMap<String, (String, Value)>,
    /// Troubles by the first part of the path: `cfs`, `bss` or `ims`.
    pub(crate) trouble: HashMap<&'static str, PlayedTrouble>,
    /// Nodes with which every peer refuses a call.
    pub(crate) refused: BTreeSet<String>,
    /// Nodes with which BSS answers a call 503.
    pub(crate) failing: BTreeSet<String>,
    /// Delay of the next change of configurations, after which CFS hangs.
    pub(crate) late_change: Option<Duration>,
    /// Method, path and query of every request.
    pub(crate) heard: Vec<String>,
    tokens: u32,
}

/// Trouble of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlayedTrouble {
    Hang,
    Status(u16),
    /// Status 200 with half a document.
    Malformed,
    /// Status 200 without the needed contents.
    Bare,
    /// Status 500 for the second page and all later ones.
    SecondPage,
    /// Every page is the first one.
    Endless,
}

impl PlayedPeers {
    pub(crate) async fn play() -> Self {
        let played = PlayedState {
            cfs: BTreeMap::new(),
            page: 1000,
            bss: BTreeMap::new(),
            trouble: HashMap::new(),
            refused: BTreeSet::new(),
            failing: BTreeSet::new(),
            late_change: None,
            heard: Vec::new(),
            tokens: 0,
        };
        let state = Arc::new(Mutex::new(played));
        let router = Router::new()
            .route("/cfs/v3/components", get(list).patch(change))
            .route("/cfs/v3/components/{id}", get(show))
            .route("/bss/boot/v1/bootparameters", put(put_boot_parameters))
            .route("/bss/boot/v1/service/status", get(state_running))
            .route("/ims/v3/images/{id}", patch(tag_image))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { host, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, PlayedState> {
        self.state.lock()
    }

    /// Returns the number of requests so far whose method and path begin with `like`.
    pub(crate) fn heard(&self, like: &str) -> usize {
        self.state().heard.iter().filter(|line| line.starts_with(like)).count()
    }

    /// Returns settings for calling the peers.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let at = |peer: &mut settings::Peer, path: &str| {
            peer.url = format!("http://{}{path}", self.host);
            peer.plain_http = true;
        };
        at(&mut settings.boot_parameters.bss, "/bss/boot/v1");
        at(&mut settings.configuration.cfs, "/cfs/v3");
        at(&mut settings.images.ims, "/ims/v3");
        settings
    }

    /// Returns a text without the parts that differ from run to run.
    pub(crate) fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.host, "HOST");
        match text.split_once("since ").and_then(|(before, after)| Some((before, after.split_once('Z')?.1))) {
            Some((before, after)) => format!("{before}since TIME{after}"),
            None => text,
        }
    }

    /// Puts components into CFS.
    pub(crate) fn configure(&self, ids: impl IntoIterator<Item = String>, desired: &str, status: &str) {
        let components = ids.into_iter().map(|id| {
            let component =
                json!({"id": id, "desired_config": desired, "configuration_status": status, "tags": {}});
            (id, component)
        });
        self.state().cfs.extend(components);
    }
}

/// Words of which CFS takes one as a filter. CFS has more words, and refuses a list.
const STATUSES: [&str; 4] = ["unconfigured", "failed", "pending", "configured"];

type Shared = State<Arc<Mutex<PlayedState>>>;

/// Logs the request, and answers it if the peer has trouble that does not depend on the request.
async fn hear(
    state: &Arc<Mutex<PlayedState>>,
    peer: &'static str,
    method: Method,
    uri: &Uri,
) -> Option<Response> {
    let trouble = {
        let mut state = state.lock();
        state.heard.push(format!("{method} {uri}"));
        state.trouble.get(peer).copied()
    };
    match trouble? {
        PlayedTrouble::Hang => pending().await,
        PlayedTrouble::Status(status) => {
            let problem = json!({"detail": "out of order"}).to_string();
            Some((StatusCode::from_u16(status).unwrap(), problem).into_response())
        }
        PlayedTrouble::Malformed => Some("{\"components\": [".into_response()),
        PlayedTrouble::Bare | PlayedTrouble::SecondPage | PlayedTrouble::Endless => None,
    }
}

fn refusal(id: &str) -> Response {
    let problem = json!({"title": "Bad Request", "detail": format!("{id} is not known")});
    (StatusCode::BAD_REQUEST, problem.to_string()).into_response()
}

async fn list(
    State(state): Shared,
    method: Method,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    if let Some(answer) = hear(&state, "cfs", method, &uri).await {
        return answer;
    }
    let state = state.lock();
    let trouble = state.trouble.get("cfs").copied();
    let after = query.get("after_id").map(String::as_str).filter(|_| trouble != Some(PlayedTrouble::Endless));
    if trouble == Some(PlayedTrouble::SecondPage) && after.is_some() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let wanted = |name: &str| query.get(name).filter(|value| !value.is_empty());
    if let Some(word) = wanted("status").filter(|word| !STATUSES.contains(&word.as_str())) {
        let problem =
            json!({"title": "Bad Request", "detail": format!("'{word}' is not one of {STATUSES:?}")});
        return (StatusCode::BAD_REQUEST, problem.to_string()).into_response();
    }
    let tag = wanted("tags").and_then(|tags| tags.split_once('='));
    let is_named =
        |id: &Value| wanted("ids").is_none_or(|ids| ids.split(',').any(|one| Some(one) == id.as_str()));
    let picked = |component: &&Value| {
        tag.is_none_or(|(name, value)| component["tags"][name] == value)
            && is_named(&component["id"])
            && wanted("status").is_none_or(|word| component["configuration_status"] == **word)
    };
    let all: Vec<_> = state
        .cfs
        .iter()
        .filter(|(id, _)| after.is_none_or(|after| id.as_str() > after))
        .map(|(_, component)| component)
        .filter(picked)
        .cloned()
        .collect();
    let (page, rest) = all.split_at(state.page.min(all.len()));
    let next = (!rest.is_empty()).then(|| {
        json!({
            "ids": wanted("ids"), "status": wanted("status"), "enabled": null, "config_name": "", "state_details": false,
            "tags": query.get("tags"), "limit": state.page, "after_id": page.last().map(|last| &last["id"]),
        })
    });
    json!({"components": page, "next": next}).to_string().into_response()
}

async fn show(State(state): Shared, method: Method, uri: Uri, Path(id): Path<String>) -> Response {
    if let Some(answer) = hear(&state, "cfs", method, &uri).await {
        return answer;
    }
    match state.lock().cfs.get(&id) {
        Some(component) => component.to_string().into_response(),
        None => (StatusCode::NOT_FOUND, json!({"title": "Component not found."}).to_string()).into_response(),
    }
}

async fn change(State(state): Shared, method: Method, uri: Uri, body: Bytes) -> Response {
    if let Some(answer) = hear(&state, "cfs", method, &uri).await {
        return answer;
    }
    let late = state.lock().late_change.take();
    if let Some(late) = late {
        tokio::time::sleep(late).await;
        state.lock().trouble.insert("cfs", PlayedTrouble::Hang);
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let ids = body["filters"]["ids"].as_str().unwrap().split(',').map(str::to_owned);
    let mut state = state.lock();
    let ids: Vec<_> = ids.collect();
    if let Some(bad) = ids.iter().find(|id| state.refused.contains(*id)) {
        return refusal(bad);
    }
    let mut taken = Vec::new();
    for id in ids {
        if let Some(component) = state.cfs.get_mut(&id) {
            for (name, value) in body["patch"].as_object().unwrap() {
                component[name] = value.clone();
            }
            component["configuration_status"] = json!("pending");
            taken.push(id);
        }
    }
    match state.trouble.get("cfs") {
        Some(PlayedTrouble::Bare) => "{}".into_response(),
        _ => json!({"component_ids": taken}).to_string().into_response(),
    }
}

async fn state_running(State(state): Shared, method: Method, uri: Uri) -> Response {
    match hear(&state, "bss", method, &uri).await {
        Some(answer) => answer,
        None => json!({"bss-status": "running"}).to_string().into_response(),
    }
}

async fn put_boot_parameters(State(state): Shared, method: Method, uri: Uri, body: Bytes) -> Response {
    if let Some(answer) = hear(&state, "bss", method, &uri).await {
        return answer;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let hosts: Vec<_> = body["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap()).collect();
    let mut state = state.lock();
    if let Some(bad) = hosts.iter().find(|host| state.refused.contains(**host)) {
        return refusal(bad);
    }
    if hosts.iter().any(|host| state.failing.contains(*host)) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    state.tokens += 1;
    let token = format!("token-{}", state.tokens);
    for host in hosts {
        state.bss.insert(host.to_owned(), (token.clone(), body.clone()));
    }
    match state.trouble.get("bss") {
        Some(PlayedTrouble::Bare) => StatusCode::OK.into_response(),
        _ => ([("BSS-Referral-Token", token)], "").into_response(),
    }
}

async fn tag_image(
    State(state): Shared,
    method: Method,
    uri: Uri,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    if let Some(answer) = hear(&state, "ims", method, &uri).await {
        return answer;
    }
    let wanted = json!({"metadata": {"operation": "set", "key": "sbps-project", "value": "true"}});
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), wanted);
    if state.lock().refused.contains(&id) {
        let problem = json!({"title": "Not Found", "detail": "image does not exist"});
        return (StatusCode::NOT_FOUND, problem.to_string()).into_response();
    }
    json!({"id": id}).to_string().into_response()
}
