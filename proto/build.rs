//! Compiles the `.proto` files: Rust code for messages, clients and servers, and the descriptor set that
//! server reflection serves.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: &[&str] = &[
    "reveille/boot/v1/boot_script.proto",
    "reveille/component/v1/component_service.proto",
    "reveille/component/v1/report_service.proto",
    "reveille/configuration/v1/configuration.proto",
    "reveille/evaluation/v1/evaluation.proto",
    "reveille/inventory/v1/inventory.proto",
    "reveille/option/v1/option.proto",
    "reveille/power/v1/power.proto",
    "reveille/session/v1/session.proto",
    "reveille/simulation/v1/simulation.proto",
    "reveille/template/v1/template.proto",
    "reveille/tenant/v1/tenant.proto",
    "reveille/watch/v1/watch.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=reveille");
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure().include_file("packages.rs").compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
