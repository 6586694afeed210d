//! Calls of real servers on the loopback, well and badly behaved ones.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod credentials;
mod refusals;
mod seen;
mod server;
mod tls;
mod trouble;
