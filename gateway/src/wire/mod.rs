//! The JSON of the contract, one module per noun.
//!
//! Members stand in alphabetical order, because that is how answers are written (BOS reference 2.1). Members
//! that people may not write are skipped when reading, so that a request which carries one is refused as if
//! it had an unknown member (BOS reference 2.1, "read-only fields").

pub mod component;
pub mod options;
pub mod session;
pub mod stamp;
pub mod strict;
pub mod template;
pub mod words;
