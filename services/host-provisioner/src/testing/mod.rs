//! Parts around the service, for tests.

pub(crate) mod bmc;
pub(crate) mod documents;
pub(crate) mod registry;
