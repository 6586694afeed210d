//! The foundation of every part of the mesh, so that a service is little more than its rules and its loop.
//!
//! - starting and stopping: [`run`], [`Settings`], [`Context`], [`Tasks`], [`serve`], [`health`], [`telemetry`],
//!   [`clock`]
//! - serving and calling: [`Fault`], [`Channel`], [`request_id`], [`call_class`], [`admission`] (concurrent calls of a
//!   class), [`bodies`] and [`streams`] (bytes in and out), [`capacity`] (resources of the process)
//! - keeping and sharing state: [`ledger`] (durable collection that can be watched), [`mirror`] (a copy of another
//!   service's collection), [`work`] (items that need a decision, and when)
//! - retries: [`pause`]; returning unused memory: [`memory`]; aborting at failpoints: [`failpoint`]
//! - [`convert`]: the only place that knows both the wire's and the rules' types
//!
//! The chassis decides nothing about components or sessions, and knows no upstream.

pub mod admission;
pub mod bodies;
pub mod call_class;
pub mod capacity;
mod cause;
pub mod channel;
pub mod clock;
mod context;
pub mod convert;
pub mod database;
pub mod failpoint;
pub mod fault;
mod fence;
pub mod health;
pub mod hints;
pub mod kinds;
pub mod lease;
pub mod ledger;
mod listener;
pub mod memory;
pub mod mirror;
pub mod pause;
pub mod request_id;
pub mod resource;
mod run;
mod serve;
pub mod settings;
mod shared_values;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod streams;
mod tasks;
pub mod telemetry;
pub mod work;

pub use cause::cause_first;
pub use channel::{Channel, channel, within};
pub use context::{Context, bind};
/// Limits of texts and lists in requests, for their documentation, such as the gateway's.
pub use domain::core::limits;
pub use fault::Fault;
pub use listener::Listener;
pub use run::{Command, run, run_command};
pub use serve::{Ready, STARTED, Server, serve};
pub use settings::Settings;
pub use tasks::Tasks;
