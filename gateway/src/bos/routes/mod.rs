//! The paths of the face, and the service that each of them calls. `contract` lists them all.

use axum::{Router, routing::get};

use super::{face::BosFace, paths::PREFIX};

mod boot_scripts;
mod components;
mod contract;
mod notifications;
mod options;
mod service;
mod sessions;
mod staging;
mod templates;

pub(crate) use contract::endpoints;
pub(crate) use service::RELEASE;

/// The prefix without a slash at its end, as people type it. An answer costs nothing and needs no place.
pub(crate) fn unguarded() -> Router<BosFace> {
    Router::new().route(PREFIX, get(service::versions))
}
