//! The gateway as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run(
        "gateway",
        |settings| settings.gateway.listen,
        async |context, listener| gateway::start(&context, listener).await,
    )
}
