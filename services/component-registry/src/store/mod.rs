//! The registry's tables. Only this module knows SQL.

mod artifacts;
mod components;
mod migration;
mod options;
mod tokens;

pub(crate) use artifacts::forget_unused as forget_unused_artifacts;
pub use components::Components;
pub(crate) use components::create;
pub use migration::Migrator;
pub use options::StoredOptions;
pub use tokens::{BootToken, BootTokens};

#[cfg(test)]
mod tests;
