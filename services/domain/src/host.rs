//! Rules about bare-metal hosts: the life of a host from the address of its BMC to its deletion.
//!
//! The folder owns the record of a host, its states and their transitions, and every rule about registration,
//! inspection, preparation, provisioning, power, servicing, detachment and deletion. [`step`] decides: from a record
//! and the evidence about it to a new record, a call that the driver is to be given, events, counters, and the time of
//! the next decision. Callers carry decisions out. No rule here asks a driver, reads a secret or parses a text.
//!
//! A host has one call without an answer at most. Looks and readings from before the last answer decide nothing, and
//! every wait has a [`record::reason::WaitReason`].
//!
//! Comments cite sections such as "host reference 1.12" and defects such as "Q14"; `HOST.md` says what they are about.

pub mod address;
mod conditions;
mod credentials;
pub mod decision;
mod deletion;
mod deprovisioning;
mod detach;
pub mod dispatch;
pub mod evidence;
pub mod explanation;
pub mod firmware;
pub mod guard;
mod hints;
pub mod image;
mod inspection;
pub mod node;
mod pass;
mod power;
mod prelude;
mod preparation;
mod profile;
mod provisioning;
mod reboot;
pub mod record;
mod registration;
mod servicing;
pub mod slots;
mod step;
mod table;
#[cfg(test)]
mod tests;
mod transition;
mod turn;
pub mod validate;

pub use step::step;
