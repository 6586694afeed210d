//! The component registry as a separate process.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run(
        "component_registry",
        |settings| settings.component_registry.listen,
        component_registry::start,
    )
}
