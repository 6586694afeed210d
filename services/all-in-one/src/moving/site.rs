//! Client of the REST contract from which a backup is read, or to which it is written.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::record::{Object, object};

/// Deadline of a request: twice the deadline of a gateway, because templates are validated against image stores.
const DEADLINE: Duration = Duration::from_secs(60);

/// Components of one page.
pub(crate) const PAGE: usize = 1_000;

/// Header that names the tenant (BOS reference 9.1).
const TENANT: &str = "Cray-Tenant-Name";

/// Client of the contract.
pub(crate) struct RestSite {
    client: reqwest::Client,
    base: String,
}

/// Result of a write, or of its dry run.
#[derive(Debug)]
pub(crate) enum WriteResult {
    /// The write succeeded, with the stored value.
    Done(Value),
    /// The request was refused, and nothing was written.
    Refused(String),
}

/// Whether writes are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Writes are executed.
    Write,
    /// Writes are validated by the service, but not stored.
    DryRun,
}

impl WriteMode {
    /// Returns the path of a write of `what`. The path of a dry run exists only in Reveille.
    fn path(self, what: &str) -> String {
        match self {
            Self::Write => format!("/v2/{what}"),
            Self::DryRun => format!("/v2/dryrun/{what}"),
        }
    }
}

impl RestSite {
    /// Creates a client of the contract at `url`, with or without its `/v2`.
    ///
    /// # Errors
    /// When the operating system gives no random numbers or the like.
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let client =
            reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().context("HTTP client")?;
        let url = url.trim_end_matches('/');
        Ok(Self { client, base: url.strip_suffix("/v2").unwrap_or(url).to_owned() })
    }

    /// Returns the options in force.
    ///
    /// # Errors
    /// As [`RestSite::get`].
    pub(crate) async fn options(&self) -> anyhow::Result<Object> {
        object(self.get("/v2/options").await?).map_err(|defect| anyhow::anyhow!("/v2/options: {defect}"))
    }

    /// Returns every session template of every tenant.
    ///
    /// # Errors
    /// As [`RestSite::get`].
    pub(crate) async fn templates(&self) -> anyhow::Result<Vec<Value>> {
        self.list("/v2/sessiontemplates").await
    }

    /// Returns the first components after the one called `after`, in the order of their ids; a short page is the last
    /// one.
    ///
    /// # Errors
    /// As [`RestSite::get`].
    pub(crate) async fn components_after(&self, after: Option<&str>) -> anyhow::Result<Vec<Value>> {
        let mut query = vec![("page_size", PAGE.to_string())];
        query.extend(after.map(|id| ("start_after_id", id.to_owned())));
        let request = self.request(Method::GET, "/v2/components").query(&query);
        array("/v2/components", self.answered(request).await?)
    }

    /// Changes options, all or none.
    ///
    /// # Errors
    /// When the answer is neither success nor refusal.
    pub(crate) async fn patch_options(
        &self,
        changes: &Object,
        mode: WriteMode,
    ) -> anyhow::Result<WriteResult> {
        written(self.request(Method::PATCH, &mode.path("options")).json(changes)).await
    }

    /// Stores a template.
    ///
    /// # Errors
    /// As [`RestSite::patch_options`].
    pub(crate) async fn put_template(
        &self,
        tenant: &str,
        name: &str,
        body: &Object,
        mode: WriteMode,
    ) -> anyhow::Result<WriteResult> {
        let path = mode.path(&format!("sessiontemplates/{name}"));
        let request = self.request(Method::PUT, &path).json(body);
        let request = if tenant.is_empty() { request } else { request.header(TENANT, tenant) };
        written(request).await
    }

    /// Stores components, all or none.
    ///
    /// # Errors
    /// As [`RestSite::patch_options`].
    pub(crate) async fn put_components(
        &self,
        records: &[&Object],
        mode: WriteMode,
    ) -> anyhow::Result<WriteResult> {
        written(self.request(Method::PUT, &mode.path("components")).json(&json!(records))).await
    }

    async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        array(path, self.get(path).await?)
    }

    /// Returns the document at `path`.
    ///
    /// # Errors
    /// When the peer does not answer, or without success.
    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.answered(self.request(Method::GET, path)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    async fn answered(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        match answer(request).await? {
            (asked, status, _, body) if status.is_success() => {
                serde_json::from_str(&body).with_context(|| format!("{asked}: the answer is no JSON"))
            }
            (asked, status, reason, _) => bail!("{asked}: {status}: {reason}"),
        }
    }
}

fn array(path: &str, value: Value) -> anyhow::Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        _ => bail!("{path}: the answer is no array"),
    }
}

async fn written(request: RequestBuilder) -> anyhow::Result<WriteResult> {
    match answer(request).await? {
        (asked, status, _, body) if status.is_success() => {
            let stored = serde_json::from_str(&body);
            stored.map(WriteResult::Done).with_context(|| format!("{asked}: the answer is no JSON"))
        }
        (asked, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, ..) => {
            bail!("{asked}: there is no such path; an import needs a Reveille of this release")
        }
        (_, status, reason, _) if status.is_client_error() => Ok(WriteResult::Refused(reason)),
        (asked, status, reason, _) => bail!("{asked}: {status}: {reason}"),
    }
}

/// Sends a request, and returns its description, the status, the reason of a failure, and the body.
async fn answer(request: RequestBuilder) -> anyhow::Result<(String, StatusCode, String, String)> {
    let (client, request) = request.build_split();
    let request = request.context("request")?;
    let asked = format!("{} {}", request.method(), request.url());
    let response =
        client.execute(request).await.map_err(reqwest::Error::without_url).with_context(|| asked.clone())?;
    let status = response.status();
    let body = response.text().await.map_err(reqwest::Error::without_url).with_context(|| asked.clone())?;
    let reason = if status.is_success() { String::new() } else { reason(&body) };
    Ok((asked, status, reason, body))
}

/// Returns the text of a problem document, or the beginning of any other body.
fn reason(body: &str) -> String {
    let document = serde_json::from_str::<Value>(body).unwrap_or_default();
    let detail = document.get("detail").and_then(Value::as_str);
    detail.map_or_else(|| body.chars().take(200).collect(), str::to_owned)
}
