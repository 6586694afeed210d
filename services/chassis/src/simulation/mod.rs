//! Replacement for the network in a simulation: a [`SimulatedNetwork`] in memory. The [disks](crate::store::disk) that
//! replace databases stand in the store.
//!
//! The services above do not know of them. Their settings have addresses and databases of this module, and they run on
//! a runtime of one thread whose clock stands while any task has work. The program that runs the simulation decides
//! which hosts may communicate, with which latency, and the outcome of commits.

mod defect;
mod gate;
mod narrow;
mod network;

pub use defect::{PlantedDefect, plant};
pub use narrow::narrow_streams;
pub use network::{NetworkPath, SimulatedListener, SimulatedNetwork};

pub(crate) use gate::TaskGate;
pub(crate) use narrow::buffer_size;
pub(crate) use network::{unhurried, way};
