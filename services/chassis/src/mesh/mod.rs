//! Parts that call each other: starting and stopping, serving and calling, TLS, limits on work under way, health.

pub mod admission;
pub mod bodies;
pub(crate) mod buffers;
pub mod call_class;
pub mod channel;
pub mod client_name;
mod collector;
pub(crate) mod context;
pub(crate) mod fault;
pub mod health;
pub(crate) mod listener;
mod peers;
pub mod request_id;
pub(crate) mod run;
pub(crate) mod serve;
pub mod streams;
pub mod time;
pub mod tls;
