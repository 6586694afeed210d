//! Selectors: texts by which clients choose resources (device reference 4.1, 4.2).
//!
//! Both kinds of selector share one syntax: requirements with commas between, all of which must hold.

mod field;
mod keys;
mod label;
mod syntax;
mod time;

pub use self::{
    field::{FieldSelector, FieldValue, SelectorField},
    keys::{DeviceField, EnrolmentField, EventField, FleetField},
    label::LabelSelector,
};

#[cfg(test)]
mod tests;
