//! The host provisioner as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("host_provisioner", |settings| settings.host_provisioner.listen, host_provisioner::start)
}
