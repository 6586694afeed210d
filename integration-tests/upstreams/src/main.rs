//! The systems around a machine as a process of their own.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use simulator::{hsm, topology};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use upstreams::{FleetFaults, MachinePlan, PowerService, Upstreams};

/// Plays HSM, PCS, BSS, CFS, IMS, S3 and TAPMS for a fleet of simulated nodes, at the speed of real hardware and of the
/// power service as shipped unless an option makes it faster. The API under /control changes the machine while it runs;
/// the README lists the kinds of trouble.
#[derive(Parser)]
#[command(name = "upstreams", version)]
struct MachineFlags {
    /// Address to listen on, for all systems.
    #[arg(long, default_value = "127.0.0.1:7710")]
    listen: SocketAddr,
    /// Gateway that nodes report their boots to; empty: nodes do not report.
    #[arg(long, default_value = "http://127.0.0.1:7700")]
    gateway_url: String,
    /// Number of nodes, when no inventory file is given.
    #[arg(long, default_value_t = 96)]
    nodes: u32,
    /// File with HSM's answer to `GET /State/Components`, to play that machine.
    #[arg(long)]
    inventory: Option<PathBuf>,
    /// File with HSM's answer to `GET /groups`.
    #[arg(long)]
    groups: Option<PathBuf>,
    /// Seed of durations and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Duration of hardware and power service actions compared with real ones: 1 is as shipped, 0.05 twenty times as
    /// fast, 0 quick, without any delay.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// A quick power service, independent of the hardware's speed: readings and transitions show at once, unlike in any
    /// real service.
    #[arg(long)]
    quick_power: bool,
    /// Faulty nodes: a fraction such as `0.05` or a list such as `stuck-off=2,never-reports=1`.
    #[arg(long, default_value = "0")]
    faults: FleetFaults,
    /// Whether the nodes are up at the start.
    #[arg(long)]
    up: bool,
    /// A tenant and its nodes, such as `blue=x1000c0s0b0n0,x1000c0s0b0n1`; can be repeated.
    #[arg(long, value_parser = tenant)]
    tenant: Vec<(String, Vec<String>)>,
    /// Seconds until the power service first checks a transition, and between checks; as shipped: 15.
    #[arg(long)]
    confirm_seconds: Option<f64>,
    /// Seconds between the power service's readings of the hardware, as shipped: 30; 0: it knows at once.
    #[arg(long)]
    sampling_seconds: Option<f64>,
    /// Most nodes in one transition.
    #[arg(long, default_value_t = 2500)]
    most_nodes: usize,
}

fn tenant(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, ids) = text.split_once('=').ok_or("must be NAME=ID,ID,…")?;
    Ok((name.to_owned(), ids.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()))
}

fn plan(flags: MachineFlags) -> anyhow::Result<MachinePlan> {
    let most = topology::MOST_NODES;
    anyhow::ensure!(flags.nodes <= most, "--nodes: {} is more than {most}", flags.nodes);
    let mut plan = MachinePlan::as_shipped(flags.nodes).at_speed(flags.speed);
    if flags.quick_power {
        plan.power = PowerService::quick();
    }
    if let Some(file) = &flags.inventory {
        plan.hardware = hsm::read_inventory(file).context("--inventory")?;
        plan.groups = Vec::new();
    }
    if let Some(file) = &flags.groups {
        plan.groups = hsm::read_groups(file).context("--groups")?;
    }
    let seconds = |flag: &str, seconds: f64| {
        Duration::try_from_secs_f64(seconds).with_context(|| format!("{flag}: {seconds}"))
    };
    if let Some(confirm) = flags.confirm_seconds {
        plan.power.confirm_period = seconds("--confirm-seconds", confirm)?.max(Duration::from_millis(1));
    }
    if let Some(sampling) = flags.sampling_seconds {
        plan.power.sampling_period = seconds("--sampling-seconds", sampling)?;
    }
    plan.power.most_nodes = flags.most_nodes;
    let (seed, faults, up, gateway_url) = (flags.seed, flags.faults, flags.up, flags.gateway_url);
    Ok(MachinePlan { seed, faults, up, gateway_url, tenants: flags.tenant.into_iter().collect(), ..plan })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = MachineFlags::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let listen = flags.listen;
    let plan = plan(flags)?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("--listen: {listen}"))?;
    let upstreams = Upstreams::start(plan, listener)?;
    tracing::info!(url = upstreams.url(), nodes = upstreams.summary().nodes, "listening");
    let mut terminated = signal(SignalKind::terminate()).context("signals")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("signals")?,
        _ = terminated.recv() => {}
    }
    upstreams.stop().await;
    Ok(())
}
