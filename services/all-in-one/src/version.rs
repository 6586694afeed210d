//! Version of the program: release, commit, and the contracts that it serves.

use std::sync::LazyLock;

/// Commit.
pub(crate) const COMMIT: &str = env!("REVEILLE_COMMIT");

/// Release and commit, in one line.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("REVEILLE_COMMIT"), ")");

/// Release, commit and contracts.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    let contracts = gateway::CONTRACTS.map(|(name, version)| format!("{name} {version}\n")).concat();
    format!("{SHORT}\n{}", contracts.trim_end())
});
