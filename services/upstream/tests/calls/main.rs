//! Calls of real servers on the loopback interface, working and failing ones.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod credentials;
mod failures;
mod first;
mod refusals;
mod seen;
mod server;
mod tls;
