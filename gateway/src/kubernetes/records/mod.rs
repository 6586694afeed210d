//! Records of the component registry as objects, and writes of objects as calls of the registry.

mod client;
mod documents;
mod events;
mod hosts;
mod json;
mod meta;
mod progress;
mod refusal;
mod secrets;
mod spec;
mod status;

pub(crate) use client::{DeletedObject, RecordClient, RecordDeletion, WritePrecondition};
pub(crate) use events::EventReader;
pub(crate) use refusal::WriteFailure;
pub(crate) use secrets::normalize;

#[cfg(test)]
mod tests;
