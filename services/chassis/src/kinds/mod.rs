//! The kinds of resources that parts of the mesh keep and mirror, one module each: how a kind is named, watched and read,
//! and its form on the wire.
//!
//! A further kind is one more module here; ledgers, mirrors and faults do not change. No other module of the crate knows
//! both the wire's and the rules' types.

pub mod agent;
pub mod certificate;
pub mod component;
pub mod configuration;
pub mod device;
mod digest;
pub mod enrolment;
pub mod fleet;
pub mod history;
pub mod host;
mod intern;
mod node_state;
pub mod observation;
pub mod options;
pub mod power;
pub mod trouble;
#[cfg(feature = "simulation")]
mod wrong_power;

pub use digest::Digests;
pub use intern::Interner;
pub use node_state::{NodeMessage, NodeState, OwnMembers};
