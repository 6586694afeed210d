//! Locks of the transactions under way on a disk in memory.

use tokio::time::Instant;

/// Object that one transaction at a time may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionLock {
    /// All resources of a kind.
    Kind(&'static str),
    /// The row of the role.
    Role,
}

/// Transaction that has not ended.
pub(super) struct OpenTransaction {
    pub(super) start: u64,
    pub(super) lock: TransactionLock,
    /// Time of the last statement of the transaction.
    pub(super) active: Instant,
    /// Whether no replica can acquire or release the role before the transaction ends.
    pub(super) shares_role: bool,
    /// Whether the transaction changes the holder of the role.
    pub(super) takes_role: bool,
}
