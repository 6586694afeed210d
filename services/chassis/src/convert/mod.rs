//! Between the wire and the rules, for what more than one part of the mesh handles.

pub mod component;
mod intern;
pub mod options;
pub mod time;

pub use intern::Interner;
