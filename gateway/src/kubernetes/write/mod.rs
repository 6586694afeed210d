//! Writes: each is computed from the newest object, checked as a whole, and stored on the condition that the object has
//! not changed meanwhile. Without a version from the client it is computed again.

mod create;
mod delete;
mod draft;
mod options;
mod update;

pub(crate) use create::create;
pub(crate) use delete::{delete, delete_collection};
pub(crate) use update::{patch, update};
