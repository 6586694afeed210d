//! The fleet manager as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("fleet_manager", |settings| settings.fleet_manager.listen, fleet_manager::start)
}
