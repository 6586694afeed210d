//! Compiles the `.proto` files: Rust code for messages, clients and servers, and the descriptor set that
//! server reflection serves.

use std::{env, error::Error, fs, path::PathBuf};

use prost_build::{Service, ServiceGenerator};

const FILES: &[&str] = &[
    "reveille/boot/v1/boot_script.proto",
    "reveille/component/v1/component_service.proto",
    "reveille/component/v1/report_service.proto",
    "reveille/configuration/v1/configuration.proto",
    "reveille/evaluation/v1/evaluation.proto",
    "reveille/event/v1/event.proto",
    "reveille/inventory/v1/inventory.proto",
    "reveille/meta/v1/trouble.proto",
    "reveille/option/v1/option.proto",
    "reveille/power/v1/power.proto",
    "reveille/session/v1/session.proto",
    "reveille/simulation/v1/simulation.proto",
    "reveille/template/v1/template.proto",
    "reveille/tenant/v1/tenant.proto",
    "reveille/watch/v1/watch.proto",
];

/// Messages that many clients get the same ones of: servers are given them encoded.
const SHARED: &[&str] = &[
    "WatchComponentsResponse",
    "WatchConfigurationStatesResponse",
    "WatchOptionsResponse",
    "WatchPowerStatesResponse",
    "WatchSessionsResponse",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=reveille");
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    let mut generator = prost_build::Config::new();
    generator.include_file("packages.rs").service_generator(Box::new(Services::new()));
    generator.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// Generates both ends of each service, with different [`SHARED`] types.
struct Services {
    clients: Box<dyn ServiceGenerator>,
    servers: Box<dyn ServiceGenerator>,
}

impl Services {
    fn new() -> Self {
        let clients = tonic_prost_build::configure().build_server(false);
        let servers = tonic_prost_build::configure().build_client(false).codec_path("crate::ServerCodec");
        Self { clients: clients.service_generator(), servers: servers.service_generator() }
    }
}

impl ServiceGenerator for Services {
    fn generate(&mut self, mut service: Service, code: &mut String) {
        self.clients.generate(service.clone(), code);
        for method in &mut service.methods {
            if SHARED.contains(&method.output_type.as_str()) {
                // The code of a server is in a module of its own.
                method.output_type = format!("crate::Encoded<super::{}>", method.output_type);
            }
        }
        self.servers.generate(service, code);
    }
}
