//! Rules about devices: machines that look after themselves, report what they run, and follow the spec of a fleet or of
//! a person.
//!
//! The folder owns the record of a device, its statuses and events, and the rules about enrolment, fleets, rendering,
//! restored databases and the end of a device's life. [`evaluate`] decides: from a record and the evidence about it to
//! its statuses, events, and the time of the next decision. All of its rows stand in `evaluation::table`.
//!
//! Rules that change a record return the changed record, which the caller evaluates and stores with its events in one
//! transaction. No rule here renders a spec, signs a certificate or reads JSON.
//!
//! Comments cite sections such as "device reference 2.4" and choices such as "V1"; `DEVICE.md` says what they are
//! about.

pub mod agent;
pub mod application_health;
pub mod certificate;
pub mod counts;
pub mod decommission;
pub mod enrolment;
pub mod evaluation;
pub mod event;
pub mod explanation;
pub mod fleet;
pub mod label;
pub mod poll;
pub mod record;
pub mod render;
pub mod report;
pub mod restore;
pub mod selector;
#[cfg(test)]
mod tests;
pub mod write;

pub use evaluation::evaluate;
