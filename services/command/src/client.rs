//! Client of a gateway's REST API.

use std::{path::PathBuf, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    Certificate, Client, Method, StatusCode,
    header::{HeaderMap, WARNING},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{error::CommandError, terminal::note};

/// Deadline of a request: twice the gateway's own, because templates are checked against image stores.
const DEADLINE: Duration = Duration::from_secs(60);

/// Prefix of the paths of BOS.
const BOS: &str = "/apis/bos/v2";

/// Header that names the tenant (BOS reference 9.1).
const TENANT: &str = "Cray-Tenant-Name";

/// Header of an answer with the id of its request.
const REQUEST_ID: &str = "x-request-id";

/// Most characters of an answer that is no problem document.
const LONGEST_DETAIL: usize = 200;

/// Components of one page.
const PAGE: usize = 1_000;

/// Ids of one request, which fit into its address.
const IDS: usize = 200;

/// Gateway to talk to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GatewayTarget {
    pub url: String,
    pub ca_file: Option<PathBuf>,
    pub token: Option<String>,
    pub tenant: Option<String>,
}

/// Client of one gateway.
pub(crate) struct GatewayClient {
    client: Client,
    target: GatewayTarget,
}

/// Answer of a gateway.
struct GatewayAnswer {
    asked: String,
    status: StatusCode,
    request_id: String,
    body: String,
}

impl GatewayClient {
    /// Creates a client of `target`.
    ///
    /// # Errors
    /// The file with the certificates of the authority cannot be used.
    pub(crate) fn new(target: GatewayTarget) -> Result<Self, CommandError> {
        // Addresses of gateways are inside the site, where proxies of the environment do not lead.
        let mut builder = Client::builder()
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .timeout(DEADLINE)
            .no_proxy();
        if let Some(path) = &target.ca_file {
            let file = |reason: String| CommandError::File { path: path.clone(), reason };
            let pem = std::fs::read(path).map_err(|error| file(error.to_string()))?;
            let authorities = Certificate::from_pem_bundle(&pem).map_err(|error| file(error.to_string()))?;
            if authorities.is_empty() {
                return Err(file("holds no certificate".to_owned()));
            }
            builder = builder.tls_certs_only(authorities);
        }
        let unusable = |error| CommandError::Usage {
            what: format!("TLS cannot be set up: {}", innermost(&error)),
            next: "--ca-file names the certificates of the authority",
        };
        Ok(Self { client: builder.build().map_err(unusable)?, target })
    }

    /// Returns the address of the gateway.
    pub(crate) fn url(&self) -> &str {
        &self.target.url
    }

