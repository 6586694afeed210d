//! The fleet manager beside the real registry, on every kind of database.
//!
//! - `devices`: decisions about devices
//! - `records`: fleets and template versions over gRPC
//! - `statuses`: statuses of devices of fleets, beside the status evaluator
//! - `world`: the service with its surroundings

mod devices;
mod records;
mod statuses;
mod world;
