//! Between the wire and the rules. Nothing else here knows both.

pub(crate) mod inventory;
pub(crate) mod session;
pub(crate) mod staging;
pub(crate) mod target;
pub(crate) mod template;
