//! The paths of the face, and the service that each of them calls. `contract` lists them all, and `agents` those of the port
//! of agents.

mod agents;
mod answers;
mod contract;
mod decisions;
mod device_status;
mod devices;
mod enrolment;
mod events;
mod fleets;
mod rendered;
mod renewals;
mod selection;
mod service;

pub(crate) use agents::agent_endpoints;
pub(crate) use contract::endpoints;
