//! The gateway as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("gateway", |settings| settings.gateway.listen, gateway::start)
}
