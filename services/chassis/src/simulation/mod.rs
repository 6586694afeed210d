//! What a simulation puts in place of the network and the databases: a [`Network`] in memory and [`Disk`]s in memory.
//!
//! The services above know nothing of it. They get settings whose addresses and databases name things in here, and
//! run on a runtime of one thread whose clock stands while anybody has something to do. Who may talk to whom, how long
//! it takes, and what becomes of a commit is said by whoever runs the simulation.

mod defect;
mod disk;
mod gate;
mod leases;
mod locks;
mod network;
mod shelf;
mod transaction;

pub use defect::{Defect, plant};
pub use disk::{Commit, Custodian, Disk, Fate};
pub use network::{Listening, Network, Way};

pub(crate) use defect::wrong_power;
pub(crate) use gate::Gate;
pub(crate) use leases::Holder;
pub(crate) use locks::Lock;
pub(crate) use network::{unhurried, way};
pub(crate) use shelf::Shelf;
pub(crate) use transaction::{LeaseTransaction, Transaction};
