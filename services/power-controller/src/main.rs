//! The power controller as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("power_controller", |settings| settings.power_controller.listen, power_controller::start)
}
