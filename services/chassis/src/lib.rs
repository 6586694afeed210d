//! The foundation of every part of the mesh, so that a service is little more than its rules and its loop.
//!
//! Each module depends on those before it, never on a later one:
//!
//! - [`settings`]: everything that can be set, by part and upstream
//! - [`process`]: clock, [`Tasks`], memory, log, metrics, failpoints, pauses between retries
//! - [`mesh`]: starting and stopping ([`run`], [`Context`], [`serve`]), calls ([`Fault`], [`Channel`]), TLS, limits on
//!   concurrent calls and on bytes in and out, health
//! - [`store`]: databases, and durable collections that can be watched
//! - [`lease`]: which replica of a part acts
//! - [`observe`]: copies of other services' collections, items that need a decision, and what readings of outside systems
//!   have in common
//! - [`kinds`]: each kind of resource, the only place that knows both the wire's and the rules' types
//!
//! All but `settings` and `kinds` are generic: they know no kind of resource and no upstream. The chassis decides nothing.
//! The feature `simulation` replaces network and databases by ones in memory.

pub mod kinds;
pub mod lease;
pub mod mesh;
pub mod observe;
pub mod process;
pub mod settings;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod store;

/// Limits of texts and lists in requests, for their documentation, such as the gateway's.
pub use domain::core::{limits, node_set};
pub use mesh::channel::{Channel, channel, plain_channel, within};
pub use mesh::context::{Context, RESTORE_MARK, bind, check_writable};
pub use mesh::fault::Fault;
pub use mesh::listener::Listener;
pub use mesh::run::{CommandFlags, Start, keep_files_private, run, run_command};
pub use mesh::serve::{Ready, STARTED, Server, serve};
pub use process::cause::cause_first;
pub use process::tasks::Tasks;
pub use settings::Settings;
