//! The simulated fleet as a separate process.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("simulator", |settings| settings.simulator.listen, simulator::start)
}
