//! The tables of this service. Only this module knows SQL.

mod migration;
mod sessions;
mod templates;

use std::fmt::Display;

use chassis::resource::Resource;

pub(crate) use migration::Migrator;
pub(crate) use sessions::Sessions;
pub(crate) use templates::Templates;

/// The record, unless its row cannot be read: that one is left aside for a person to look at, because the
/// sessions of everybody else must go on.
fn readable<R: Resource, E: Display>(key: &str, record: Result<R, E>) -> Option<R> {
    record
        .inspect_err(|error| tracing::error!(kind = R::KIND, key, %error, "a stored row cannot be read"))
        .ok()
}
