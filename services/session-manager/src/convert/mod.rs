//! Conversion between messages and domain types. No other module of this service knows both.

pub(crate) mod durations;
pub(crate) mod inventory;
mod outcome;
pub(crate) mod plan;
pub(crate) mod rollout;
pub(crate) mod session;
pub(crate) mod staging;
pub(crate) mod target;
pub(crate) mod template;
