//! Requests as Kubernetes clients send them: paths, query parameters, `Accept`, and bodies in four forms.

pub(crate) mod body;
mod duplicates;
pub(crate) mod negotiation;
pub(crate) mod parameters;
pub(crate) mod path;
mod protobuf;
