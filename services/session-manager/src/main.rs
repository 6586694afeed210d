//! The session manager as a separate process.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("session_manager", |settings| settings.session_manager.listen, session_manager::start)
}
