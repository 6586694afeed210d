//! The REST contract as a client uses it.

use std::time::Duration;

use reqwest::{Certificate, ClientBuilder, Method, StatusCode};
use serde_json::{Value, json};

use crate::{eventually, eventually_shown};

/// Longer than the gateway takes for any request, and so only a gateway that hangs takes as long.
const LONGEST: Duration = Duration::from_secs(150);

/// A client of one gateway.
#[derive(Clone)]
pub struct Bos {
    client: reqwest::Client,
    url: String,
    /// Tenant in the header; `None`: the administrator.
    tenant: Option<String>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct BosAnswer {
    /// HTTP status.
    pub status: StatusCode,
    /// Media type; empty: none.
    pub content_type: String,
    /// Body as JSON; null if it is empty.
    pub body: Value,
}

impl Bos {
    /// A client of the gateway at `url`.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self::over(reqwest::Client::builder(), url)
    }

    /// A client of the encrypted gateway at `url` that trusts `authorities`, certificates as PEM.
    ///
    /// # Panics
    /// When there is no certificate in `authorities`.
    #[must_use]
    pub fn trusting(authorities: &str, url: &str) -> Self {
        let authorities = Certificate::from_pem_bundle(authorities.as_bytes()).expect("certificates");
        Self::over(reqwest::Client::builder().tls_certs_only(authorities), url)
    }

    fn over(client: ClientBuilder, url: &str) -> Self {
        let client = client.timeout(LONGEST).build().expect("a client");
        Self { client, url: url.to_owned(), tenant: None }
    }

    /// A client on behalf of a tenant.
    #[must_use]
    pub fn of_tenant(&self, name: &str) -> Self {
        Self { tenant: Some(name.to_owned()), ..self.clone() }
    }

    /// Address of the gateway.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the gateway cannot be reached or does not answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<BosAnswer, reqwest::Error> {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = match &self.tenant {
            Some(tenant) => request.header("Cray-Tenant-Name", tenant),
            None => request,
        };
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await?;
        let status = response.status();
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let text = response.text().await?;
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Ok(BosAnswer { status, content_type, body })
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When the gateway cannot be reached.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> BosAnswer {
        self.try_send(method, path, body).await.expect("an answer")
    }

    /// Reads the resource at `path`.
    ///
    /// # Panics
    /// When the answer is not a success.
    pub async fn get(&self, path: &str) -> Value {
        self.expect(Method::GET, path, None).await
    }

    /// Sends a request that must succeed.
    ///
    /// # Panics
    /// When the answer is not a success.
    pub async fn expect(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let answer = self.send(method.clone(), path, body).await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
        answer.body
    }

    /// Waits until every part behind the gateway can do its work.
    pub async fn ready(&self) {
        let ready = async || {
            let answer = self.try_send(Method::GET, "/readyz", None).await.map_err(|e| format!("{e:?}"))?;
            if answer.status.is_success() { Ok(()) } else { Err(answer.body.to_string()) }
        };
        eventually_shown("a ready gateway", ready).await;
    }

    /// Waits until `nodes` components exist.
    pub async fn discovered(&self, nodes: usize) {
        let all_there = async || {
            let answer = self.try_send(Method::GET, "/v2/components", None).await.ok()?;
            (answer.body.as_array().map_or(0, Vec::len) >= nodes).then_some(())
        };
        eventually("discovered components", all_there).await;
    }

    /// Reads a component.
    ///
    /// # Panics
    /// When there is no such component.
    pub async fn component(&self, id: &str) -> Value {
        self.get(&format!("/v2/components/{id}")).await
    }

    /// Changes options.
    ///
    /// # Panics
    /// When they are refused.
    pub async fn options(&self, patch: &Value) {
        self.expect(Method::PATCH, "/v2/options", Some(patch)).await;
    }

    /// Stores a template that boots every Compute node.
    pub async fn template(&self, name: &str) {
        self.template_with(name, |_| {}).await;
    }

    /// Stores a template after `change` has edited it.
    ///
    /// # Panics
    /// When the template is refused.
    pub async fn template_with(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut template = json!({
            "enable_cfs": true,
            "cfs": {"configuration": "compute-2025.11"},
            "boot_sets": {"compute": {
                "type": "s3",
                "path": format!("s3://boot-images/{name}/manifest.json"),
                "node_roles_groups": ["Compute"],
                "rootfs_provider": "sbps",
                "rootfs_provider_passthrough": "sbps:v1:iqn.2023-06.example:_sbps._tcp.example.org:300",
            }},
        });
        change(&mut template);
        self.expect(Method::PUT, &format!("/v2/sessiontemplates/{name}"), Some(&template)).await;
    }

    /// Creates a session and returns its name.
    ///
    /// # Panics
    /// When the session is refused.
    pub async fn session(&self, template: &str, operation: &str) -> String {
        self.session_with(&json!({"template_name": template, "operation": operation})).await
    }

    /// Creates a session for some of the nodes of a template and returns its name.
    ///
    /// # Panics
    /// When the session is refused.
    pub async fn session_of(&self, template: &str, operation: &str, ids: &[String]) -> String {
        let limit = ids.join(",");
        self.session_with(&json!({"template_name": template, "operation": operation, "limit": limit})).await
    }

    async fn session_with(&self, wish: &Value) -> String {
        let session = self.expect(Method::POST, "/v2/sessions", Some(wish)).await;
        session["name"].as_str().expect("a name").to_owned()
    }

    /// Waits until a session is complete and returns its record.
    pub async fn complete(&self, session: &str) -> Value {
        let complete = async || {
            let path = format!("/v2/sessions/{session}");
            let answer = self.try_send(Method::GET, &path, None).await.map_err(|e| format!("{e:?}"))?;
            if answer.body["status"]["status"] == "complete" {
                return Ok(answer.body);
            }
            let status = self.try_send(Method::GET, &format!("{path}/status"), None).await;
            Err(format!("{} {:?}", answer.body, status.map(|answer| answer.body)))
        };
        eventually_shown(&format!("session {session} to complete"), complete).await
    }
}
