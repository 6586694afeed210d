//! A power control service controlled by a test, in the service's own wire format.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chassis::settings;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Service at an address of its own, which ends when it is dropped.
pub(crate) struct FakePcs {
    pub(crate) url: String,
    world: Arc<Mutex<PcsWorld>>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct PcsWorld {
    /// Entries of power-status by node. Nodes without an entry are left out of answers.
    nodes: BTreeMap<String, Value>,
    transitions: Vec<Value>,
    /// Every call: method, path, and body.
    calls: Vec<(String, Value)>,
    troubles: BTreeMap<&'static str, PcsTrouble>,
    /// Number of seconds by which the clock of the service is ahead.
    ahead: i64,
    /// Transitions of other clients that begin when the next call for one arrives.
    rivals: Vec<Value>,
    /// Ids for the answers to the next calls, in place of those of the transitions.
    mistaken_ids: VecDeque<String>,
}

/// Trouble with calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PcsTrouble {
    /// Calls are taken and never answered, and have no effect.
    Hangs,
    /// Bodies about this node are taken and never answered, and have no effect.
    HangsAbout(String),
    /// Calls have their effect and are not answered.
    LosesAnswers,
    /// Calls get this answer, and have no effect.
    Answers(u16, String),
    /// Bodies with more nodes than this are refused with this answer.
    Over(usize, u16, String),
    /// Bodies about this node are refused with this answer.
    Refuses(String, u16, String),
}

