//! The paths of the face, and the service that each of them calls. `contract` lists them all.

mod answers;
mod contract;
mod decisions;
mod device_status;
mod devices;
mod enrolment;
mod events;
mod fleets;
mod rendered;
mod selection;
mod service;

pub(crate) use contract::endpoints;
