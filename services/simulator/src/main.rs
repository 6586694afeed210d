//! The simulated fleet as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("simulator", |settings| settings.simulator.listen, simulator::start)
}
