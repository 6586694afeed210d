//! Identity: who the caller of a request is, and whether the policy lets it do what it asks for.
//!
//! - `gate`: the decision about a request, in front of every face
//! - `credentials`: the bearer token of a request; `refusal`: answers to callers without rights
//! - `tokens`: static tokens from a file
//! - `token`, `signature`: JSON web tokens; `issuer`, `keys`, `fetch`: their issuers, and the keys of these; `claims`: the
//!   caller that claims name; `verified`: tokens that were verified before
//! - `content`: the body of a report; `audited`: the line of a request in the audit log
//!
//! The module knows `http` and no face. It reads credentials, decides by `access-policy`, and leaves requests with the tenant
//! that was decided on.

mod audited;
mod claims;
mod content;
mod credentials;
mod fetch;
mod gate;
mod issuer;
mod keys;
mod refusal;
mod signature;
mod token;
mod tokens;
mod verified;

pub(crate) use audited::AuditedRequest;
pub(crate) use gate::{IdentityGate, RequestCaller};
