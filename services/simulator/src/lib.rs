//! The simulated fleet: nodes that turn on and off, boot, report and get configured as real ones do, and the upstreams
//! that a real machine has around them: hardware inventory, power, boot scripts, configuration, images.
//!
//! Owns what the hardware would own and keeps it in memory: a restart is a new machine. It knows nothing of components
//! or sessions; it meets the mesh as hardware does, through the calls of the drivers and through reports over REST.

mod boot;
pub mod faults;
mod fleet;
pub mod hardware;
pub mod hsm;
mod machine;
mod node;
mod reporter;
mod rpc;
pub mod topology;
mod transitions;

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use chassis::{Context, channel::LARGEST_MESSAGE, settings};
use proto::{
    inventory::{Group, Hardware},
    simulation::fleet_service_server::FleetServiceServer,
};
use tokio::{net::TcpListener, sync::mpsc};

pub use crate::faults::Faults;
use crate::{
    fleet::{Blueprint, Fleet},
    hardware::Timing,
    reporter::Reporter,
    rpc::FleetRpc,
};

/// Starts the fleet that the settings describe and serves it.
///
/// # Errors
/// Names the setting, or the file and the place in it, that cannot be used.
pub async fn start(context: &Context, listener: TcpListener) -> anyhow::Result<()> {
    let settings = &context.settings.simulator;
    let shutdown = context.tasks.shutdown();
    let (reports, inbox) = mpsc::unbounded_channel();
    let fleet = Arc::new(Fleet::new(blueprint(settings)?, reports));
    let reporter = Reporter::new(&context.settings.gateway.url, settings.speed).context("gateway.url")?;

    let rpc = FleetRpc { fleet: fleet.clone(), shutdown: shutdown.clone() };
    let mut server = chassis::Server::default();
    server.add(FleetServiceServer::new(rpc).max_decoding_message_size(LARGEST_MESSAGE));
    let ready = chassis::serve(context, "simulator", listener, server).await?;

    let until = shutdown.clone();
    context.tasks.spawn("fleet", async move {
        fleet.run(until).await;
        Ok(())
    });
    context.tasks.spawn("node-reports", async move {
        reporter.run(inbox, shutdown).await;
        Ok(())
    });
    ready.now().await;
    Ok(())
}

fn blueprint(settings: &settings::Simulator) -> anyhow::Result<Blueprint> {
    let (hardware, groups) = inventory(settings)?;
    let nodes = fleet::nodes(&hardware).count();
    let faults: Faults = settings.faults.parse().context("simulator.faults")?;
    Ok(Blueprint {
        timing: Timing::new(settings.seed, settings.speed).context("simulator.speed")?,
        faults: faults.assign(nodes, settings.seed).context("simulator.faults")?,
        up: is_on(&settings.initial_power)?,
        hardware,
        groups,
    })
}

/// From files where they are given. A fleet from a file has no groups but those of a file.
fn inventory(settings: &settings::Simulator) -> anyhow::Result<(Vec<Hardware>, Vec<Group>)> {
    let hardware = match settings.inventory.as_str() {
        "" => generated(settings.nodes)?,
        file => hsm::read_inventory(Path::new(file)).context("simulator.inventory")?,
    };
    let groups = match settings.groups.as_str() {
        "" if settings.inventory.is_empty() => topology::groups(&hardware),
        "" => Vec::new(),
        file => hsm::read_groups(Path::new(file)).context("simulator.groups")?,
    };
    Ok((hardware, groups))
}

fn generated(nodes: u32) -> anyhow::Result<Vec<Hardware>> {
    let most = topology::MOST_NODES;
    ensure!((1..=most).contains(&nodes), "simulator.nodes: {nodes} must be from 1 to {most}");
    Ok(topology::generate(nodes))
}

fn is_on(initial_power: &str) -> anyhow::Result<bool> {
    match initial_power {
        "on" => Ok(true),
        "off" => Ok(false),
        other => bail!("simulator.initial_power: {other:?} must be on or off"),
    }
}
