//! Policies as files, for the gateway that enforces one and the command that explains it.
//!
//! The rules themselves are in `domain::access`, which this crate passes on. The crate owns their form as TOML, the default
//! policy, and the reading of the path of a request, so that gateway and command see the same operation.

mod file;
mod path;

pub use domain::access::{
    caller::{AccessCaller, NodeSubject},
    decision::{AccessDecision, AccessGrant, AccessRefusal, ContentRule, GrantedTenant, RefusalReason},
    keys::{FetchHistory, KeyStanding, KeyTimes},
    operation::{AccessOperation, RequestedTenant},
    policy::AccessPolicy,
};
pub use file::{DEFAULT_POLICY, PolicyError, default_policy, parse_policy};
pub use path::operation_path;

/// Canonical spelling of the id of a node; see `domain::core::xname`.
pub use domain::core::xname::node_xname;
