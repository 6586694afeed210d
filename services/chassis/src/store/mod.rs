//! State that outlives a process: the database of a part, hints between its replicas, fencing tokens, and durable
//! collections that can be watched.

pub mod backup;
pub mod database;
#[cfg(feature = "simulation")]
pub mod disk;
pub(crate) mod fence;
pub(crate) mod hints;
pub mod ledger;
pub mod resource;
