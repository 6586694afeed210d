//! The whole mesh in virtual time: the real services on hosts of their own, with a network, disks, clocks, a machine
//! and people that are drawn from a seed. The same seed is the same run, to the last microsecond.
//!
//! - [`seed`] runs one seed; [`table`] runs many, each in a process of its own, and sums up
//! - [`world`] has the [replicas](replica), starts and kills them; [`machine`] plays nodes and upstreams; [`story`]
//!   plays people; [`weather`] and [`trouble`] inject faults
//! - [`journal`] records everything, and [`invariants`] judge it; [`watcher`] judges watches
//! - [`chance`], [`host`] and [`trace`] make runs repeatable and readable
//!
//! `README.md` beside this crate lists how each fault is injected, and where each invariant is checked.

pub mod chance;
pub mod host;
mod hosts;
pub mod invariants;
pub mod journal;
pub mod machine;
pub mod replica;
pub mod seed;
pub mod story;
pub mod table;
pub mod trace;
pub mod trouble;
pub mod watcher;
pub mod weather;
pub mod world;
