//! BMCs for tests: a small Redfish service on a port of this machine, with troubles of real BMCs.

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

pub(super) const SYSTEMS: &str = "/redfish/v1/Systems";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// Value of `Authorization` for `root` with the password `s3cret`.
const BASIC: &str = "Basic cm9vdDpzM2NyZXQ=";

/// State and behaviour of a BMC. Changes apply at once.
#[derive(Debug)]
pub(super) struct BmcHardware {
    /// `PowerState` by the last part of the path.
    pub(super) power: BTreeMap<String, String>,
    /// Kinds of reset that the system itself lists; `None`: a separate document lists them.
    pub(super) allowable: Option<Vec<&'static str>>,
    /// Whether a password is required.
    pub(super) locked: bool,
    /// Whether the BMC has sessions.
    pub(super) sessions: bool,
    pub(super) tokens: HashSet<String>,
    /// Answer to a reset in place of success.
    pub(super) answer: Option<(u16, Value)>,
    /// Whether a reset has an effect.
    pub(super) works: bool,
    /// Whether the BMC stopped answering.
    pub(super) hangs: bool,
    /// Requests, in order.
    pub(super) log: Vec<String>,
    pub(super) under_way: usize,
    /// Most concurrent calls so far.
    pub(super) most_at_once: usize,
}

impl BmcHardware {
    /// Returns a BMC with these systems, all of them off, that needs no login.
    pub(super) fn of(systems: &[&str]) -> Self {
        Self {
            power: systems.iter().map(|&system| (system.to_owned(), "Off".to_owned())).collect(),
            allowable: Some(vec!["On", "ForceOff", "GracefulShutdown"]),
            locked: false,
            sessions: false,
            tokens: HashSet::new(),
            answer: None,
            works: true,
            hangs: false,
            log: Vec::new(),
            under_way: 0,
            most_at_once: 0,
        }
    }

    fn service_root(&self) -> Response {
        let mut root = json!({ "Systems": { "@odata.id": SYSTEMS } });
        if self.sessions {
            root["Links"] = json!({ "Sessions": { "@odata.id": SESSIONS } });
        }
        found(&root)
    }

    fn begin_session(&mut self, body: &Value) -> Response {
        if body["UserName"] != "root" || body["Password"] != "s3cret" {
            let words = format!("The value {} for Password is wrong.", body["Password"]);
            return refused(StatusCode::UNAUTHORIZED, &words);
        }
        let token = format!("token-{}", self.log.len());
        self.tokens.insert(token.clone());
        let location = format!("{SESSIONS}/{token}");
        let headers = [("x-auth-token", token), ("location", location)];
        (StatusCode::CREATED, headers, "{}").into_response()
    }

    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let by_token = header("x-auth-token").is_some_and(|token| self.tokens.contains(token));
        !self.locked || by_token || header("authorization") == Some(BASIC)
    }

    fn system(&self, name: &str) -> Response {
        let Some(power) = self.power.get(name) else {
            return refused(StatusCode::NOT_FOUND, "There is no such system.");
        };
        let path = format!("{SYSTEMS}/{name}");
        let mut reset = json!({ "target": format!("{path}/Actions/ComputerSystem.Reset") });
        match &self.allowable {
            Some(allowable) => reset["ResetType@Redfish.AllowableValues"] = json!(allowable),
            None => reset["@Redfish.ActionInfo"] = json!(format!("{path}/ResetActionInfo")),
        }
        found(&json!({ "PowerState": power, "Actions": { "#ComputerSystem.Reset": reset } }))
    }

    fn reset(&mut self, name: &str, body: &Value) -> Response {
        let kind = body["ResetType"].as_str().unwrap_or_default();
        self.log.push(format!("{name}: {kind}"));
        if self.works {
            let power = if matches!(kind, "On" | "ForceOn") { "On" } else { "Off" };
            self.power.insert(name.to_owned(), power.to_owned());
        }
        match &self.answer {
            Some((status, body)) => {
                (StatusCode::from_u16(*status).unwrap(), body.to_string()).into_response()
            }
            None => StatusCode::NO_CONTENT.into_response(),
        }
    }

    fn answer(&mut self, method: &Method, path: &str, headers: &HeaderMap, body: &Value) -> Response {
        self.log.push(format!("{method} {path}"));
        if path == "/redfish/v1/" {
            return self.service_root();
        }
        if path == SESSIONS && self.sessions {
            return self.begin_session(body);
        }
        if !self.lets_in(headers) {
            return refused(StatusCode::UNAUTHORIZED, "Who are you?");
        }
        if let Some(token) = path.strip_prefix(&format!("{SESSIONS}/")) {
            self.tokens.remove(token);
            return StatusCode::NO_CONTENT.into_response();
        }
        match path.strip_prefix(SYSTEMS).unwrap_or_default().split('/').collect::<Vec<_>>()[..] {
            [_] => {
                let systems =
                    self.power.keys().map(|name| json!({ "@odata.id": format!("{SYSTEMS}/{name}") }));
                found(&json!({ "Members": systems.collect::<Vec<_>>() }))
            }
            [_, name] => self.system(name),
            [_, _, "ResetActionInfo"] => found(&json!({ "Parameters": [
                { "Name": "ResetType", "AllowableValues": ["ForceOn", "ForceOff", "GracefulShutdown"] }] })),
            [_, name, "Actions", "ComputerSystem.Reset"] => self.reset(name, body),
            _ => refused(StatusCode::NOT_FOUND, "There is nothing here."),
        }
    }
}

