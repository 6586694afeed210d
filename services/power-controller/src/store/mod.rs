//! The power controller's tables. Only this module knows SQL.

mod migration;
mod power_states;
mod transitions;

pub use migration::Migrator;
pub use power_states::PowerStates;
pub use transitions::Transitions;

#[cfg(test)]
mod tests;