impl FakePcs {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub(crate) async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(PcsWorld::default()));
        let routes = Router::new()
            .route("/power-status", post(serve))
            .route("/transitions", get(serve).post(serve))
            .route("/transitions/{id}", get(serve_one).delete(serve_one))
            .with_state(Arc::clone(&world));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, world, serving }
    }

    /// Sets the number of seconds by which the clock of the service is ahead from now on.
    pub(crate) fn set_ahead(&self, seconds: i64) {
        self.world.lock().ahead = seconds;
    }

    /// Answers the next calls for transitions with these ids, in place of their own.
    pub(crate) fn mistake_ids(&self, ids: &[&str]) {
        self.world.lock().mistaken_ids.extend(ids.iter().map(ToString::to_string));
    }

    /// Returns the newest transition.
    pub(crate) fn newest_transition(&self) -> Value {
        self.world.lock().transitions.last().expect("a transition").clone()
    }

    /// Makes the newest transition older by this number of seconds.
    pub(crate) fn age_transition(&self, seconds: i64) {
        let mut world = self.world.lock();
        let time = &mut world.transitions.last_mut().expect("a transition")["createTime"];
        let created = chrono::DateTime::parse_from_rfc3339(time.as_str().expect("a time")).expect("a time");
        *time = (created - chrono::Duration::seconds(seconds)).to_rfc3339().into();
    }

    /// Sets the status of one transition.
    pub(crate) fn set_status_of(&self, id: &str, status: &str) {
        let mut world = self.world.lock();
        let transition = world.transitions.iter_mut().find(|one| one["transitionID"] == id);
        transition.expect("a transition")["transitionStatus"] = status.into();
    }

    /// Returns settings for calling the service.
    pub(crate) fn settings(&self) -> settings::Peer {
        settings::Peer {
            url: self.url.clone(),
            plain_http: true,
            answer_seconds: 1.0,
            total_seconds: 2.0,
            ..settings::Power::default().pcs
        }
    }

    /// Sets the power of nodes, known since `last_updated`; an empty time is left out.
    pub(crate) fn set_power(&self, ids: &[&str], power: &str, last_updated: &str) {
        let mut world = self.world.lock();
        for id in ids {
            let entry = json!({"xname": id, "powerState": power, "managementState": "available",
                "error": null, "supportedPowerTransitions": ["On"], "lastUpdated": last_updated});
            world.nodes.insert((*id).to_owned(), entry);
        }
    }

    /// Sets the whole entry of a node; `None` leaves the node out of answers.
    pub(crate) fn set_entry(&self, id: &str, entry: Option<Value>) {
        let mut world = self.world.lock();
        match entry {
            Some(entry) => world.nodes.insert(id.to_owned(), entry),
            None => world.nodes.remove(id),
        };
    }

    /// Begins or ends a trouble. `kind`: `status`, `create`, `list`, `get` or `abort`.
    pub(crate) fn trouble(&self, kind: &'static str, trouble: Option<PcsTrouble>) {
        let mut world = self.world.lock();
        match trouble {
            Some(trouble) => world.troubles.insert(kind, trouble),
            None => world.troubles.remove(kind),
        };
    }

    /// Sets the status of the tasks of these nodes, each in the newest transition of its node.
    pub(crate) fn set_tasks(&self, ids: &[&str], status: &str, description: &str, error: &str) {
        let mut world = self.world.lock();
        for id in ids {
            let mut newest_first = world.transitions.iter_mut().rev();
            let task = newest_first
                .find_map(|one| one["tasks"].as_array_mut()?.iter_mut().find(|task| task["xname"] == *id));
            let task = task.expect("a task of the node");
            task["taskStatus"] = status.into();
            task["taskStatusDescription"] = description.into();
            if !error.is_empty() {
                task["error"] = error.into();
            }
        }
    }

    /// Sets the status of the newest transition.
    pub(crate) fn set_status(&self, status: &str) {
        self.world.lock().transitions.last_mut().expect("a transition")["transitionStatus"] = status.into();
    }

    /// Ends every transition, with its tasks as they are.
    pub(crate) fn end_all(&self) {
        for transition in &mut self.world.lock().transitions {
            transition["transitionStatus"] = "completed".into();
        }
    }

    /// Completes every transition: each of its nodes has the requested power.
    pub(crate) fn complete_all(&self) {
        for transition in &mut self.world.lock().transitions {
            transition["transitionStatus"] = "completed".into();
            for task in transition["tasks"].as_array_mut().unwrap() {
                task["taskStatus"] = "succeeded".into();
            }
        }
    }

    pub(crate) fn add_transition(&self, transition: Value) {
        self.world.lock().transitions.push(transition);
    }

    /// Lets a transition of another client begin right before the next one that is requested.
    pub(crate) fn add_rival(&self, transition: Value) {
        self.world.lock().rivals.push(transition);
    }

    pub(crate) fn forget_transitions(&self) {
        self.world.lock().transitions.clear();
    }

    /// Returns operation and nodes of every taken transition.
    pub(crate) fn taken(&self) -> Vec<String> {
        let taken = |transition: &Value| {
            let tasks = transition["tasks"].as_array().unwrap().iter();
            let ids: Vec<_> = tasks.map(|task| task["xname"].as_str().unwrap()).collect();
            format!("{} {}", transition["operation"].as_str().unwrap(), ids.join(" "))
        };
        self.world.lock().transitions.iter().map(taken).collect()
    }

    /// Returns the calls so far, each as method and path.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.world.lock().calls.iter().map(|(call, _)| call.clone()).collect()
    }

    /// Returns the number of calls so far whose method and path begin with `call`.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls().iter().filter(|one| one.starts_with(call)).count()
    }

    /// Returns the body of the last call.
    pub(crate) fn last_body(&self) -> Value {
        self.world.lock().calls.last().expect("a call").1.clone()
    }
}

impl Drop for FakePcs {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Shared = State<Arc<Mutex<PcsWorld>>>;

async fn serve(state: Shared, method: Method, uri: Uri, body: Bytes) -> Response {
    serve_one(state, Path(String::new()), method, uri, body).await
}

async fn serve_one(
    State(world): Shared,
    Path(id): Path<String>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let kind = match (&method, uri.path(), id.as_str()) {
        (_, "/power-status", _) => "status",
        (&Method::POST, ..) => "create",
        (&Method::DELETE, ..) => "abort",
        (_, _, "") => "list",
        _ => "get",
    };
    let (trouble, ahead) = {
        let mut world = world.lock();
        world.calls.push((format!("{method} {uri}"), body.clone()));
        if kind == "create" {
            let rivals = std::mem::take(&mut world.rivals);
            world.transitions.extend(rivals);
        }
        (world.troubles.get(kind).cloned(), world.ahead)
    };
    match trouble {
        Some(PcsTrouble::Hangs) => std::future::pending().await,
        Some(PcsTrouble::HangsAbout(node)) if is_about(&body, &node) => std::future::pending().await,
        Some(PcsTrouble::Answers(status, text)) => answer(status, text, ahead),
        Some(PcsTrouble::Over(most, status, text)) if nodes(&body) > most => answer(status, text, ahead),
        Some(PcsTrouble::Refuses(node, status, text)) if is_about(&body, &node) => {
            answer(status, text, ahead)
        }
        Some(PcsTrouble::LosesAnswers) => {
            let _lost = world.lock().answer(kind, &id, &body);
            tokio::time::sleep(Duration::from_secs(60)).await;
            answer(500, String::new(), ahead)
        }
        Some(PcsTrouble::HangsAbout(_) | PcsTrouble::Over(..) | PcsTrouble::Refuses(..)) | None => {
            let (status, value) = world.lock().answer(kind, &id, &body);
            answer(status, value.to_string(), ahead)
        }
    }
}

fn answer(status: u16, text: String, ahead: i64) -> Response {
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    let now = chrono::Utc::now() + chrono::Duration::seconds(ahead);
    let date = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::DATE, date)];
    (StatusCode::from_u16(status).unwrap(), headers, text).into_response()
}

