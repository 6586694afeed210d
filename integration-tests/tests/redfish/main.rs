//! The mesh without any other service: BMCs driven directly, boot scripts of its own. The BMCs are those of a real
//! emulator, sushy-tools, which integration-tests/run installs.

mod hosts;
mod sessions;
mod trouble;
