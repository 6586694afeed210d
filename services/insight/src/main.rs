//! The part that explains as a separate process.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run("insight", |settings| settings.insight.listen, insight::start)
}
