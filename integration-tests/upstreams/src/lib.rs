//! Plays the systems around a real machine over their own HTTP APIs: HSM (SMD v2), PCS, BSS, CFS v3, IMS v3, S3 and
//! TAPMS, for a fleet of simulated nodes that boot what BSS holds for them, report to the gateway, and get configured
//! by CFS.
//!
//! The nodes are those of the crate `simulator`; this crate adds what the systems make of them, the way each of them
//! works and fails, and what tests want to know afterwards. All systems share one listener and are told apart by
//! path. It is made for tests, benchmarks and demonstrations: nothing is stored, nothing is secret.

mod bss;
mod call;
mod cfs;
mod command;
mod control;
mod counters;
mod crossing;
mod history;
mod hsm;
mod images;
mod ims;
mod kept;
mod mangle;
mod node_faults;
mod notifier;
mod pcs;
mod plan;
mod s3;
mod serve;
mod service;
mod state;
mod tapms;
mod trouble;
mod upstreams;
mod wire;
mod world;
mod xname;

pub use simulator::{Faults, faults::Fault, hardware::Pace, node::PowerCommand};

pub use crate::{
    bss::BootRequest,
    cfs::ConfigurationRequest,
    command::{Collection, NodeChange, NodeView, PowerEvent, Summary, UnknownNode},
    counters::{Count, Seen},
    history::{Event, PowerRecord, What},
    images::{Image, Images},
    node_faults::NodeFaults,
    plan::{Plan, PowerService},
    service::Service,
    trouble::{Effect, Trouble},
    upstreams::Upstreams,
};
