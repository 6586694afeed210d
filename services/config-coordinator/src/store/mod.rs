//! The config coordinator's tables. Only this module knows SQL.

mod boot_scripts;
mod boot_scripts_migration;
mod configuration_states;
mod migration;
mod preparations;
mod trouble_columns;

pub(crate) use boot_scripts::{BootScript, BootScripts};
pub(crate) use configuration_states::ConfigurationStates;
pub(crate) use migration::Migrator;
pub(crate) use preparations::Preparations;

#[cfg(test)]
mod tests;
