//! Compiles the `.proto` files: Rust code for messages, clients and servers, and the descriptor set that
//! server reflection serves.

use std::{
    collections::{BTreeSet, HashMap},
    env,
    error::Error,
    fmt::Write,
    fs,
    path::PathBuf,
};

use prost_build::{Method, Service, ServiceGenerator};
use protox::prost_reflect::prost_types::{
    FieldDescriptorProto, FileDescriptorSet, field_descriptor_proto::Label,
};

const FILES: &[&str] = &[
    "reveille/boot/v1/boot_script.proto",
    "reveille/component/v1/component_service.proto",
    "reveille/component/v1/report_service.proto",
    "reveille/configuration/v1/configuration.proto",
    "reveille/device/v1/device_service.proto",
    "reveille/device/v1/report_service.proto",
    "reveille/device/v1/sight.proto",
    "reveille/evaluation/v1/evaluation.proto",
    "reveille/event/v1/event.proto",
    "reveille/fleet/v1/certificate.proto",
    "reveille/fleet/v1/enrolment.proto",
    "reveille/fleet/v1/fleet_service.proto",
    "reveille/host/v1/document_service.proto",
    "reveille/host/v1/host_service.proto",
    "reveille/host/v1/report_service.proto",
    "reveille/host/v1/secret_service.proto",
    "reveille/host/v1/sight.proto",
    "reveille/insight/v1/explain_service.proto",
    "reveille/insight/v1/timeline_service.proto",
    "reveille/inventory/v1/inventory.proto",
    "reveille/meta/v1/trouble.proto",
    "reveille/option/v1/option.proto",
    "reveille/peer/v1/peer.proto",
    "reveille/power/v1/host_power.proto",
    "reveille/power/v1/power.proto",
    "reveille/session/v1/plan.proto",
    "reveille/session/v1/session.proto",
    "reveille/simulation/v1/rack.proto",
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
    let files = compiler.file_descriptor_set();
    let mut generator = prost_build::Config::new();
    generator.include_file("packages.rs").service_generator(Box::new(Services::new(&files)));
    // Equal records have equal bytes.
    generator.btree_map([".reveille.host", ".reveille.device", ".reveille.fleet"]);
    generator.compile_fds(files)?;
    Ok(())
}

/// Generates both ends of each service, and what the lists and watches of all kinds have in common.
struct Services {
    clients: Box<dyn ServiceGenerator>,
    servers: Box<dyn ServiceGenerator>,
    /// Fields of each message, by its full name.
    fields: HashMap<String, Vec<FieldDescriptorProto>>,
    /// Messages of lists and watches that are done.
    done: BTreeSet<String>,
}

impl Services {
    fn new(files: &FileDescriptorSet) -> Self {
        let clients = tonic_prost_build::configure().build_server(false);
        let servers = tonic_prost_build::configure().build_client(false).codec_path("crate::ServerCodec");
        let mut fields = HashMap::new();
        for file in &files.file {
            for message in &file.message_type {
                fields.insert(format!(".{}.{}", file.package(), message.name()), message.field.clone());
            }
        }
        Self {
            clients: clients.service_generator(),
            servers: servers.service_generator(),
            fields,
            done: BTreeSet::new(),
        }
    }

    /// Returns whether `method` watches a kind: many clients get the same answers, and servers are given them encoded.
    fn is_watch(&self, method: &Method) -> bool {
        method.server_streaming && self.has(method, "revision") && self.has(method, "synced")
    }

    /// Returns whether the answers of `method` have that field.
    fn has(&self, method: &Method, field: &str) -> bool {
        self.fields_of(method).iter().any(|one| one.name() == field)
    }

    fn fields_of(&self, method: &Method) -> &[FieldDescriptorProto] {
        self.fields.get(&method.output_proto_type).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a request to watch has more than the revision.
    fn is_filtered(&self, method: &Method) -> bool {
        self.fields.get(&method.input_proto_type).is_some_and(|fields| fields.len() > 1)
    }

    /// Returns the field of the resources in the answers of a list or watch, and their type.
    fn resources(&self, service: &Service, method: &Method) -> Option<(String, String)> {
        let package = format!(".{}.", service.package);
        let mut lists = self.fields_of(method).iter().filter(|field| field.label() == Label::Repeated);
        lists.find_map(|field| {
            Some((field.name().to_owned(), field.type_name().strip_prefix(&package)?.to_owned()))
        })
    }

    /// Generates the common form of a list or watch.
    fn collection(&self, service: &Service, method: &Method) -> Option<String> {
        let (list, kind) = self.resources(service, method)?;
        let Method { input_type: request, output_type: response, proto_name: name, .. } = method;
        if !self.is_watch(method) {
            let is_plain = method.server_streaming && self.fields_of(method).len() == 1;
            let whole = format!("fn from({list}: Vec<{kind}>) -> Self {{ Self {{ {list} }} }}");
            return is_plain.then(|| format!("impl From<Vec<{kind}>> for {response} {{ {whole} }}"));
        }
        let path = format!("/{}.{}/{name}", service.package, service.proto_name);
        let unfiltered = if self.is_filtered(method) { ", ..Self::default()" } else { "" };
        let (given, taken) = match self.has(method, "deletions") {
            true => ("deletions: batch.deletions,", "response.deletions"),
            // Its resources cannot be deleted.
            false => ("", "Vec::new()"),
        };
        Some(format!(
            "impl crate::WatchedMessage for {kind} {{
                const PATH: &'static str = \"{path}\";
                type Request = {request};
                type Response = {response};
            }}
            impl crate::WatchRequest for {request} {{
                fn resuming(resume_revision: u64) -> Self {{ Self {{ resume_revision{unfiltered} }} }}
                fn resume_revision(&self) -> u64 {{ self.resume_revision }}
            }}
            impl From<crate::WatchBatch<{kind}>> for {response} {{
                fn from(batch: crate::WatchBatch<{kind}>) -> Self {{
                    Self {{ {list}: batch.changed, {given} revision: batch.revision, synced: batch.synced }}
                }}
            }}
            impl From<{response}> for crate::WatchBatch<{kind}> {{
                fn from(response: {response}) -> Self {{
                    let (revision, synced) = (response.revision, response.synced);
                    Self {{ changed: response.{list}, deletions: {taken}, revision, synced }}
                }}
            }}"
        ))
    }
}

impl ServiceGenerator for Services {
    fn generate(&mut self, mut service: Service, code: &mut String) {
        self.clients.generate(service.clone(), code);
        for method in &service.methods {
            let Some(collection) = self.collection(&service, method) else { continue };
            if self.done.insert(method.output_proto_type.clone()) {
                // A string takes any text.
                let _written = writeln!(code, "{collection}");
            }
        }
        let watches: Vec<_> = service.methods.iter().map(|method| self.is_watch(method)).collect();
        for (method, is_watch) in service.methods.iter_mut().zip(watches) {
            if is_watch {
                // The code of a server is in a module of its own.
                method.output_type = format!("crate::Encoded<super::{}>", method.output_type);
            }
        }
        self.servers.generate(service, code);
    }
}
