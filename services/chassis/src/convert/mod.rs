//! Conversions between the wire and the rules, for messages that several parts of the mesh handle.

pub mod component;
mod digest;
mod intern;
pub mod observation;
pub mod options;
pub mod time;
pub mod trouble;

pub use digest::Digests;
pub use intern::Interner;
