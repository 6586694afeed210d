//! The demo of bare-metal hosts: registers a simulated rack through the Kubernetes API, shows the hosts becoming
//! available, and boots the nodes that they are.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use chassis::{
    Context, Settings,
    settings::{HostDriverName, InventoryDriver, PowerDriver},
};
use domain::core::id::ComponentId;
use reveille::mesh::{self, MeshListeners};
use tokio::time::{Instant, interval, timeout};

pub(crate) use self::flags::HostDemoFlags;
use self::{rack::DemoHost, table::RackTable, view::TableView};
use super::{
    TEMPLATE, flags::DemoOperation, follow::ProgressWatch, rest::GatewayClient, run_session, stay,
    waits::waits,
};

mod flags;
mod look;
mod rack;
mod table;
mod view;

/// Period of redraws.
const FRAME: Duration = Duration::from_millis(100);

/// Starts the mesh and registers the rack.
///
/// # Errors
/// The mesh cannot start, or the rack does not become available. With `--exit` also: a node does not boot.
pub(crate) async fn demo(context: Context, flags: &HostDemoFlags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    check(&settings)?;
    let listeners = MeshListeners::bind(&mut settings).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;
    super::run_until_stopped(&context, flags.exit, story(&context, flags)).await
}

fn check(settings: &Settings) -> anyhow::Result<()> {
    let is_rack = settings.host_operations.driver == HostDriverName::Simulated;
    ensure!(is_rack, "host_operations.driver: the demo of hosts needs 'simulated'");
    ensure!(
        settings.power.driver == PowerDriver::Simulated,
        "power.driver: the demo of hosts needs 'simulated'"
    );
    ensure!(settings.inventory.driver == InventoryDriver::Hosts, "inventory.driver: the demo needs 'hosts'");
    ensure!(settings.gateway.kubernetes.serve, "gateway.kubernetes.serve: the demo of hosts needs 'true'");
    Ok(())
}

async fn story(context: &Context, flags: &HostDemoFlags) -> anyhow::Result<()> {
    let settings = &context.settings;
    let rest = GatewayClient::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh     {}, data in {}", settings.gateway.url, settings.data_dir.display());
    let hosts = rack::hosts(flags.hosts);
    let nodes = hosts.iter().map(|host| ComponentId::parse(host.xname())).collect::<Result<Vec<_>, _>>()?;
    let following = ProgressWatch::start(context, nodes)?;
    make_available(&rest, settings, flags, &hosts).await?;
    following.all_discovered().await?;
    println!("nodes    {} hosts are nodes of the inventory", hosts.len());

    rest.put_template(TEMPLATE, rack::template()).await.context("template")?;
    rest.set_options(waits(settings.simulator.speed, hosts.len())).await?;
    let ended = run_session(context, &rest, &following, DemoOperation::Reboot).await?;
    let hints = |_: &str| look::around(settings, &hosts, &ended.session.name);
    ended.tell(&following, &BTreeMap::new(), flags.exit, hints)?;
    stay(flags.exit).await
}

/// Registers the hosts, and waits until all are available.
async fn make_available(
    rest: &GatewayClient,
    settings: &Settings,
    flags: &HostDemoFlags,
    hosts: &[DemoHost],
) -> anyhow::Result<()> {
    let speed = settings.simulator.speed;
    println!("rack     {} hosts; their work takes {speed} of the time of real hardware\n", hosts.len());
    let began = Instant::now();
    let registered = register(rest, settings, hosts);
    match flags.patience(speed) {
        Some(patience) => {
            timeout(patience, registered).await.context("some hosts did not become available")??;
        }
        None => registered.await?,
    }
    let elapsed = began.elapsed().as_secs_f64();
    println!("\nhosts    {} are available after {elapsed:.1} s", hosts.len());
    Ok(())
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
