//! The demos, with the calls of an operator: one boots a simulated fleet through the whole mesh, one ([`hosts`]) registers
//! a simulated rack of bare-metal hosts first, and one ([`devices`]) enrols simulated edge devices.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use chassis::{CommandFlags, Context, process::clock};
use clap::{Args, Subcommand};
use domain::core::bos_time;
use proto::session::Session;
use reveille::mesh::{self, MeshListeners};

use self::{
    devices::DeviceDemoFlags,
    display::ProgressDisplay,
    flags::{DemoFlags, DemoOperation},
    follow::ProgressWatch,
    hosts::HostDemoFlags,
    inputs::DemoInputs,
    machine::DemoMachine,
    rest::GatewayClient,
    summary::DemoSummary,
    waits::waits,
};

mod devices;
mod display;
mod flags;
mod follow;
mod hosts;
mod inputs;
mod look;
mod machine;
mod progress;
mod rest;
mod summary;
mod waits;

/// Name of the stored template.
const TEMPLATE: &str = "demo";

/// Arguments of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    #[command(subcommand)]
    subject: Option<DemoSubject>,
    #[command(flatten)]
    fleet: DemoFlags,
}

/// Subjects of demos besides the fleet.
#[derive(Debug, Subcommand)]
enum DemoSubject {
    /// Register a simulated rack of bare-metal hosts, show how they become available, boot them, and keep serving
    Hosts(HostDemoFlags),
    /// Enrol simulated edge devices, roll two templates out to them, show their statuses, and keep serving
    Devices(DeviceDemoFlags),
}

/// Runs the demo.
pub(crate) fn run(arguments: DemoArguments) -> ExitCode {
    let DemoArguments { subject, fleet } = arguments;
    match subject {
        None => {
            let command = |directory| fleet.command(directory);
            run_in_fresh_directory(fleet.exit, command, async |context| demo(context, &fleet).await)
        }
        Some(DemoSubject::Hosts(flags)) => {
            let command = |directory| flags.command(directory);
            run_in_fresh_directory(flags.exit, command, async |context| hosts::demo(context, &flags).await)
        }
        Some(DemoSubject::Devices(flags)) => {
            let command = |directory| flags.command(directory);
            run_in_fresh_directory(flags.exit, command, async |context| devices::demo(context, &flags).await)
        }
    }
}

/// Runs a demo whose data directory is a new one unless `command` says otherwise. One that leaves removes it.
fn run_in_fresh_directory<S, F>(exit: bool, command: impl Fn(PathBuf) -> CommandFlags, demo: S) -> ExitCode
where
    S: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let fresh = std::env::temp_dir().join(format!("reveille-demo-{}-{}", clock::now().0, std::process::id()));
    let code = chassis::run_command(&command(fresh.clone()), demo);
    // The name of the directory is unique, and the mesh has stopped.
    if !exit || !fresh.exists() {
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

/// Starts the mesh and boots the fleet.
async fn demo(context: Context, flags: &DemoFlags) -> anyhow::Result<()> {
    let mut settings = (*context.settings).clone();
    let inputs = DemoInputs::read(flags, &settings.simulator)?;
    let listeners = MeshListeners::bind(&mut settings).await?;
    inputs.store(&mut settings)?;
    let machine = DemoMachine::start(&mut settings, &inputs).await?;
    let context = Context { settings: Arc::new(settings), ..context };
    mesh::start(&context, listeners).await?;
    run_until_stopped(&context, flags.exit, story(&context, flags, inputs, &machine)).await
}

/// Runs a story until it ends, a signal arrives or a part of the mesh fails.
async fn run_until_stopped(
    context: &Context,
    exit: bool,
    story: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let shutdown = context.tasks.shutdown();
    let story = async {
        match shutdown.run_until_cancelled(story).await {
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
            Ok(()) if exit => bail!("interrupted before the demo ended"),
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
    println!("page     {}/ in a browser", settings.gateway.url);

    let fleet = inputs.fleet.nodes.len();
    let speed = settings.simulator.speed;
    rest.put_template(TEMPLATE, inputs.template.body).await.context(inputs.template.source)?;
    let following = ProgressWatch::start(context, inputs.fleet.nodes)?;
    following.all_discovered().await?;
    println!("fleet    {fleet} nodes discovered; their hardware takes {speed} of the time of real hardware");
    rest.set_options(waits(speed, fleet)).await?;
    let ended = run_session(context, &rest, &following, flags.operation).await?;
    let faults = machine.faults(context).await?;
    ended.tell(&following, &faults, flags.exit, |node| look::around(settings, &ended.session.name, node))?;
    stay(flags.exit).await
}

/// Session of a demo that has ended.
struct EndedSession {
    session: Session,
    operation: DemoOperation,
    /// Time from the request until the completion.
    elapsed: Duration,
}

impl EndedSession {
    /// Prints the summary, and `hints` about one of its nodes if the mesh keeps running.
    ///
    /// # Errors
    /// With `exit`, the failure of the session.
    fn tell(
        &self,
        following: &ProgressWatch,
        faults: &BTreeMap<String, String>,
        exit: bool,
        hints: impl FnOnce(&str) -> String,
    ) -> anyhow::Result<()> {
        let tally = following.tally();
        let outcome = DemoSummary {
            session: &self.session.name,
            operation: self.operation.word(),
            error: self.session.error(),
            elapsed: self.elapsed,
            tally: &tally.borrow(),
            faults,
        };
        println!("\n{}", summary::render(&outcome));
        if exit {
            return outcome.verdict();
        }
        println!("{}", hints(&outcome.example()));
        Ok(())
    }
}

/// Runs a session with the stored template on the nodes that `following` knows, and shows the progress.
async fn run_session(
    context: &Context,
    rest: &GatewayClient,
    following: &ProgressWatch,
    operation: DemoOperation,
) -> anyhow::Result<EndedSession> {
    let name = session_name();
    following.begin(&name);
    rest.create_session(&name, operation, TEMPLATE).await?;
    println!("session  {name}: {} with template {TEMPLATE}\n", operation.word());

    let mut display = ProgressDisplay::new();
    let session = tokio::select! {
        session = following.complete(context, &name) => session?,
        never = display.follow(following.tally()) => match never {},
    };
    let elapsed = following.elapsed();
    following.caught_up().await;
    display.finish(&following.tally().borrow());
    Ok(EndedSession { session, operation, elapsed })
}

/// Keeps the mesh running until it is stopped, unless the demo is to leave.
async fn stay(exit: bool) -> anyhow::Result<()> {
    if exit {
        return Ok(());
    }
    println!("press Ctrl-C to stop");
    std::future::pending().await
}

/// Returns a name such as `first-light-20251120T165501.250`: demos with the same data directory may follow each other
/// fast.
fn session_name() -> String {
    let now = clock::now();
    let text: String = bos_time::text(now).chars().filter(char::is_ascii_alphanumeric).collect();
    format!("first-light-{text}.{:03}", now.0.rem_euclid(1000))
}
