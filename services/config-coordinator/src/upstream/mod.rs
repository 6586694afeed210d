//! The upstreams: for boot data, for the configuration of nodes, for the projection of images.
//!
//! Only a driver knows how its upstream is called. Every call here sets or reads a state and may be repeated without
//! harm, so drivers call once and the callers retry.

pub(crate) mod boot_parameters;
pub(crate) mod configuration;
pub(crate) mod images;
mod simulated;

use anyhow::Context as _;
use chassis::settings;
use http::StatusCode;

use ::upstream::{CredentialUse, Peer};
pub(crate) use ::upstream::{Failure, FailureKind};

/// Returns the peer called `name`, with the settings in `section`.
fn peer(name: &str, section: &str, settings: &settings::Peer) -> anyhow::Result<Peer> {
    let peer = Peer::new(name, settings).with_context(|| section.to_owned())?;
    peer.check_credentials(section, CredentialUse::Header);
    Ok(peer)
}

/// Returns the failure of an answer of `peer` that is successful on the wire, but lacks its contents.
fn malformed(peer: &Peer, what: &str) -> Failure {
    let text = format!("{} at {}: {what}", peer.name(), peer.url());
    Failure { kind: FailureKind::Ambiguous, status: None, text }
}

/// Returns the failure of a call whose path names no item: a path that is not found says nothing about the items, but
/// that the peer's URL is wrong or another server answers in its place.
fn of_a_list(failure: Failure) -> Failure {
    let lost = failure.status == Some(StatusCode::NOT_FOUND) && failure.kind == FailureKind::Refused;
    if lost { Failure { kind: FailureKind::Denied, ..failure } } else { failure }
}
