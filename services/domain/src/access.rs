//! Access: may this caller do this operation, and which rule says so?
//!
//! A policy is an ordered list of named rules, and the first that fits decides. An operation that no rule allows is
//! denied. A rule names callers, methods and paths. A rule that allows also decides about the tenant of the request, may
//! bind a path to the node that the caller is, and may bind the body to a report of the actual state.
//!
//! - `caller`: callers, and the nodes that some of them are
//! - `operation`: requests as rules see them
//! - `pattern`: patterns of paths and of subjects
//! - `policy`: rules
//! - `decision`: the decision
//! - `keys`: for how long the keys of an issuer count, and when they are fetched again
//!
//! Behind the gateway, where parts call each other:
//!
//! - `calls`: every gRPC method, and the parts that may call it

pub mod caller;
pub mod calls;
pub mod decision;
pub mod keys;
pub mod operation;
pub mod pattern;
pub mod policy;

#[cfg(test)]
mod tests;
