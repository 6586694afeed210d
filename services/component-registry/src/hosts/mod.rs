//! Bare-metal hosts, their companions and secrets: writes of people, reports of parts, and readers of secrets.
//!
//! The rules about one record are pure functions ([`object`], [`edit`]); [`ledgers`] applies them to the newest record
//! in one transaction.
//!
//! - `object`: creation, replacement and deletion of any record; `edit`: hosts; `claims`: companions of a host
//! - `collection`: the deletion of records that go with others
//! - `records`, `documents`, `secrets`, `reports`: gRPC services; `vault`: encryption of values

mod claims;
mod collection;
mod documents;
mod edit;
mod ledgers;
mod object;
mod records;
mod reports;
mod secrets;
mod vault;

pub(crate) use collection::collect;
pub(crate) use ledgers::HostLedgers;
