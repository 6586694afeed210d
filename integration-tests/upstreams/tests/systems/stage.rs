//! A running set of systems and a client of them.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use upstreams::{MachinePlan, Service, Upstreams};

/// A running set of systems and a client of them.
pub(crate) struct Stage {
    pub(crate) upstreams: Upstreams,
    client: Client,
}

/// A port of its own.
pub(crate) async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

/// The systems of a plan.
pub(crate) async fn stage(plan: MachinePlan) -> Stage {
    let upstreams = Upstreams::start(plan, listener().await).expect("a plan that can be had");
    Stage { upstreams, client: Client::builder().no_proxy().build().expect("a client") }
}

impl Stage {
    /// Sends a request to a system; `path` follows its base URL.
    pub(crate) async fn send(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Response> {
        let request = self.client.request(method, format!("{}{path}", self.upstreams.url_of(service)));
        let request = request.timeout(Duration::from_secs(20));
        match body {
            Some(body) => request.body(body.to_string()).send().await,
            None => request.send().await,
        }
    }

    /// Status and body of a system's answer; a body that is no JSON is a text.
    pub(crate) async fn ask(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        read(self.send(service, method, path, body).await.expect("an answer")).await
    }

    pub(crate) async fn get(&self, service: Service, path: &str) -> (StatusCode, Value) {
        self.ask(service, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, service: Service, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(service, Method::POST, path, Some(&body)).await
    }

    /// Sends a request to the control API.
    pub(crate) async fn control(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}/control{path}", self.upstreams.url()));
        let request = request.body(body.map_or_else(String::new, |body| body.to_string()));
        read(request.send().await.expect("an answer")).await
    }
}

async fn read(answer: Response) -> (StatusCode, Value) {
    let status = answer.status();
    let text = answer.text().await.expect("a whole answer");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), waiting).await.is_ok(), "not in time: {what}");
}

/// The values of one member of each item of a list.
pub(crate) fn each<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[member].as_str().unwrap_or("nothing")).collect()
}
