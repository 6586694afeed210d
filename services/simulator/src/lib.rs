//! The simulated fleet: nodes that turn on and off, boot, report and get configured like real ones, and the upstreams
//! of a real machine: hardware inventory, power, boot scripts, configuration, images.
//!
//! The simulator owns the state of the hardware and keeps it in memory: a restart begins with a new machine. The
//! simulator does not know components or sessions; it meets the mesh like hardware, through the calls of drivers and
//! through reports over REST.
//!
//! The hardware itself ([`machine`], [`node`], [`hardware`], [`boot`], [`reporter`]) is public, so that HTTP fakes of
//! the real upstreams can use the same machine.
//!
//! Agents of edge devices ([`agents`]) are no part of the machine: a program that wants some starts them.

pub mod agents;
pub mod boot;
pub mod faults;
mod fleet;
pub mod hardware;
pub mod hsm;
pub mod machine;
pub mod node;
pub mod rack;
mod rack_rpc;
pub mod reporter;
mod rpc;
pub mod topology;
mod transitions;

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use chassis::{Context, Listener, Start, mesh::channel::LARGEST_MESSAGE, settings};
use domain::access::calls::CALL_TABLE;
use proto::{
    inventory::{Group, Hardware},
    simulation::{fleet_service_server::FleetServiceServer, rack_service_server::RackServiceServer},
};
use tokio::sync::mpsc;

pub use crate::{faults::FleetFaults, rack_rpc::RackRpc, rpc::FleetRpc};
use crate::{
    fleet::{FleetBlueprint, SimulatedFleet},
    hardware::NodeTiming,
    rack::{RackBlueprint, RackTiming},
    reporter::{NodeReport, ReportSender},
};

/// Starts the fleet that the settings describe and serves it.
///
/// # Errors
/// Names the setting, or the file and the place in it, that cannot be used.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let reporter = ReportSender::new(
        &context.settings.gateway.url,
        &context.settings.tls.ca_file,
        context.settings.simulator.speed,
    );
    let reporter = reporter.context("gateway.url")?;
    let (rpc, reports) = fleet(&context)?;
    let mut server = chassis::Server::with_rules(CALL_TABLE);
    let rack = rack(&context.settings.simulator)?.of_fleet(&rpc);
    server.add(FleetServiceServer::new(rpc).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(RackServiceServer::new(rack));
    let ready = chassis::serve(&context, "simulator", listener, server).await?;

    let shutdown = context.tasks.shutdown();
    context.tasks.spawn("node-reports", async move {
        reporter.run(reports, shutdown).await;
        Ok(())
    });
    ready.now();
    Ok(())
}

/// Creates the fleet of the settings and advances its time. Returns the service and the reports of its nodes: at most
/// one report per boot.
///
/// # Errors
/// Names the setting, or the file and the place in it, that cannot be used.
pub fn fleet(context: &Context) -> anyhow::Result<(FleetRpc, mpsc::UnboundedReceiver<NodeReport>)> {
    let (reports, inbox) = mpsc::unbounded_channel();
    let fleet = Arc::new(SimulatedFleet::new(blueprint(&context.settings.simulator)?, reports));
    let shutdown = context.tasks.shutdown();
    let running = Arc::clone(&fleet);
    let until = shutdown.clone();
    context.tasks.spawn("fleet", async move {
        running.run(until).await;
        Ok(())
    });
    Ok((FleetRpc { fleet, shutdown }, inbox))
}

/// Creates the rack of the settings.
///
/// # Errors
/// Names the setting that cannot be used.
pub fn rack(settings: &settings::SimulatorSettings) -> anyhow::Result<RackRpc> {
    Ok(RackRpc::new(RackBlueprint {
        timing: RackTiming::new(settings.speed).context("simulator.speed")?,
        faults: settings.rack.faults.parse().context("simulator.rack.faults")?,
        seed: settings.seed,
        username: settings.rack.username.clone(),
        password: settings.rack.password.clone(),
    }))
}

