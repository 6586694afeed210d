//! The demo of bare-metal hosts: registers a simulated rack through the Kubernetes API, shows the hosts becoming
//! available, and the components that they become.
//!
//! The demo ends there: sessions cannot switch hosts yet, whose power is switched by the host provisioner alone.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use chassis::{
    Context, Settings,
    settings::{HostDriverName, InventoryDriver},
};
use reveille::mesh::{self, MeshListeners};
use tokio::time::{Instant, interval, sleep, timeout};

pub(crate) use self::flags::HostDemoFlags;
use self::{rack::DemoHost, table::RackTable, view::TableView};
use super::rest::GatewayClient;

mod flags;
mod look;
mod rack;
mod table;
mod view;

/// Period of redraws.
const FRAME: Duration = Duration::from_millis(100);

/// Longest time until available hosts are components.
const DISCOVERY: Duration = Duration::from_secs(30);

/// Starts the mesh and registers the rack.
///
/// # Errors
/// The mesh cannot start, or the rack does not become available.
pub(crate) async fn demo(context: Context, flags: &HostDemoFlags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    check(&settings)?;
    let listeners = MeshListeners::bind(&mut settings).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;
    super::run_until_stopped(&context, flags.exit, story(&context.settings, flags)).await
}

fn check(settings: &Settings) -> anyhow::Result<()> {
    let is_rack = settings.host_operations.driver == HostDriverName::Simulated;
    ensure!(is_rack, "host_operations.driver: the demo of hosts needs 'simulated'");
    ensure!(settings.inventory.driver == InventoryDriver::Hosts, "inventory.driver: the demo needs 'hosts'");
    ensure!(settings.gateway.kubernetes.serve, "gateway.kubernetes.serve: the demo of hosts needs 'true'");
    Ok(())
}

async fn story(settings: &Settings, flags: &HostDemoFlags) -> anyhow::Result<()> {
    let rest = GatewayClient::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh     {}, data in {}", settings.gateway.url, settings.data_dir.display());
    let hosts = rack::hosts(flags.hosts);
    let speed = settings.simulator.speed;
    println!("rack     {} hosts; their work takes {speed} of the time of real hardware\n", hosts.len());

    let began = Instant::now();
    let registered = register(&rest, settings, &hosts);
    match flags.patience(speed) {
        Some(patience) => {
            timeout(patience, registered).await.context("some hosts did not become available")??
        }
        None => registered.await?,
    }
    let elapsed = began.elapsed().as_secs_f64();
    timeout(DISCOVERY, discovered(&rest, &hosts)).await.context("some hosts are no components yet")??;
    println!("\n{} hosts are available after {elapsed:.1} s, and components of the inventory", hosts.len());
    if flags.exit {
        return Ok(());
    }
    println!("{}", look::around(settings, &hosts));
    println!("press Ctrl-C to stop");
    std::future::pending().await
}

/// Creates the hosts, and shows them until all are available.
async fn register(rest: &GatewayClient, settings: &Settings, hosts: &[DemoHost]) -> anyhow::Result<()> {
    // The watch begins first, so that it shows every state.
    let mut watch = rest.watch_hosts().await?;
    for host in hosts {
        rest.create_object(rack::SECRETS, host.secret(&settings.simulator.rack)).await?;
        rest.create_object(rack::HOSTS, host.manifest()).await?;
    }
    let mut table = RackTable::new(hosts, Instant::now().into_std());
    let mut view = TableView::new();
    let mut frames = interval(FRAME);
    while !table.is_available() {
        tokio::select! {
            change = watch.next() => match change? {
                Some(host) => table.note(&host, Instant::now().into_std()),
                None => watch = rest.watch_hosts().await?,
            },
            _ = frames.tick() => {}
        }
        view.show(&table, Instant::now().into_std());
    }
    view.finish();
    Ok(())
}

/// Waits until every host is a component.
async fn discovered(rest: &GatewayClient, hosts: &[DemoHost]) -> anyhow::Result<()> {
    for host in hosts {
        while !rest.has_component(&host.xname()).await? {
            sleep(FRAME).await;
        }
    }
    Ok(())
}
