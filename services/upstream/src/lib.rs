//! Client for the HTTP APIs of other systems.
//!
//! A [`Peer`] is one system at one address. A peer handles the needs of every call, so that drivers know only paths
//! and bodies: deadlines, a limit of the answer's size, TLS, credentials, a circuit breaker, and counters. A peer
//! never retries a call: the loops of the services retry, and no other layer does. (A call that was refused because
//! its token had expired is sent again with the next token.)
//!
//! A [`PeerGroup`] is many such systems with the same settings. [`machine`] is for sites that list systems and nodes
//! in a file.
//!
//! - `peer`, `calls`: making a call, within the slots and circuits of its peer; `group`, `settings`: its settings
//! - `first_call`: calls at the start, before work needs an answer
//! - `base`, `client`, `wire`, `late_check`, `exchange`, `budget`: sending a call, and classifying its answer
//! - `keyring`, `credentials`, `grant`, `secret`: credentials of a peer
//! - `breaker`, `circuit`, `circuits`, `outage`, `meter`: health of a peer and metrics
//! - `error_text`: error texts of a peer, made fit for records
//!
//! This crate knows no particular system.

mod base;
mod breaker;
mod budget;
mod calls;
mod circuit;
mod circuits;
mod client;
mod credentials;
mod error_text;
mod exchange;
mod failure;
mod first_call;
mod grant;
mod group;
mod keyring;
mod late_check;
pub mod machine;
mod meter;
mod outage;
mod peer;
mod peer_error;
mod request;
mod secret;
mod settings;
mod wire;

pub use credentials::{ClientGrant, CredentialUse, Credentials};
pub use failure::{Failure, FailureKind};
pub use first_call::{FirstCall, make_first_calls};
pub use group::PeerGroup;
pub use peer::Peer;
pub use peer_error::PeerError;
pub use request::{Answer, Request};
pub use secret::SecretText;
