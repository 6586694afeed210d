//! The session manager beside the real registry, with a database of its own and played upstreams.
//!
//! - `setup`, `completion`, `restart`: the life of a session; `staging`: sessions that only stage
//! - `templates`, `records`: what is stored and refused; `acknowledged`: what a request sees of earlier writes
//! - `steering`: results, cancellation, retry
//! - `plans`: what a session would do, and sessions that are bound to it
//! - `left_out`, `tenants`, `outages`: nodes that a session does not take, and upstreams that do not answer
//! - `images`, `catalogue`, `signature`: reading images, without the service
//! - `world`: the service with its surroundings, of which `fleet`, `power`, `site` and `store` are played

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod acknowledged;
mod catalogue;
mod completion;
mod fleet;
mod guard;
mod images;
mod left_out;
mod outages;
mod pausing;
mod plans;
mod power;
mod records;
mod restart;
mod rolling;
mod setup;
mod signature;
mod site;
mod staging;
mod steering;
mod store;
mod templates;
mod tenants;
mod world;
