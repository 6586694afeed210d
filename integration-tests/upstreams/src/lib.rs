//! Plays the systems around a real machine over their own HTTP APIs: HSM (SMD v2), PCS, BSS, CFS v3, IMS v3, S3 and
//! TAPMS, for a fleet of simulated nodes that boot what BSS holds for them, report to the gateway, and get configured
//! by CFS.
//!
//! The nodes are those of the crate `simulator`; this crate adds the systems' records of them, the way each system
//! works and fails, and counters and histories for tests. All systems share one listener, separated by path. Made for
//! tests, benchmarks and demonstrations: nothing is stored, nothing is secret.

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

pub use simulator::{FleetFaults, faults::HardwareFault, hardware::NodePace, node::PowerCommand};

pub use crate::{
    bss::BootRequest,
    cfs::ConfigurationRequest,
    command::{IdCollection, MachineSummary, NodeChange, NodeView, PowerEvent, UnknownNode},
    counters::{CallCount, SeenCall},
    history::{EventKind, NodeEvent, PowerRecord},
    images::{ImageStock, StoredImage},
    node_faults::NodeFaults,
    plan::{MachinePlan, PowerService},
    service::Service,
    trouble::{ServiceTrouble, TroubleEffect},
    upstreams::Upstreams,
};
