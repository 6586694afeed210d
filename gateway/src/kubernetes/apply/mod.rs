//! Server-side apply: which writer wants which fields, conflicts between writers, and the rows of `managedFields`.
//!
//! A field set is a set of paths; a path is a list of elements as `fieldsV1` writes them: `f:name`, `k:{"type":"Ready"}`,
//! `v:"x"`. Objects are small, so paths are compared as they are.

mod fields;
mod managed;
mod merge;

pub(crate) use managed::{ManagedRows, WriterName};
pub(crate) use merge::{AppliedObject, apply};
