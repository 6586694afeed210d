//! REST calls of the demo.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::flags::DemoOperation;

/// Deadline of a request, slightly longer than the gateway's own.
const DEADLINE: Duration = Duration::from_secs(35);

/// Longest start of a mesh. A debug build with a slow disk takes seconds.
const START: Duration = Duration::from_secs(60);

/// Longest time of one watch; the gateway ends it earlier.
const LONGEST_WATCH: Duration = Duration::from_secs(3600);

/// Prefix of the Kubernetes API.
pub(crate) const KUBERNETES: &str = "/kubernetes";

/// Prefix of the contract of Flight Control.
const FLIGHTCTL: &str = "/flightctl/api/v1";

/// A client of the gateway.
pub(crate) struct GatewayClient {
    client: reqwest::Client,
    gateway: String,
}

impl GatewayClient {
    /// Creates a client of the gateway at `gateway`.
    ///
    /// # Errors
    /// When the operating system gives no random numbers or the like.
    pub(crate) fn new(gateway: &str) -> anyhow::Result<Self> {
        // The gateway is in this process, so proxies in the environment do not apply.
        let client =
            reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().context("HTTP client")?;
        Ok(Self { client, gateway: gateway.to_owned() })
    }

    /// Waits until the gateway reports readiness.
    ///
    /// # Errors
    /// When that takes too long; names the parts that are not ready.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        let until = Instant::now() + START;
        loop {
            match self.call(Method::GET, "/readyz", None).await {
                Ok((StatusCode::OK, _)) => return Ok(()),
                Ok((_, answer)) if Instant::now() > until => bail!("the mesh did not get ready: {answer}"),
                Err(error) if Instant::now() > until => return Err(error),
                // Readiness has to be polled: there is no stream before the service is ready.
                Ok(_) | Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Changes options.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn set_options(&self, options: Value) -> anyhow::Result<()> {
        self.done(Method::PATCH, "/apis/bos/v2/options", options).await
    }

    /// Stores a session template.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn put_template(&self, name: &str, body: Map<String, Value>) -> anyhow::Result<()> {
        self.done(Method::PUT, &format!("/apis/bos/v2/sessiontemplates/{name}"), body.into()).await
    }

    /// Creates a session.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn create_session(
        &self,
        name: &str,
        operation: DemoOperation,
        template: &str,
    ) -> anyhow::Result<()> {
        let body = json!({ "name": name, "operation": operation.word(), "template_name": template });
        self.done(Method::POST, "/apis/bos/v2/sessions", body).await
    }

    /// Creates an object of Kubernetes in the collection at `path`.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn create_object(&self, path: &str, object: Value) -> anyhow::Result<()> {
        self.done(Method::POST, &format!("{KUBERNETES}{path}"), object).await
    }

    /// Begins to watch the bare-metal hosts.
    ///
    /// # Errors
    /// The gateway does not answer, or refuses.
    pub(crate) async fn watch_hosts(&self) -> anyhow::Result<HostWatch> {
        let url = format!("{}{KUBERNETES}/apis/metal3.io/v1alpha1/baremetalhosts?watch=true", self.gateway);
        let request = self.client.get(&url).timeout(LONGEST_WATCH);
        let response = request.send().await.and_then(reqwest::Response::error_for_status);
        let response = response.map_err(reqwest::Error::without_url).with_context(|| format!("GET {url}"))?;
        Ok(HostWatch { response, received: Vec::new() })
    }

    /// Returns the names of requests to be enrolled that nobody has approved.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn enrolments_to_approve(&self) -> anyhow::Result<Vec<String>> {
        let path = "/enrollmentrequests?fieldSelector=status.approval.approved%3Dfalse";
        let items = self.items(path).await?;
        let names = items.iter().filter_map(|item| item["metadata"]["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Approves the request of an agent.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn approve_enrolment(&self, name: &str) -> anyhow::Result<()> {
        let path = format!("{FLIGHTCTL}/enrollmentrequests/{name}/approval");
        self.done(Method::PUT, &path, json!({ "approved": true })).await
    }

    /// Creates or replaces a fleet of edge devices.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn put_fleet(&self, name: &str, fleet: Value) -> anyhow::Result<()> {
        self.done(Method::PUT, &format!("{FLIGHTCTL}/fleets/{name}"), fleet).await
    }

    /// Returns the edge devices, a thousand at most.
    ///
    /// # Errors
    /// The gateway's error.
    pub(crate) async fn devices(&self) -> anyhow::Result<Vec<Value>> {
        self.items("/devices").await
    }

    /// Returns the items of a list of the contract of Flight Control.
    async fn items(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (status, mut answer) = self.call(Method::GET, &format!("{FLIGHTCTL}{path}"), None).await?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("GET {path}: {status}: {answer}"),
        }
    }

    async fn done(&self, method: Method, path: &str, body: Value) -> anyhow::Result<()> {
        let (status, answer) = self.call(method.clone(), path, Some(body)).await?;
        if status.is_success() {
            return Ok(());
        }
        let detail = answer.get("detail").or_else(|| answer.get("message")).and_then(Value::as_str);
        let detail = detail.map_or_else(|| answer.to_string(), str::to_owned);
        bail!("{method} {path}: {status}: {detail}")
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let asked = || format!("{method} {}{path}", self.gateway);
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.gateway));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.map_err(reqwest::Error::without_url).with_context(asked)?;
        let status = response.status();
        let answer = response.json().await.map_err(reqwest::Error::without_url).with_context(asked)?;
        Ok((status, answer))
    }
}

/// Watch of the bare-metal hosts: one JSON document a line.
pub(crate) struct HostWatch {
    response: reqwest::Response,
    /// Bytes of lines that are not returned yet.
    received: Vec<u8>,
}

impl HostWatch {
    /// Waits for the next change of a host and returns the host; `None`: the gateway has ended the watch. Cancellation
    /// loses nothing.
    ///
    /// # Errors
    /// The connection breaks, or a line is no JSON.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).context("watch of hosts")?;
                return Ok(Some(event["object"].take()));
            }
            let chunk = self.response.chunk().await.map_err(reqwest::Error::without_url);
            match chunk.context("watch of hosts")? {
                Some(chunk) => self.received.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}
