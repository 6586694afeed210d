//! Copies of the records that the component registry owns, with their latest changes: lists of one moment, and watches
//! from a version, need both.

mod cache;
mod follow;
mod record;
mod version;

pub(crate) use cache::{CacheSnapshot, CachedChange, RecordCache, WatchPosition};
pub(crate) use follow::{FollowedKind, follow};
pub(crate) use record::CachedRecord;
pub(crate) use version::{VersionBase, read_version};

#[cfg(test)]
mod tests;
