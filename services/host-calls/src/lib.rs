//! Calls of bare-metal hosts to their drivers, for the parts that carry them out.
//!
//! - `dispatcher`, `tasks`: one call of a host at a time, with its intent on record before and its report after
//! - `journal`: the records of these calls, of each part a kind of its own
//! - `target`: hosts and operations as drivers need them
//! - `bmc`, `rack`: the power of a host at its BMC and in the rack of the simulator, each a poll
//!
//! The crate decides nothing: [`domain::host::dispatch`] names the due calls and their hosts. It looks at no host and knows
//! no operation beside power: these are the host provisioner's.

pub mod bmc;
mod dispatcher;
mod journal;
mod rack;
mod target;
mod tasks;

pub use dispatcher::{CallDispatcher, CallDriver, until_hosts_are_lost};
pub use journal::CallJournal;
pub use rack::RackClient;
pub use redfish::BmcLogin;
pub use target::{CallOrder, HostIdentity, HostTarget, StillDue, cannot_reach, progress, unreadable_secret};
pub use tasks::HostTasks;
