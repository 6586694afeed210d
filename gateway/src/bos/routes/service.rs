//! Versions and health (BOS reference 2.5).

use std::time::Duration;

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri, header::HOST};
use proto::option::GetOptionsRequest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    bos::paths::PREFIX,
    http::{answer::json, call::answer_within, problem::RequestProblem},
    mesh::{MeshHandle, REGISTRY},
};

/// Release of BOS whose contract is served. Clients adapt their requests to it.
pub(crate) const RELEASE: &str = "2.50.0";

/// Deadline for the answer of the registry. Monitoring asks every few seconds and must learn quickly that there is
/// none.
const HEALTH_DEADLINE: Duration = Duration::from_secs(2);

/// A version of the contract.
// Members are in alphabetical order.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Version")]
pub(super) struct ContractVersion {
    links: Vec<VersionLink>,
    major: &'static str,
    minor: &'static str,
    patch: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename = "Link")]
struct VersionLink {
    href: String,
    rel: &'static str,
}

/// Whether the service and its database can be used.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Health")]
#[expect(non_snake_case, reason = "these are the names on the wire")]
pub(super) struct ServiceHealth {
    apiStatus: &'static str,
    dbStatus: &'static str,
}

/// Shows every version of the contract: one.
pub(super) async fn versions(uri: Uri, headers: HeaderMap) -> Result<Response, RequestProblem> {
    let base = base(&uri, &headers);
    let links = vec![VersionLink { href: format!("{base}/"), rel: "self" }];
    json(StatusCode::OK, &[release(links)])
}

/// Shows the version. The relations look swapped, and clients rely on that.
pub(super) async fn version(uri: Uri, headers: HeaderMap) -> Result<Response, RequestProblem> {
    let base = base(&uri, &headers);
    let own = VersionLink { href: format!("{base}/"), rel: "self" };
    let versions = VersionLink { href: format!("{base}/v2"), rel: "versions" };
    json(StatusCode::OK, &release(vec![own, versions]))
}

fn release(links: Vec<VersionLink>) -> ContractVersion {
    let mut numbers = RELEASE.split('.');
    let mut next = || numbers.next().unwrap_or_default();
    ContractVersion { links, major: next(), minor: next(), patch: next() }
}

/// Returns the address at which the client found the service. A request that a proxy forwarded came through the prefix,
/// even if the proxy removed it; the path itself does not show that (BOS reference 2.5), and links without the prefix
/// work for clients that reached the gateway directly.
fn base(uri: &Uri, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").unwrap_or("http");
    let host = text(HOST.as_str()).or_else(|| uri.host()).unwrap_or("localhost");
    let forwarded = headers.contains_key("x-forwarded-for");
    format!("{scheme}://{host}{}", if forwarded { PREFIX } else { "" })
}

/// Shows whether the registry answers, which keeps the contract's oldest database. The status is always 200; monitoring
/// reads the body.
pub(super) async fn health(State(mesh): State<MeshHandle>) -> Result<Response, RequestProblem> {
    let mut options = mesh.options.clone();
    let answer = answer_within(HEALTH_DEADLINE, REGISTRY, options.get_options(GetOptionsRequest {}));
    let database = if answer.await.is_ok() { "ok" } else { "not_available" };
    json(StatusCode::OK, &ServiceHealth { apiStatus: "ok", dbStatus: database })
}
