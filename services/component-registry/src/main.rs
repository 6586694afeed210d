//! The component registry as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    chassis::run(
        "component_registry",
        |settings| settings.component_registry.listen,
        component_registry::start,
    )
}
