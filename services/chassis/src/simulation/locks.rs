//! Locks of the transactions under way on a disk in memory.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::fence::Shard;

/// What one transaction at a time may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Everything of a kind.
    Kind(&'static str),
    /// The rows of leases. A server has a lock for each of them, and lets more happen at once.
    Leases,
}

/// A transaction that has not ended.
pub(super) struct Open {
    pub(super) start: u64,
    pub(super) lock: Lock,
    /// When something was asked in it last.
    pub(super) active: Instant,
    /// Shards that nobody can take or release before it ends.
    pub(super) shares: BTreeSet<Shard>,
    /// Shards of which nobody knows before it ends whose they are.
    pub(super) takes: BTreeSet<Shard>,
}
