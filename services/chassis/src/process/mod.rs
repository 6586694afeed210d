//! One process: its clock, tasks, memory, log and metrics, and how long it waits before it tries again.

pub mod audit;
pub mod capacity;
pub(crate) mod cause;
pub mod clock;
pub mod failpoint;
pub mod memory;
pub mod packed;
pub mod pause;
pub mod peers;
pub(crate) mod shared_values;
pub(crate) mod tasks;
pub mod telemetry;
pub mod traces;
mod usage;
pub mod watched_file;