/// Returns whether a body is about the node.
fn is_about(body: &Value, node: &str) -> bool {
    let mut named = body["xname"].as_array().into_iter().flatten();
    let mut located = body["location"].as_array().into_iter().flatten();
    named.any(|id| id == node) || located.any(|location| location["xname"] == node)
}

/// Returns the number of nodes in a body.
fn nodes(body: &Value) -> usize {
    let list = body["xname"].as_array().or(body["location"].as_array());
    list.map_or(0, Vec::len)
}

fn problem(status: u16, detail: &str) -> (u16, Value) {
    (status, json!({"type": "about:blank", "detail": detail, "status": status, "title": "Trouble"}))
}

impl PcsWorld {
    fn answer(&mut self, kind: &str, id: &str, body: &Value) -> (u16, Value) {
        match kind {
            "status" => self.status(body),
            "create" => self.create(body),
            "list" => (200, json!({"transitions": self.transitions.iter().map(listed).collect::<Vec<_>>()})),
            kind => match self.transitions.iter_mut().find(|one| one["transitionID"] == id) {
                None => problem(404, "transition does not exist"),
                Some(one) if kind == "get" => (200, one.clone()),
                Some(one) if one["transitionStatus"] == "completed" => {
                    problem(400, "Transition is already finished and cannot be aborted.")
                }
                Some(one) => {
                    one["transitionStatus"] = "abort-signaled".into();
                    (202, json!({"abortStatus": "Accepted - abort initiated"}))
                }
            },
        }
    }

    fn status(&self, body: &Value) -> (u16, Value) {
        let asked: Vec<_> = body["xname"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let bad: Vec<_> = asked.iter().filter(|id| !id.starts_with('x')).copied().collect();
        if !bad.is_empty() {
            return problem(400, &format!("invalid xnames detected: {}", bad.join(" ")));
        }
        let status: Vec<_> = asked.iter().filter_map(|id| self.nodes.get(*id)).collect();
        (200, json!({"status": status}))
    }

    fn create(&mut self, body: &Value) -> (u16, Value) {
        let id = format!("t-{}", self.transitions.len() + 1);
        let task = |location: &Value| {
            json!({"xname": location["xname"], "taskStatus": "in-progress",
                "taskStatusDescription": "Applying transition"})
        };
        let tasks: Vec<_> = body["location"].as_array().unwrap().iter().map(task).collect();
        let operation = body["operation"].clone();
        let now = (chrono::Utc::now() + chrono::Duration::seconds(self.ahead)).to_rfc3339();
        self.transitions.push(json!({"transitionID": id, "operation": operation, "createTime": now,
            "transitionStatus": "in-progress", "tasks": tasks}));
        let id = self.mistaken_ids.pop_front().unwrap_or(id);
        (200, json!({"transitionID": id, "operation": operation}))
    }
}

/// Returns a transition as it is listed: with the number of its tasks in place of the tasks.
fn listed(transition: &Value) -> Value {
    let mut listed = transition.clone();
    let total = transition["tasks"].as_array().map_or(0, Vec::len);
    listed["taskCounts"] = json!({"total": total});
    listed.as_object_mut().unwrap().remove("tasks");
    listed
}
