//! The gRPC APIs of the mesh: generated messages, clients and servers, one module per package.
//!
//! The meaning of every field is documented once, in the `.proto` files beside this crate.

#![expect(missing_docs, reason = "generated code carries the comments of the .proto files where they exist")]
#![expect(clippy::large_enum_variant, reason = "the shapes are given by the .proto files")]

include!(concat!(env!("OUT_DIR"), "/packages.rs"));

mod collection;
mod encoded;

pub use collection::{WatchBatch, WatchRequest, WatchedMessage, watch_kind};
pub use encoded::{Answer, Encoded, ServerCodec};
pub use prost::Message;
pub use reveille::boot::v1 as boot;
pub use reveille::component::v1 as component;
pub use reveille::configuration::v1 as configuration;
pub use reveille::device::v1 as device;
pub use reveille::evaluation::v1 as evaluation;
pub use reveille::event::v1 as event;
pub use reveille::fleet::v1 as fleet;
pub use reveille::host::v1 as host;
pub use reveille::insight::v1 as insight;
pub use reveille::inventory::v1 as inventory;
pub use reveille::meta::v1 as meta;
pub use reveille::option::v1 as option;
pub use reveille::peer::v1 as peer;
pub use reveille::power::v1 as power;
pub use reveille::session::v1 as session;
pub use reveille::simulation::v1 as simulation;
pub use reveille::template::v1 as template;
pub use reveille::tenant::v1 as tenant;
pub use reveille::watch::v1 as watch;

/// Every file of this crate and its imports, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
