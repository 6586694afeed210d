//! How the HTTP APIs of other systems are called.
//!
//! A [`Peer`] is one system at one address. It sees to what every call needs, so that drivers only know paths
//! and bodies: deadlines that apply, a limit of what is read, TLS, credentials, a gate that keeps calls away
//! from a system in trouble, and counters. It never repeats a call: those who want something are asked again
//! by their own loops, the one place where that is done. (A call that a peer did not take because a token had
//! ended is not repeated but made: with the next token.)
//!
//! A [`Family`] is many such systems with the same settings. [`machine`] is for sites where systems and nodes are
//! listed in a file.
//!
//! - `base`, `client`, `wire`, `last_look`, `exchange`, `room`: how a call gets to the peer, and what its answer means
//! - `keyring`, `credentials`, `grant`, `secret`: who we are to it
//! - `gate`, `lane`, `outage`, `meter`: what follows from how calls go
//! - `words`: what the peer says, made fit for records
//!
//! It knows no particular system.

mod base;
mod client;
mod credentials;
mod exchange;
mod failure;
mod family;
mod gate;
mod grant;
mod keyring;
mod lane;
mod last_look;
pub mod machine;
mod meter;
mod outage;
mod peer;
mod request;
mod room;
mod secret;
mod watched;
mod way;
mod wire;
mod words;

pub use credentials::{Credentials, Grant};
pub use failure::{Failure, FailureKind};
pub use family::{Family, PeerError};
pub use peer::Peer;
pub use request::{Answer, Request};
pub use secret::Secret;
