//! Tests of the whole mesh. One binary, because linking every part takes longer than running most tests.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod boot;
mod call_rules;
mod command_line;
mod crashes;
mod dependencies;
mod estimates;
mod evaluation;
mod explain;
mod grpc;
mod hostile;
mod live;
mod metrics;
mod moving;
mod overload;
mod plans;
mod processes;
mod request_ids;
mod rest;
mod rollouts;
mod shutdown;
mod startup;
mod timeline;
mod traces;
mod transitions;
mod watches;
