//! Between the wire and the rules, for what more than one part of the mesh handles.

pub mod component;
mod digest;
mod intern;
pub mod observation;
pub mod options;
pub mod time;
pub mod trouble;

pub use digest::Digests;
pub use intern::Interner;
