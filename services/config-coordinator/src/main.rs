//! The config coordinator as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run(
        "config_coordinator",
        |settings| settings.config_coordinator.listen,
        config_coordinator::start,
    )
}
