//! Calls of Ironics, for the drivers of several services: nodes, their states and their power.
//!
//! - `api`, `node`: requests, and nodes as they are answered
//! - `backends`, `routing`: the Ironics of the settings, and which of them a host belongs to
//! - `access`, `power`: the node of one host; its power, as a poll
//! - `answers`: answers of drivers, from the result of a call
//!
//! Which operations lead a node through its provision states is the host provisioner's concern.

mod access;
pub mod answers;
mod api;
mod backends;
pub mod node;
mod power;
mod routing;

pub use access::{NodeAccess, node_name, node_of};
pub use api::IronicBackend;
pub use backends::backends;
pub use power::{NodePowerCall, PowerRequests};
pub use routing::choose;
