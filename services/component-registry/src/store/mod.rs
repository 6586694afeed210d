//! Tables of the registry. No other module knows SQL.

mod artifacts;
mod components;
mod migration;
mod options;
mod tokens;
mod unused_artifacts;

pub use components::ComponentTable;
pub(crate) use components::create;
pub use migration::Migrator;
pub use options::StoredOptions;
pub use tokens::{BootToken, BootTokens};
pub(crate) use unused_artifacts::delete_unused_artifacts;

#[cfg(test)]
mod tests;
