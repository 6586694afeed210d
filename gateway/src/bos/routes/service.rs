//! Versions and health (BOS reference 2.5).

use std::time::Duration;

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri, header::HOST};
use proto::option::GetOptionsRequest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    bos::paths::PREFIX,
    http::{answer::json, call::answer_within, problem::Problem},
    mesh::{Mesh, REGISTRY},
};

/// The release of BOS whose contract is served. Clients choose what to send by it.
const RELEASE: [&str; 3] = ["2", "50", "0"];

/// Monitoring asks every few seconds and must learn quickly that the registry does not answer.
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

/// Every version there is: one.
pub(super) async fn versions(uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let base = base(&uri, &headers);
    let links = vec![VersionLink { href: format!("{base}/"), rel: "self" }];
    json(StatusCode::OK, &[release(links)])
}

/// The version. The relations look swapped; that is what clients know.
pub(super) async fn version(uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let base = base(&uri, &headers);
    let own = VersionLink { href: format!("{base}/"), rel: "self" };
    let versions = VersionLink { href: format!("{base}/v2"), rel: "versions" };
    json(StatusCode::OK, &release(vec![own, versions]))
}

fn release(links: Vec<VersionLink>) -> ContractVersion {
    let [major, minor, patch] = RELEASE;
    ContractVersion { links, major, minor, patch }
}

/// Where the client found the service. One that was forwarded by a proxy came through the prefix, even when
/// the proxy took it off; the path itself says nothing (BOS reference 2.5), and links without the prefix work
/// for whoever reached the gateway directly.
fn base(uri: &Uri, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").unwrap_or("http");
    let host = text(HOST.as_str()).or_else(|| uri.host()).unwrap_or("localhost");
    let forwarded = headers.contains_key("x-forwarded-for");
    format!("{scheme}://{host}{}", if forwarded { PREFIX } else { "" })
}

/// Whether the service behind the contract's oldest database answers. Always 200: who asks reads the body.
pub(super) async fn health(State(mesh): State<Mesh>) -> Result<Response, Problem> {
    let mut options = mesh.options.clone();
    let answer = answer_within(HEALTH_DEADLINE, REGISTRY, options.get_options(GetOptionsRequest {}));
    let database = if answer.await.is_ok() { "ok" } else { "not_available" };
    json(StatusCode::OK, &ServiceHealth { apiStatus: "ok", dbStatus: database })
}
