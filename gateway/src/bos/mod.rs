//! The contract of BOS version 2 (BOS reference 2), and the paths by which a CSM system around BOS calls it.
//!
//! - `wire`: the JSON; `convert`: between JSON and messages of the mesh
//! - `parameters`, `tenant`: ids, names and words of a request, and the tenant that it names; `scope`: the components
//!   of that tenant
//! - `problem`: refusals with the titles of BOS
//! - `paths`: prefix, admission class and tag of a path; `routes`: which path calls which service; `face`: the state
//!   of its handlers

mod convert;
pub(crate) mod face;
mod parameters;
pub(crate) mod paths;
pub(crate) mod problem;
pub(crate) mod routes;
mod scope;
mod tenant;
mod wire;
