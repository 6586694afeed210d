//! The mesh without any other service: BMCs driven directly, boot scripts of its own. The BMCs are those of a real
//! emulator, sushy-tools, which integration-tests/run installs.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod sessions;
mod trouble;
