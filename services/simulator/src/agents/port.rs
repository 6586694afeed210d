//! Calls of an agent to the port of agents.

use std::time::Duration;

use reqwest::{Certificate, Client, Identity, Method, Response, StatusCode};
use serde_json::Value;

/// Longest wait for an answer, which a poll may use up (device reference 3.4).
const DEADLINE: Duration = Duration::from_secs(4 * 60);

/// Address of the port, and the files with which machines are delivered.
#[derive(Debug)]
pub(super) struct PortFiles {
    pub(super) url: String,
    /// Authority of the port's certificate, in PEM.
    pub(super) authority: Vec<u8>,
    /// Certificate with which agents enrol and its key, in PEM.
    pub(super) enrolling: Vec<u8>,
}

/// Connection to the port with one certificate.
pub(super) struct AgentPort {
    client: Client,
    base: String,
}

/// Answer of the port.
#[derive(Debug)]
pub(super) enum PortAnswer {
    /// The document that was asked for.
    Document(Value),
    /// No change of the document.
    Nothing,
    /// The device, or the request, is unknown.
    Unknown,
    /// The certificate counts no longer.
    Revoked,
    /// Refusal, or no answer at all: the call is repeated later.
    Failed(String),
}

impl PortFiles {
    /// Returns a connection with a certificate and its key, in PEM.
    pub(super) fn connect(&self, identity: &[u8]) -> anyhow::Result<AgentPort> {
        // Devices reach the port without a proxy.
        let client = Client::builder().no_proxy().timeout(DEADLINE);
        let client = client.tls_certs_only(Certificate::from_pem_bundle(&self.authority)?);
        let client = client.identity(Identity::from_pem(identity)?).build()?;
        Ok(AgentPort { client, base: format!("{}/api/v1", self.url.trim_end_matches('/')) })
    }
}

impl AgentPort {
    pub(super) async fn get(&self, path: &str) -> PortAnswer {
        self.call(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> PortAnswer {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> PortAnswer {
        self.call(Method::PUT, path, Some(body)).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> PortAnswer {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        match request.send().await {
            Ok(response) => answer(response).await,
            Err(error) => PortAnswer::Failed(error.to_string()),
        }
    }
}

async fn answer(response: Response) -> PortAnswer {
    let status = response.status();
    let text = match response.text().await {
        Ok(text) => text,
        Err(error) => return PortAnswer::Failed(error.to_string()),
    };
    match status {
        StatusCode::OK | StatusCode::CREATED => match serde_json::from_str(&text) {
            Ok(document) => PortAnswer::Document(document),
            Err(error) => PortAnswer::Failed(error.to_string()),
        },
        // Both mean that there is nothing new (device reference 3.4).
        StatusCode::NO_CONTENT | StatusCode::CONFLICT => PortAnswer::Nothing,
        StatusCode::NOT_FOUND => PortAnswer::Unknown,
        StatusCode::UNAUTHORIZED => PortAnswer::Revoked,
        other => PortAnswer::Failed(format!("{other}: {text}")),
    }
}
