//! The upstreams: where boot data go, who configures nodes, who projects images.
//!
//! A driver alone knows how its upstream is called. Every call here sets or reads a state and may be repeated
//! without harm, so drivers call once and those who want something try again.

pub(crate) mod boot_parameters;
mod bss;
pub(crate) mod built_in;
mod cfs;
pub(crate) mod configuration;
pub(crate) mod images;
mod simulated;

use anyhow::Context as _;
use chassis::settings;
use http::StatusCode;

use ::upstream::{CredentialUse, Peer};
pub(crate) use ::upstream::{Failure, FailureKind};

/// The system called `name`, whose settings are in `section`.
fn peer(name: &str, section: &str, settings: &settings::Peer) -> anyhow::Result<Peer> {
    let peer = Peer::new(name, settings).with_context(|| section.to_owned())?;
    peer.check_credentials(section, CredentialUse::Header);
    Ok(peer)
}

/// A failure that the answer of `peer` shows only to those who know what it should have been.
fn malformed(peer: &Peer, what: &str) -> Failure {
    let text = format!("{} at {}: {what}", peer.name(), peer.url());
    Failure { kind: FailureKind::Ambiguous, status: None, text }
}

/// The failure of a call whose path names no item: a path that is not there says nothing about the items, but
/// that the peer's URL is wrong or something else answers in its place.
fn of_a_list(failure: Failure) -> Failure {
    let lost = failure.status == Some(StatusCode::NOT_FOUND) && failure.kind == FailureKind::Refused;
    if lost { Failure { kind: FailureKind::Denied, ..failure } } else { failure }
}
