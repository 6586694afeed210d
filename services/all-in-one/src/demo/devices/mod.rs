//! The demo of edge devices: simulated agents enrol over the port of agents, a person approves them, a fleet gives them a
//! template and then another, and the statuses show how it goes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use chassis::{Context, Settings};
use reveille::mesh::{self, MeshListeners};
use serde_json::Value;
use simulator::agents::{self, AgentPlan, AgentSite, AgentTrouble};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::flags::DeviceDemoFlags;
use self::progress::DeviceTally;
use super::{rest::GatewayClient, stay};

mod documents;
mod flags;
mod look;
mod progress;

/// Period in which the devices are read.
const FRAME: Duration = Duration::from_millis(200);

/// Image of the first and of the second template.
const IMAGES: [&str; 2] = ["registry.example/kiosk:1", "registry.example/kiosk:2"];

/// Starts the mesh and the agents.
///
/// # Errors
/// The mesh cannot start. With `--exit` also: a device does not reach the second template.
pub(crate) async fn demo(context: Context, flags: &DeviceDemoFlags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    ensure!(settings.gateway.flightctl.serve, "gateway.flightctl.serve: the demo of devices needs 'true'");
    ensure!(
        !settings.gateway.agents.listen.is_empty(),
        "gateway.agents.listen: the demo of devices needs one"
    );
    settings.gateway.agents.listen = address(&settings.gateway.agents.listen)?;
    let listeners = MeshListeners::bind(&mut settings).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;
    super::run_until_stopped(&context, flags.exit, story(&context, flags)).await
}

/// Returns the address of the port of agents, with a free port in place of 0: the agents have to know it.
fn address(listen: &str) -> anyhow::Result<String> {
    let bound = std::net::TcpListener::bind(listen).context("gateway.agents.listen")?;
    Ok(bound.local_addr().context("local address")?.to_string())
}

async fn story(context: &Context, flags: &DeviceDemoFlags) -> anyhow::Result<()> {
    let settings = &context.settings;
    let rest = GatewayClient::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh     {}, data in {}", settings.gateway.url, settings.data_dir.display());
    let site = site(settings);
    let plans = plans(flags.devices.into());
    let names = agents::start(context, &site, plans.clone())?;
    let speed = settings.simulator.speed;
    println!(
        "agents   {} at {}; their work takes {speed} of the time of real devices",
        names.len(),
        site.url
    );

    let patience = flags.patience(speed);
    let began = Instant::now();
    within(patience, approve(&rest, names.len())).await.context("some devices did not enrol")?;
    println!("enrolled {} devices are approved after {:.1} s\n", names.len(), began.elapsed().as_secs_f64());
    for image in IMAGES {
        rest.put_fleet(documents::FLEET, documents::fleet(image)).await?;
        println!("rollout  fleet {} gives its devices {image}", documents::FLEET);
        let began = Instant::now();
        let followed = within(patience, follow(&rest, names.len(), image)).await;
        followed.with_context(|| format!("some devices did not reach {image}"))?;
        println!("reached  every device runs {image} after {:.1} s\n", began.elapsed().as_secs_f64());
    }
    for (name, plan) in names.iter().zip(&plans).filter(|(_, plan)| plan.trouble != AgentTrouble::None) {
        println!("trouble  {name}: {}", told(plan.trouble));
    }
    if !flags.exit {
        let failed = plans.iter().position(|plan| plan.trouble == AgentTrouble::AppFails).unwrap_or(0);
        println!("\n{}", look::around(settings, &names[failed]));
    }
    stay(flags.exit).await
}

/// Waits for a step, for as long as the demo may take if it is to leave.
async fn within(
    patience: Option<Duration>,
    step: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    match patience {
        Some(patience) => timeout(patience, step).await?,
        None => step.await,
    }
}

fn site(settings: &Settings) -> AgentSite {
    AgentSite {
        url: format!("https://{}", settings.gateway.agents.listen),
        authority: settings.data_dir.join("agents-certificate.pem"),
        enrolling: settings.data_dir.join("device-enrolment.pem"),
        speed: settings.simulator.speed,
    }
}

/// Returns the devices: one with each kind of trouble, as far as there are so many, and half of them at each site.
fn plans(count: usize) -> Vec<AgentPlan> {
    let troubles = [AgentTrouble::AppFails, AgentTrouble::UpdateFails, AgentTrouble::GoesSilent];
    let plan = |index: usize| AgentPlan {
        labels: BTreeMap::from([
            ("demo".to_owned(), "true".to_owned()),
            ("site".to_owned(), if index.is_multiple_of(2) { "north" } else { "south" }.to_owned()),
        ]),
        trouble: index.checked_sub(1).and_then(|index| troubles.get(index)).copied().unwrap_or_default(),
    };
    (0..count).map(plan).collect()
}

fn told(trouble: AgentTrouble) -> &'static str {
    match trouble {
        AgentTrouble::None => "none",
        AgentTrouble::AppFails => "an application does not start since the second template",
        AgentTrouble::UpdateFails => "the first attempt at the second template failed",
        AgentTrouble::GoesSilent => "was cut off when the second template came, and caught up",
    }
}

/// Approves requests until as many devices as there are agents are enrolled.
async fn approve(rest: &GatewayClient, count: usize) -> anyhow::Result<()> {
    let mut approved = 0;
    while approved < count {
        for name in rest.enrolments_to_approve().await? {
            rest.approve_enrolment(&name).await?;
            approved += 1;
        }
        sleep(FRAME).await;
    }
    Ok(())
}

/// Shows the numbers of devices whenever they change, until all run `image`.
async fn follow(rest: &GatewayClient, count: usize, image: &str) -> anyhow::Result<()> {
    let mut shown = String::new();
    loop {
        let devices: Vec<Value> = rest.devices().await?;
        let tally = DeviceTally::of(&devices, image);
        let line = tally.to_string();
        if line != shown {
            println!("  {line}");
            shown = line;
        }
        if tally.is_reached(count) {
            return Ok(());
        }
        sleep(FRAME).await;
    }
}
