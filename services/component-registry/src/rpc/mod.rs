//! The registry's gRPC services: parse, call, map.

mod components;
mod inventory;
mod list;
mod options;
mod repeats;
mod reports;
mod scope;
mod staging;
mod written;

pub(crate) use repeats::TimeStampRenewals;
