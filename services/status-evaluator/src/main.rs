//! The status evaluator as a separate process.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("status_evaluator", |settings| settings.status_evaluator.listen, status_evaluator::start)
}
