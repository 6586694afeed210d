//! Reads: one object, lists with pages, tables, and watches.

mod columns;
mod get;
mod list;
mod pages;
mod render;
mod watch;

pub(crate) use get::get;
pub(crate) use list::list;
pub(crate) use render::{ShownForm, one};
pub(crate) use watch::watch;
