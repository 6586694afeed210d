//! Start, run and end of a binary of the mesh.

use std::{future::Future, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use futures_util::future::BoxFuture;
use tikv_jemallocator::Jemalloc;
use tokio::net::TcpListener;

use crate::{
    Context, Settings, bind,
    mesh::collector::collector,
    process::{capacity, cause::cause_first, telemetry, traces},
    settings::DriverProfile,
};

/// A mesh converts records to messages and back all day, and so allocates many small texts. With the system's allocator
/// a boot took twice the processor time and twice the memory. This allocator also has background threads that return
/// memory unused for a while, which an idle part would not.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Flags that every binary takes.
#[derive(Debug, Clone, Default, Args)]
pub struct CommandFlags {
    /// TOML file with settings; see --print-config for every key
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Systems around the machine; --config then gives their addresses
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t)]
    pub profile: DriverProfile,
    /// Set one key, such as gateway.listen=127.0.0.1:8080; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Directory for SQLite files
    #[arg(long, value_name = "DIRECTORY")]
    pub data_dir: Option<PathBuf>,
    /// Log filter, such as info or info,power_controller=debug
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Print the settings in force as TOML, without passwords of databases, and leave
    #[arg(long)]
    pub print_config: bool,
    /// Settings below every file, variable and flag; a program may have its own.
    #[arg(skip)]
    pub defaults: Settings,
}

#[derive(Parser)]
#[command(version)]
struct ServiceArguments {
    #[command(flatten)]
    command: CommandFlags,
}

impl CommandFlags {
    /// The settings in force: defaults, profile, file, environment, flags.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let mut overrides = self.set.clone();
        if let Some(directory) = &self.data_dir {
            overrides.push(("data_dir".into(), directory.display().to_string()));
        }
        if let Some(filter) = &self.log {
            overrides.push(("log.filter".into(), filter.clone()));
        }
        let source = self.config.as_ref().map(|file| format!("settings, with {}", file.display()));
        let context = source.unwrap_or_else(|| "settings".to_owned());
        self.defaults.or_from(self.profile, self.config.as_deref(), &overrides).context(context)
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| format!("'{text}' has no '=' between key and value"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Start of a part, which ends when the part serves. It is boxed, so that a part is compiled with its own crate and not
/// once more with every program that starts it.
pub type Start = BoxFuture<'static, anyhow::Result<()>>;

/// Runs one service as a process of its own: reads flags and settings, listens, starts it, and stops in
/// order at SIGTERM or Ctrl-C. `key` is its section of the settings.
pub fn run<L: From<TcpListener>>(
    key: &'static str,
    listen: fn(&Settings) -> SocketAddr,
    start: fn(Context, L) -> Start,
) -> ExitCode {
    // Set here because a flattened group of flags replaces the description by its own.
    let program =
        ServiceArguments::command().name(key).about("Serves one part of the mesh until Ctrl-C or SIGTERM");
    let given =
        ServiceArguments::from_arg_matches(&program.get_matches()).unwrap_or_else(|error| error.exit());
    let command = given.command;
    let start = |context: Context| async move {
        let listener = bind(key, listen(&context.settings)).await?;
        start(context, listener.into()).await
    };
    finished(try_run(&command, &[key], start))
}

/// Runs the tasks of `start` until a signal or until a task dies. Prints an error with its root cause first.
pub fn run_command<S, F>(command: &CommandFlags, start: S) -> ExitCode
where
    S: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    finished(try_run(command, &[], start))
}

fn finished(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", cause_first(&error));
            ExitCode::FAILURE
        }
    }
}

/// Runs `parts`, or all of them if none is named.
fn try_run<S, F>(command: &CommandFlags, parts: &[&str], start: S) -> anyhow::Result<()>
where
    S: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let settings = command.settings()?;
    if command.print_config {
        print!("{}", settings.shown()?);
        return Ok(());
    }
    settings.check_encryption().map_err(anyhow::Error::msg)?;
    keep_files_private();
    decline_huge_pages();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("runtime")?;
    let _entered = runtime.enter();
    telemetry::init(&settings.log, collector(&settings.traces, service_name(parts))?)?;
    telemetry::record_metrics();
    capacity::raise_descriptor_limit();
    let context = Context::new(settings);
    context.capacity.check(parts);
    let outcome = runtime.block_on(supervise(context, start));
    traces::finish();
    outcome
}

/// Returns the name of a process with these `parts`, or with all of them if none is named, for collectors of traces.
fn service_name(parts: &[&str]) -> String {
    match parts {
        [part] => format!("reveille-{}", part.replace('_', "-")),
        _ => "reveille".to_owned(),
    }
}

/// Declines huge pages: the allocator requests pages of 2 MiB, and the mesh uses them only in part. They cost a quarter
/// of its memory, and clearing them took a quarter of the time to start with a large machine.
fn decline_huge_pages() {
    #[cfg(target_os = "linux")]
    {
        // They stay on where the system does not let a process decline them.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}

/// Makes files and directories that the process creates those of its user alone: databases have tokens of boots.
pub fn keep_files_private() {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::Mode;
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
    }
}

async fn supervise<S, F>(context: Context, start: S) -> anyhow::Result<()>
where
    S: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let grace = Duration::from_secs(context.settings.shutdown_grace_seconds.into());
    let tasks = context.tasks.clone();
    tokio::spawn(stop_at_signal(context.clone()));
    tasks.spawn_until_shutdown("metrics", telemetry::sum_up_metrics());
    let started = start(context).await;
    if started.is_err() {
        tasks.shutdown().cancel();
    }
    let finished = tasks.finished(grace).await;
    started.and(finished)
}

async fn stop_at_signal(context: Context) {
    let signal = next_signal().await;
    match signal {
        Ok(name) => tracing::info!(signal = name, "stopping"),
        Err(error) => tracing::error!(%error, "cannot listen for signals, stopping"),
    }
    context.tasks.shutdown().cancel();
}

async fn next_signal() -> std::io::Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
