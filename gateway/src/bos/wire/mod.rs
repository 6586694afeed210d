//! The JSON of the contract, one module per noun.
//!
//! Members stand in alphabetical order, because that is how answers are written (BOS reference 2.1). Members
//! that clients may not write are skipped when reading, so that a request which carries one is refused as if
//! it had an unknown member (BOS reference 2.1, "read-only fields").

pub(crate) mod bulk_patch;
pub(crate) mod component;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod primitive;
pub(crate) mod session;
pub(crate) mod staging;
pub(crate) mod stamp;
pub(crate) mod strict;
pub(crate) mod template;
pub(crate) mod words;

#[cfg(test)]
mod tests;
