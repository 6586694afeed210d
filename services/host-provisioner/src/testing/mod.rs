//! Parts around the service, for tests.

pub(crate) mod registry;
