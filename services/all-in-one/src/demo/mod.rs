//! The demo: a simulated fleet is booted through the whole mesh, as operators would do it.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use chassis::{Context, channel::LARGEST_MESSAGE, convert::time};
use domain::bos_time;
use proto::{
    session::{Progress, Session, WatchSessionsRequest, session_service_client::SessionServiceClient},
    simulation::{ListFaultsRequest, fleet_service_client::FleetServiceClient},
};
use reveille::mesh;

use self::{
    display::Display,
    follow::Following,
    inputs::{Inputs, waits},
    rest::Rest,
    summary::Outcome,
};

mod display;
mod follow;
mod inputs;
mod look;
mod progress;
mod rest;
mod summary;

pub(crate) use self::inputs::Flags;

const TEMPLATE: &str = "demo";

/// Runs the demo as `flags` say.
pub(crate) fn run(flags: Flags) -> ExitCode {
    let fresh = fresh_directory();
    let command = flags.command(fresh.clone());
    let code = chassis::run_command(&command, async |context| demo(context, &flags).await);
    // Databases are closed by now. Nobody else uses a directory with this name.
    if flags.exit && fresh.exists() {
        if let Err(error) = std::fs::remove_dir_all(&fresh) {
            eprintln!("error: cannot remove {}: {error}", fresh.display());
        }
    }
    code
}

fn fresh_directory() -> PathBuf {
    std::env::temp_dir().join(format!("reveille-demo-{}-{}", time::now().0, std::process::id()))
}

/// Starts the mesh and tells the story, until it ends, a signal comes or a part of the mesh dies.
async fn demo(context: Context, flags: &Flags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    let inputs = flags.inputs(&settings.simulator)?;
    inputs.store(&mut settings)?;
    let context = mesh::serve(&context, settings).await?;
    let shutdown = context.tasks.shutdown();
    let story = async {
        match shutdown.run_until_cancelled(story(&context, flags, inputs)).await {
            Some(ended) => ended,
            // Whatever ended the mesh is what counts.
            None => std::future::pending().await,
        }
    };
    let grace = Duration::from_secs(context.settings.shutdown_grace_seconds.into());
    tokio::select! {
        ended = story => {
            shutdown.cancel();
            ended
        }
        stopped = context.tasks.finished(grace) => {
            stopped?;
            if flags.exit { bail!("interrupted before the session ended") } else { Ok(()) }
        }
    }
}

async fn story(context: &Context, flags: &Flags, inputs: Inputs) -> anyhow::Result<()> {
    let settings = &context.settings;
    let rest = Rest::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh      gateway {}, data in {}", settings.gateway.url, settings.data_dir.display());
    rest.put_template(TEMPLATE, inputs.template.body).await.context(inputs.template.source)?;

    let fleet = inputs.nodes.len();
    let following = Following::start(context, inputs.nodes)?;
    following.all_discovered().await;
    println!("fleet     {fleet} nodes discovered, speed {}", settings.simulator.speed);

    rest.set_options(waits(settings.simulator.speed, fleet)).await?;
    let session = session_name();
    following.begin(&session);
    rest.create_session(&session, flags.operation, TEMPLATE).await?;
    println!("session   {session}: {} with template {TEMPLATE}", flags.operation.word());

    let mut display = Display::new();
    let session = tokio::select! {
        session = complete(context, &session, &following) => session?,
        never = display.follow(following.tally()) => match never {},
    };
    following.all_settled().await;
    let faults = faults(context).await?;
    let tally = following.tally();
    let tally = tally.borrow();
    display.finish(&tally);
    let outcome = Outcome { session: &session, tally: &tally, faults: &faults };
    print!("\n{}", summary::render(&outcome));
    if flags.exit {
        return outcome.verdict();
    }
    drop(tally);
    Ok(())
}
