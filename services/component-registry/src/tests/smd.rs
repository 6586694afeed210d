//! A fake hardware state manager with the JSON of the real one and configurable failures.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    response::Response,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

/// Clones share the server, which serves until the test ends.
#[derive(Clone)]
pub(crate) struct Smd {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    /// Held answers wait for this.
    released: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    components: Vec<Value>,
    groups: Value,
    partitions: Value,
    locked: BTreeSet<String>,
    subscriptions: BTreeMap<i64, Value>,
    trouble: BTreeMap<&'static str, Trouble>,
    calls: Vec<String>,
}

/// Failure of a path.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The answer never begins.
    Silent,
    /// The answer begins and never ends.
    Endless,
    /// The answer has this status.
    Status(u16),
    /// The answer has this body.
    Body(&'static str),
    /// The answer is held until [`Smd::release`].
    Held,
}

impl Smd {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hsm/v2", listener.local_addr().unwrap());
        let state = State { groups: json!([]), partitions: json!([]), ..State::default() };
        let smd = Self { url, state: Arc::new(Mutex::new(state)), released: watch::Sender::new(false) };
        let serving = smd.clone();
        let app = Router::new().fallback(move |request| serving.clone().answer(request));
        tokio::spawn(axum::serve(listener, app).into_future());
        smd
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn settings(&self) -> chassis::settings::Peer {
        let hsm = chassis::Settings::default().inventory.hsm;
        chassis::settings::Peer { url: self.url.clone(), plain_http: true, ..hsm }
    }

    pub(crate) fn lists(&self, components: Value) {
        self.state().components = components.as_array().unwrap().clone();
    }

    pub(crate) fn add_node(&self, id: &str) {
        self.state().components.push(json!({"ID": id, "Type": "Node", "Enabled": true, "NID": 1}));
    }

    pub(crate) fn groups(&self, groups: Value, partitions: Value) {
        let mut state = self.state();
        (state.groups, state.partitions) = (groups, partitions);
    }

    pub(crate) fn lock(&self, id: &str, locked: bool) {
        match locked {
            true => self.state().locked.insert(id.to_owned()),
            false => self.state().locked.remove(id),
        };
    }

    /// Sets the failure of `path`, such as `/groups`.
    pub(crate) fn trouble(&self, path: &'static str, trouble: Trouble) {
        self.state().trouble.insert(path, trouble);
    }

    pub(crate) fn mend(&self) {
        self.state().trouble.clear();
    }

    /// Releases all held answers, and later ones.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }

    /// Calls so far, with method, path and query.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    pub(crate) fn count(&self, call: &str) -> usize {
        self.state().calls.iter().filter(|one| one.starts_with(call)).count()
    }

    pub(crate) fn subscribe(&self, subscription: Value) {
        self.state().subscriptions.insert(subscription["ID"].as_i64().unwrap(), subscription);
    }

    pub(crate) fn subscriptions(&self) -> Vec<Value> {
        self.state().subscriptions.values().cloned().collect()
    }

    async fn answer(self, request: Request) -> Result<Response, Infallible> {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let path = parts.uri.path().strip_prefix("/hsm/v2").unwrap_or_default().to_owned();
        let trouble = {
            let mut state = self.state();
            state.calls.push(format!("{} {}", parts.method, parts.uri.path_and_query().unwrap()));
            state.trouble.get(path.as_str()).cloned()
        };
        let answer = self.state().answer(parts.method.as_str(), &path, &body);
        Ok(match trouble {
            None => answer,
            Some(Trouble::Silent) => std::future::pending().await,
            Some(Trouble::Endless) => {
                let slowly = stream::unfold((), async |()| {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Some((Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
                });
                Response::new(Body::from_stream(slowly))
            }
            Some(Trouble::Status(status)) => {
                let detail = json!({"type": "about:blank", "title": "In trouble", "detail": "on purpose"});
                Response::builder().status(status).body(detail.to_string().into()).unwrap()
            }
            Some(Trouble::Body(body)) => Response::new(body.into()),
            Some(Trouble::Held) => {
                self.released.subscribe().wait_for(|released| *released).await.unwrap();
                answer
            }
        })
    }
}

impl State {
    fn answer(&mut self, method: &str, path: &str, body: &Bytes) -> Response {
        let answer = match (method, path) {
            ("GET", "/State/Components") => json!({"Components": self.components}),
            ("POST", "/State/Components/Query") => {
                let query: Value = serde_json::from_slice(body).unwrap();
                let asked = query["ComponentIDs"].as_array().unwrap();
                let listed: Vec<_> =
                    self.components.iter().filter(|one| asked.contains(&one["ID"])).collect();
                json!({"Components": listed})
            }
            ("GET", "/groups") => self.groups.clone(),
            ("GET", "/partitions") => self.partitions.clone(),
            ("GET", "/locks/status") => {
                let lock =
                    |id| json!({"ID": id, "Locked": true, "Reserved": false, "ReservationDisabled": false});
                json!({"Components": self.locked.iter().map(lock).collect::<Vec<_>>()})
            }
            ("GET", "/Subscriptions/SCN") => {
                json!({"SubscriptionList": self.subscriptions.values().collect::<Vec<_>>()})
            }
            ("POST", "/Subscriptions/SCN") => {
                let mut subscription: Value = serde_json::from_slice(body).unwrap();
                let id = self.subscriptions.keys().last().map_or(1, |last| last + 1);
                subscription["ID"] = id.into();
                self.subscriptions.insert(id, subscription.clone());
                subscription
            }
            ("DELETE", path) => {
                let id: i64 = path.strip_prefix("/Subscriptions/SCN/").unwrap().parse().unwrap();
                self.subscriptions.remove(&id).unwrap();
                json!({"code": 0, "message": "Subscription deleted"})
            }
            _ => return Response::builder().status(404).body(Body::empty()).unwrap(),
        };
        Response::new(answer.to_string().into())
    }
}
