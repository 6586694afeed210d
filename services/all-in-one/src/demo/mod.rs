//! The demo: a simulated fleet is booted through the whole mesh, as operators would do it.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use chassis::{Context, convert::time};
use domain::bos_time;
use proto::session::Session;
use reveille::mesh::{self, Listeners};

pub(crate) use self::flags::Flags;
use self::{
    display::Display, follow::Following, inputs::Inputs, machine::Machine, rest::Rest, summary::Outcome,
    waits::waits,
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

/// Runs the demo as `flags` say.
pub(crate) fn run(flags: Flags) -> ExitCode {
    let fresh = std::env::temp_dir().join(format!("reveille-demo-{}-{}", time::now().0, std::process::id()));
    let command = flags.command(fresh.clone());
    let code = chassis::run_command(&command, async |context| demo(context, &flags).await);
    // Nobody else uses a directory with this name, and the mesh is down by now.
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

/// Starts the mesh and tells the story, until it ends, a signal comes or a part of the mesh dies.
async fn demo(context: Context, flags: &Flags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    let inputs = Inputs::read(flags, &settings.simulator)?;
    let listeners = Listeners::bind(&mut settings).await?;
    inputs.store(&mut settings)?;
    let machine = Machine::start(&mut settings, &inputs).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;

    let shutdown = context.tasks.shutdown();
    let story = async {
        match shutdown.run_until_cancelled(story(&context, flags, inputs, &machine)).await {
            Some(ended) if ended.is_ok() || !shutdown.is_cancelled() => ended,
            // Whatever ended the mesh is what counts, and not that its streams end.
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

async fn story(context: &Context, flags: &Flags, inputs: Inputs, machine: &Machine) -> anyhow::Result<()> {
    let settings = &context.settings;
    let rest = Rest::new(&settings.gateway.url)?;
    rest.ready().await?;
    println!("mesh     {}, data in {}", settings.gateway.url, settings.data_dir.display());

    let (fleet, speed) = (inputs.fleet.nodes.len(), settings.simulator.speed);
    rest.put_template(TEMPLATE, inputs.template.body).await.context(inputs.template.source)?;
    let following = Following::start(context, inputs.fleet.nodes)?;
    following.all_discovered().await?;
    println!("fleet    {fleet} nodes discovered; their hardware takes {speed} of the time of real hardware");

    rest.set_options(waits(speed, fleet)).await?;
    let name = session_name();
    following.begin(&name);
    rest.create_session(&name, flags.operation, TEMPLATE).await?;
    println!("session  {name}: {} with template {TEMPLATE}\n", flags.operation.word());

    let mut display = Display::new();
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

/// Prints what came out, and how to look around for those who stay.
///
/// # Errors
/// When nobody stays: what is not as it should be.
fn tell(
    context: &Context,
    flags: &Flags,
    following: &Following,
    session: &Session,
    elapsed: Duration,
    faults: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let tally = following.tally();
    let outcome = Outcome {
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

/// Such as `first-light-20251120T165501.250`: demos that share a data directory may follow each other fast.
fn session_name() -> String {
    let now = time::now();
    let text: String = bos_time::text(now).chars().filter(char::is_ascii_alphanumeric).collect();
    format!("first-light-{text}.{:03}", now.0.rem_euclid(1000))
}