    /// Returns the document at a path of BOS.
    ///
    /// # Errors
    /// No answer, a refusal, or an answer without JSON.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, CommandError> {
        self.answer(Method::GET, &format!("{BOS}{path}"), query, None).await?.document()
    }

    /// Returns the document at a path of Reveille's own.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn get_own(&self, path: &str, query: &[(&str, String)]) -> Result<Value, CommandError> {
        self.answer(Method::GET, path, query, None).await?.document()
    }

    /// Asks for an action at a path of Reveille's own.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn act(&self, path: &str, query: &[(&str, String)]) -> Result<Value, CommandError> {
        self.answer(Method::POST, path, query, None).await?.document()
    }

    /// Sends a document to a path of BOS.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, CommandError> {
        self.answer(method, &format!("{BOS}{path}"), &[], Some(body)).await?.document()
    }

    /// Sends a document to a path of Reveille's own.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn send_own(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, CommandError> {
        self.answer(method, path, &[], Some(body)).await?.document()
    }

    /// Deletes the record at a path of BOS.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn delete(&self, path: &str) -> Result<(), CommandError> {
        self.answer(Method::DELETE, &format!("{BOS}{path}"), &[], None).await?.succeeded().map(drop)
    }

    /// Returns whether the gateway is ready, and the state of each part that it needs.
    ///
    /// # Errors
    /// No answer, or an answer without JSON.
    pub(crate) async fn readiness(&self) -> Result<(bool, Value), CommandError> {
        let answer = self.answer(Method::GET, "/readyz", &[], None).await?;
        match answer.status {
            StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE => {
                Ok((answer.status == StatusCode::OK, answer.json()?))
            }
            _ => answer.document().map(|parts| (true, parts)),
        }
    }

    /// Returns every component that the parameters select, page by page.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn components(&self, query: &[(&str, String)]) -> Result<Vec<Value>, CommandError> {
        let mut all = Vec::new();
        loop {
            let mut page_query = query.to_vec();
            page_query.push(("page_size", PAGE.to_string()));
            let last = all.last().and_then(|component: &Value| component["id"].as_str());
            page_query.extend(last.map(|id| ("start_after_id", id.to_owned())));
            let page: Vec<Value> = parsed("/components", self.get("/components", &page_query).await?)?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Returns the components with these ids that the parameters select, as far as they exist.
    ///
    /// # Errors
    /// As [`GatewayClient::get`].
    pub(crate) async fn components_named(
        &self,
        ids: &[&str],
        query: &[(&str, String)],
    ) -> Result<Vec<Value>, CommandError> {
        let mut all = Vec::new();
        for ids in ids.chunks(IDS) {
            let mut query = query.to_vec();
            query.push(("ids", ids.join(",")));
            all.extend(self.components(&query).await?);
        }
        Ok(all)
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<GatewayAnswer, CommandError> {
        let asked = format!("{method} {path}");
        let mut request = self.client.request(method, format!("{}{path}", self.target.url)).query(query);
        if let Some(token) = &self.target.token {
            request = request.bearer_auth(token);
        }
        if let Some(tenant) = &self.target.tenant {
            request = request.header(TENANT, tenant);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let unreachable =
            |error| CommandError::Unreachable { url: self.target.url.clone(), reason: innermost(&error) };
        let response = request.send().await.map_err(unreachable)?;
        warnings(response.headers()).for_each(|text| note(&format!("warning: {text}")));
        let status = response.status();
        let request_id = response.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let request_id = request_id.unwrap_or_default().to_owned();
        let body = response.text().await.map_err(unreachable)?;
        Ok(GatewayAnswer { asked, status, request_id, body })
    }
}

impl GatewayAnswer {
    fn succeeded(self) -> Result<Self, CommandError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let document = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        let detail = document.get("detail").and_then(Value::as_str);
        let detail = detail.map_or_else(|| self.body.chars().take(LONGEST_DETAIL).collect(), str::to_owned);
        let (asked, status, request_id) = (self.asked, self.status.as_u16(), self.request_id);
        Err(CommandError::Refused { asked, status, detail, request_id })
    }

    fn document(self) -> Result<Value, CommandError> {
        self.succeeded()?.json()
    }

    fn json(&self) -> Result<Value, CommandError> {
        let unreadable = |error: serde_json::Error| CommandError::Unreadable {
            asked: self.asked.clone(),
            reason: error.to_string(),
        };
        serde_json::from_str(&self.body).map_err(unreadable)
    }
}

/// Returns the texts of an answer's warnings.
fn warnings(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers.get_all(WARNING).iter().filter_map(|value| {
        let (_, quoted) = value.to_str().ok()?.split_once('"')?;
        Some(quoted.strip_suffix('"')?.replace("\\\"", "\"").replace("\\\\", "\\"))
    })
}

/// Reads the form of a record from a document.
///
/// # Errors
/// The document, which came from the path `asked`, has another form.
pub(crate) fn parsed<T: DeserializeOwned>(asked: &str, document: Value) -> Result<T, CommandError> {
    let unreadable = |error: serde_json::Error| CommandError::Unreadable {
        asked: asked.to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_value(document).map_err(unreadable)
}

/// Replaces the refusal of a path without a record by an error that names the record.
pub(crate) fn named(kind: &'static str, name: &str) -> impl FnOnce(CommandError) -> CommandError {
    move |error| match error {
        CommandError::Refused { status: 404, .. } => CommandError::Missing { kind, name: name.to_owned() },
        other => other,
    }
}

/// Returns a name as a segment of a path.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// Returns the text of the innermost cause, which says most to people.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
