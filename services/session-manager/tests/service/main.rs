//! The session manager with a database of its own and scripted peers.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod acknowledged;
mod catalogue;
mod completion;
mod images;
mod left_out;
mod outages;
mod peers;
mod records;
mod restart;
mod setup;
mod signature;
mod site;
mod staging;
mod store;
mod templates;
mod tenants;
mod world;
