//! JSON of the contract, and its conversion from and to records (device reference 1).
//!
//! - `words`, `moment`: words and times; `strict`: objects; `meta`: facts about resources and lists
//! - `device`, `spec`, `status`, `report`: devices; `counts`: their numbers
//! - `fleet`, `enrolment`, `renewal`: fleets and requests of agents
//! - `event`: events; `patch`: JSON patches
//! - `outcome`, `service`: answers about requests and about the service
//!
//! Members that agents and people may write are read by the types that are shown. A document that does not fit is refused
//! with the place of the misfit.

pub(crate) mod counts;
pub(crate) mod device;
pub(crate) mod enrolment;
pub(crate) mod event;
pub(crate) mod fleet;
pub(crate) mod meta;
pub(crate) mod moment;
pub(crate) mod outcome;
pub(crate) mod patch;
pub(crate) mod renewal;
pub(crate) mod report;
pub(crate) mod service;
pub(crate) mod spec;
pub(crate) mod status;
mod strict;
pub(crate) mod words;

#[cfg(test)]
mod tests;
