//! A BMC with one system, sessions, virtual media and firmware, and with habits of real BMCs.

use std::{collections::HashSet, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const MEDIA: &str = "/redfish/v1/Systems/1/VirtualMedia";
const BIOS: &str = "/redfish/v1/Systems/1/Bios";
const SETTINGS: &str = "/redfish/v1/Systems/1/Bios/Settings";
const UPDATES: &str = "/redfish/v1/UpdateService";
const TASKS: &str = "/redfish/v1/TaskService/Tasks";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// State and habits of a BMC. Changes apply at once.
#[derive(Debug)]
pub(crate) struct BmcState {
    /// `PowerState` of the system.
    pub(crate) power: &'static str,
    /// Image that is inserted.
    pub(crate) image: Option<String>,
    /// Value of the only setting of the BIOS.
    pub(crate) turbo: &'static str,
    /// Whether settings wait for the next reset, which turn that setting off.
    pub(crate) has_pending_settings: bool,
    /// Version of the pending settings, on whose condition alone they are changed; empty: there are no versions.
    pub(crate) settings_version: &'static str,
    /// Whether the version stands in the document and not in a header.
    pub(crate) tells_version_in_document: bool,
    /// Version of the BIOS.
    pub(crate) bios_version: &'static str,
    /// State of the only task; `None`: there is none.
    pub(crate) task: Option<&'static str>,
    /// Whether changes have an effect.
    pub(crate) works: bool,
    /// Part of a path at which the BMC does not answer; empty: nowhere.
    pub(crate) hangs_at: &'static str,
    /// Sessions that have not ended.
    pub(crate) sessions: HashSet<String>,
    /// Requests other than reads, in order.
    pub(crate) changes: Vec<String>,
}

/// BMC that answers until it is dropped.
pub(crate) struct FakeBmc {
    address: SocketAddr,
    state: Arc<Mutex<BmcState>>,
    serving: JoinHandle<()>,
}

impl FakeBmc {
    /// Starts a BMC whose system is off.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(BmcState {
            power: "Off",
            image: None,
            turbo: "On",
            has_pending_settings: false,
            settings_version: "",
            tells_version_in_document: false,
            bios_version: "1.0",
            task: None,
            works: true,
            hangs_at: "",
            sessions: HashSet::new(),
            changes: Vec::new(),
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, serving }
    }

    /// Address of the system, as hosts name it.
    pub(crate) fn address(&self) -> String {
        format!("redfish-virtualmedia+http://{}{SYSTEM}", self.address)
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().sessions.len()
    }

    /// Returns the changes that were requested since the last call, without the ends of sessions.
    pub(crate) fn take_changes(&self) -> Vec<String> {
        let mut changes = std::mem::take(&mut self.state.lock().changes);
        changes.retain(|change| !change.starts_with("DELETE"));
        changes
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut BmcState)) {
        change(&mut self.state.lock());
    }
}

impl Drop for FakeBmc {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(state): State<Arc<Mutex<BmcState>>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path();
    let hangs_at = state.lock().hangs_at;
    if !hangs_at.is_empty() && path.contains(hangs_at) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    state.lock().answer(head.method.as_str(), path, &head.headers, &body)
}

impl BmcState {
    fn answer(&mut self, method: &str, path: &str, headers: &HeaderMap, body: &Value) -> Response {
        match (method, path) {
            ("GET", "/redfish/v1/") => {
                return found(&json!({
                    "Links": {"Sessions": {"@odata.id": SESSIONS}},
                    "UpdateService": {"@odata.id": UPDATES},
                }));
            }
            ("POST", SESSIONS) => return self.begin_session(),
            ("GET", _) => {}
            _ => self.changes.push(format!("{method} {}", path.rsplit('/').next().unwrap_or_default())),
        }
        let token = headers.get("x-auth-token").and_then(|token| token.to_str().ok());
        if !token.is_some_and(|token| self.sessions.contains(token)) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        match method {
            "GET" => self.read(path),
            "PATCH" if path == SETTINGS => self.change_settings(headers),
            _ => self.change(path, body),
        }
    }

    fn change_settings(&mut self, headers: &HeaderMap) -> Response {
        let condition = headers.get("if-match").map(|version| version.to_str().unwrap());
        if condition != Some(self.settings_version).filter(|version| !version.is_empty()) {
            return StatusCode::PRECONDITION_REQUIRED.into_response();
        }
        self.has_pending_settings = true;
        StatusCode::NO_CONTENT.into_response()
    }

    fn begin_session(&mut self) -> Response {
        let token = format!("token-{}", self.changes.len());
        self.changes.push("session".to_owned());
        self.sessions.insert(token.clone());
        let location = format!("{SESSIONS}/{token}");
        (StatusCode::CREATED, [("x-auth-token", token), ("location", location)], "{}").into_response()
    }

    fn read(&self, path: &str) -> Response {
        let drive = format!("{MEDIA}/Cd");
        match path {
            SYSTEM => found(&json!({
                "@odata.id": SYSTEM,
                "PowerState": self.power,
                "Processors": {"@odata.id": format!("{SYSTEM}/Processors")},
                "VirtualMedia": {"@odata.id": MEDIA},
                "Bios": {"@odata.id": BIOS},
                "BiosVersion": self.bios_version,
            })),
            BIOS => found(&json!({
                "Attributes": {"Turbo": self.turbo},
                "@Redfish.Settings": {"SettingsObject": {"@odata.id": SETTINGS}},
            })),
            SETTINGS if self.tells_version_in_document => {
                found(&json!({"@odata.etag": self.settings_version}))
            }
            SETTINGS if !self.settings_version.is_empty() => {
                ([("etag", self.settings_version)], "{}").into_response()
            }
            SETTINGS => found(&json!({})),
            UPDATES => found(&json!({"Actions": {"#UpdateService.SimpleUpdate": {
                "target": format!("{UPDATES}/Actions/UpdateService.SimpleUpdate"),
            }}})),
            TASKS => {
                let tasks = self.task.map(|_| json!({"@odata.id": format!("{TASKS}/1")}));
                found(&json!({"Members": tasks.as_slice()}))
            }
            _ if path.starts_with(TASKS) => match self.task {
                Some(state) => found(&json!({"TaskState": state})),
                None => StatusCode::NOT_FOUND.into_response(),
            },
            MEDIA => found(&json!({"Members": [{"@odata.id": drive}]})),
            _ if path == drive => found(&json!({
                "MediaTypes": ["CD"],
                "Inserted": self.image.is_some(),
                "Image": self.image,
                "Actions": {"#VirtualMedia.InsertMedia": {"target": format!("{drive}/InsertMedia")}},
            })),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn change(&mut self, path: &str, body: &Value) -> Response {
        if let Some(token) = path.strip_prefix(&format!("{SESSIONS}/")) {
            self.sessions.remove(token);
        } else if path.ends_with("SimpleUpdate") {
            self.task = Some("Running");
            return (StatusCode::ACCEPTED, [("location", format!("{TASKS}/1"))], "{}").into_response();
        } else if self.works && path.ends_with("ComputerSystem.Reset") {
            if std::mem::take(&mut self.has_pending_settings) {
                self.turbo = "Off";
            }
            self.power = if body["ResetType"] == "On" { "On" } else { "Off" };
        } else if self.works && path.ends_with("InsertMedia") {
            self.image = body["Image"].as_str().map(str::to_owned);
        }
        StatusCode::NO_CONTENT.into_response()
    }
}

fn found(document: &Value) -> Response {
    document.to_string().into_response()
}
