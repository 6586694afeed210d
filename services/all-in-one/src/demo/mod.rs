//! The demo: boots a simulated fleet through the whole mesh, with the calls of an operator.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use chassis::{Context, process::clock};
use domain::core::bos_time;
use proto::session::Session;
use reveille::mesh::{self, MeshListeners};

pub(crate) use self::flags::DemoFlags;
use self::{
    display::ProgressDisplay, follow::ProgressWatch, inputs::DemoInputs, machine::DemoMachine,
    rest::GatewayClient, summary::DemoSummary, waits::waits,
};

mod display;
mod flags;
mod follow;
mod inputs;
mod look;
mod machine;
mod progress;
mod rest;
mod summary;
mod waits;

/// Name of the stored template.
const TEMPLATE: &str = "demo";

/// Runs the demo.
pub(crate) fn run(flags: DemoFlags) -> ExitCode {
    let fresh = std::env::temp_dir().join(format!("reveille-demo-{}-{}", clock::now().0, std::process::id()));
    let command = flags.command(fresh.clone());
    let code = chassis::run_command(&command, async |context| demo(context, &flags).await);
    // The name of the directory is unique, and the mesh has stopped.
    if !flags.exit || !fresh.exists() {
        return code;
    }
    match std::fs::remove_dir_all(&fresh) {
        Ok(()) => code,
        Err(error) => {
            eprintln!("error: data_dir: cannot remove {}: {error}", fresh.display());
            ExitCode::FAILURE
        }
    }
}

/// Starts the mesh and runs the demo, until it ends, a signal arrives or a part of the mesh fails.
async fn demo(context: Context, flags: &DemoFlags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    let inputs = DemoInputs::read(flags, &settings.simulator)?;
    let listeners = MeshListeners::bind(&mut settings).await?;
    inputs.store(&mut settings)?;
    let machine = DemoMachine::start(&mut settings, &inputs).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;

    let shutdown = context.tasks.shutdown();
    let story = async {
        match shutdown.run_until_cancelled(story(&context, flags, inputs, &machine)).await {
            Some(ended) if ended.is_ok() || !shutdown.is_cancelled() => ended,
            // The cause that ended the mesh is reported, not the end of its streams.
            Some(_) | None => std::future::pending().await,
        }
    };
    let grace = Duration::from_secs(context.settings.shutdown_grace_seconds.into());
    tokio::select! {
        ended = story => {
            shutdown.cancel();
            ended
        }
        stopped = context.tasks.finished(grace) => match stopped {
            Ok(()) if flags.exit => bail!("interrupted before the session ended"),
            stopped => stopped,
        }
    }
}

async fn story(
    context: &Context,
    flags: &DemoFlags,
    inputs: DemoInputs,
    machine: &DemoMachine,
) -> anyhow::Result<()> {
    let settings = &context.settings;
    let rest = GatewayClient::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh     {}, data in {}", settings.gateway.url, settings.data_dir.display());

    let fleet = inputs.fleet.nodes.len();
    let speed = settings.simulator.speed;
    rest.put_template(TEMPLATE, inputs.template.body).await.context(inputs.template.source)?;
    let following = ProgressWatch::start(context, inputs.fleet.nodes)?;
    following.all_discovered().await?;
    println!("fleet    {fleet} nodes discovered; their hardware takes {speed} of the time of real hardware");

    rest.set_options(waits(speed, fleet)).await?;
    let name = session_name();
    following.begin(&name);
    rest.create_session(&name, flags.operation, TEMPLATE).await?;
    println!("session  {name}: {} with template {TEMPLATE}\n", flags.operation.word());

    let mut display = ProgressDisplay::new();
    let session = tokio::select! {
        session = following.complete(context, &name) => session?,
        never = display.follow(following.tally()) => match never {},
    };
    let elapsed = following.elapsed();
    following.caught_up().await;
    display.finish(&following.tally().borrow());
    let faults = machine.faults(context).await?;
    tell(context, flags, &following, &session, elapsed, &faults)?;
    if flags.exit {
        return Ok(());
    }
    println!("press Ctrl-C to stop");
    std::future::pending().await
}

/// Prints the summary, and hints for exploring the mesh if it keeps running.
///
/// # Errors
/// With `--exit`, the failure of the session.
fn tell(
    context: &Context,
    flags: &DemoFlags,
    following: &ProgressWatch,
    session: &Session,
    elapsed: Duration,
    faults: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let tally = following.tally();
    let outcome = DemoSummary {
        session: &session.name,
        operation: flags.operation.word(),
        error: session.error(),
        elapsed,
        tally: &tally.borrow(),
        faults,
    };
    println!("\n{}", summary::render(&outcome));
    if flags.exit {
        return outcome.verdict();
    }
    println!("{}", look::around(&context.settings, &session.name, &outcome.example()));
    Ok(())
}

/// Returns a name such as `first-light-20251120T165501.250`: demos with the same data directory may follow each other
/// fast.
fn session_name() -> String {
    let now = clock::now();
    let text: String = bos_time::text(now).chars().filter(char::is_ascii_alphanumeric).collect();
    format!("first-light-{text}.{:03}", now.0.rem_euclid(1000))
}