fn found(document: &Value) -> Response {
    document.to_string().into_response()
}

fn refused(status: StatusCode, words: &str) -> Response {
    (status, redfish_error(words).to_string()).into_response()
}

/// Returns an error in the form of Redfish.
pub(super) fn redfish_error(words: &str) -> Value {
    json!({ "error": { "code": "Base.1.8.GeneralError", "message": "See ExtendedInfo.",
        "@Message.ExtendedInfo": [{ "MessageId": "Base.1.8.GeneralError", "Message": words }] } })
}

/// BMC that answers until it is dropped.
pub(super) struct FakeBmc {
    pub(super) address: SocketAddr,
    pub(super) hardware: Arc<Mutex<BmcHardware>>,
    serving: JoinHandle<()>,
}

impl FakeBmc {
    pub(super) async fn start(hardware: BmcHardware) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), hardware).await
    }

    pub(super) async fn start_at(address: SocketAddr, hardware: BmcHardware) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let hardware = Arc::new(Mutex::new(hardware));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&hardware));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, hardware, serving }
    }

    /// Returns the requests so far, without polls.
    pub(super) fn asked(&self) -> Vec<String> {
        let log = &self.hardware.lock().log;
        log.iter().filter(|line| !line.starts_with("GET ") && !line.contains("/Actions/")).cloned().collect()
    }

    pub(super) fn power(&self, system: &str) -> String {
        self.hardware.lock().power[system].clone()
    }

    pub(super) fn set_power(&self, system: &str, power: &str) {
        self.hardware.lock().power.insert(system.to_owned(), power.to_owned());
    }
}

impl Drop for FakeBmc {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(hardware): State<Arc<Mutex<BmcHardware>>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let hangs = {
        let mut hardware = hardware.lock();
        hardware.under_way += 1;
        hardware.most_at_once = hardware.most_at_once.max(hardware.under_way);
        hardware.hangs
    };
    // The pause makes concurrent calls overlap.
    tokio::time::sleep(Duration::from_millis(if hangs { 60_000 } else { 5 })).await;
    let mut hardware = hardware.lock();
    hardware.under_way -= 1;
    hardware.answer(&head.method, head.uri.path(), &head.headers, &body)
}
