//! What the mesh does in a second, on the machine this runs on.
//!
//! `cargo bench -p integration-tests` measures everything; a word after `--` picks the measurements that
//! contain it, such as `cargo bench -p integration-tests -- reboot`. Every part, the simulated upstreams and
//! the client share the machine. Figures are minimum, median and maximum of the runs.

mod boot;
mod evaluation;
mod figures;
mod registry;
mod surroundings;

use figures::Figures;

fn main() {
    // `cargo bench` itself passes --bench.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let figures = Figures::new(wanted);
    figures.print_machine();
    evaluation::measure(&figures);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        registry::measure(&figures).await;
        boot::measure(&figures).await;
        surroundings::measure(&figures).await;
    });
}