fn blueprint(settings: &settings::SimulatorSettings) -> anyhow::Result<FleetBlueprint> {
    let (hardware, groups) = inventory(settings)?;
    let nodes = fleet::nodes(&hardware).count();
    let faults: FleetFaults = settings.faults.parse().context("simulator.faults")?;
    Ok(FleetBlueprint {
        timing: NodeTiming::new(settings.seed, settings.speed).context("simulator.speed")?,
        faults: faults.assign(nodes, settings.seed).context("simulator.faults")?,
        up: is_on(&settings.initial_power)?,
        hardware,
        groups,
    })
}

/// Reads hardware and groups from files if they are set. A fleet from a file has only the groups of a file.
fn inventory(settings: &settings::SimulatorSettings) -> anyhow::Result<(Vec<Hardware>, Vec<Group>)> {
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
    ensure!(nodes <= most, "simulator.nodes: {nodes} is more than {most}");
    Ok(topology::generate(nodes))
}

fn is_on(initial_power: &str) -> anyhow::Result<bool> {
    match initial_power {
        "on" => Ok(true),
        "off" => Ok(false),
        other => bail!("simulator.initial_power: {other:?} must be on or off"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chassis::Settings;
    use expect_test::expect;
    use proto::simulation::{ListFaultsRequest, WatchPowerRequest, fleet_service_client::FleetServiceClient};
    use tokio::net::TcpListener;

    use super::*;

    fn with(change: impl Fn(&mut settings::SimulatorSettings)) -> settings::SimulatorSettings {
        let mut simulator = Settings::default().simulator;
        change(&mut simulator);
        simulator
    }

    #[test]
    fn an_unusable_setting_is_named() {
        let bad = [
            with(|s| s.nodes = 0),
            with(|s| s.nodes = u32::MAX),
            with(|s| s.speed = -1.0),
            with(|s| s.faults = "stuck".into()),
            with(|s| s.faults = "stuck-off=97".into()),
            with(|s| s.initial_power = "maybe".into()),
            with(|s| s.inventory = "no/such/file".into()),
            with(|s| s.groups = "no/such/file".into()),
        ];
        let seen = bad.map(|settings| match blueprint(&settings) {
            Ok(_) => "accepted\n".to_owned(),
            Err(error) => format!("{error:#}\n"),
        });
        expect![[r#"
            accepted
            simulator.nodes: 4294967295 is more than 2304000
            simulator.speed: -1 is not a time factor; it must be from 0 (no delay) to 1000
            simulator.faults: "stuck" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
            simulator.faults: 97 nodes are to have a fault and the fleet has 96
            simulator.initial_power: "maybe" must be on or off
            simulator.inventory: no/such/file: cannot be read: No such file or directory (os error 2)
            simulator.groups: no/such/file: cannot be read: No such file or directory (os error 2)
        "#]].assert_eq(&seen.concat());
    }

    #[test]
    fn a_fleet_is_generated_or_read_from_a_file() {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../all-in-one/demo/inventory.json");
        let generated = blueprint(&with(|s| s.nodes = 96)).expect("generated");
        let read = blueprint(&with(|s| s.inventory = demo.into())).expect("read");
        assert_eq!(generated.hardware, read.hardware);
        assert_eq!((generated.groups.len(), read.groups.len()), (2, 0));
    }

    #[tokio::test]
    async fn serves_until_shutdown_even_to_subscribers() {
        let simulator = with(|s| s.faults = "never-reports=1".into());
        let settings = Settings { simulator, ..Settings::default() };
        let context = Context::new(settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        start(context.clone(), listener.into()).await.expect("started");

        let mut client = FleetServiceClient::new(chassis::plain_channel(&url).expect("an address"));
        let faults = client.list_faults(ListFaultsRequest {}).await.expect("answered").into_inner().faults;
        assert_eq!((faults.len(), faults[0].fault.as_str()), (1, "never-reports"));
        let mut changes = client.watch_power(WatchPowerRequest {}).await.expect("subscribed").into_inner();

        context.tasks.shutdown().cancel();
        context.tasks.finished(Duration::from_secs(10)).await.expect("every task ends in time");
        assert!(matches!(changes.message().await, Ok(None)));
    }
}
