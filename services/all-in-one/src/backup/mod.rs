//! `reveille backup` and `reveille restore`: everything that a mesh keeps, on SQLite and on PostgreSQL.
//!
//! - `databases`: the databases of the parts, as the settings name them
//! - `manifest`: what is in a backup
//! - `postgres`: dumps of PostgreSQL, by its own programs
//! - `swap`: files that take the place of others
//! - `write`, `restore`: the two commands

use std::{path::PathBuf, process::ExitCode};

use chassis::{CommandFlags, Settings, cause_first};
use clap::Args;

mod databases;
mod manifest;
mod postgres;
mod restore;
mod swap;
mod write;

/// Flags of `reveille backup`.
#[derive(Args)]
pub(crate) struct BackupFlags {
    /// Directory of the backup, which must not exist yet
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    #[command(flatten)]
    settings: CommandFlags,
}

/// Flags of `reveille restore`.
#[derive(Args)]
pub(crate) struct RestoreFlags {
    /// Directory of the backup
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Do not keep what a database of PostgreSQL has until now, such as a damaged one
    #[arg(long)]
    discard_database: bool,
    #[command(flatten)]
    settings: CommandFlags,
}

/// Writes a backup.
pub(crate) fn backup(flags: &BackupFlags) -> ExitCode {
    run(&flags.settings, async |settings| write::run(&settings, &flags.directory).await)
}

/// Puts a backup in the place of what the mesh keeps.
pub(crate) fn restore(flags: &RestoreFlags) -> ExitCode {
    run(&flags.settings, async |settings| {
        restore::run(&settings, &flags.directory, !flags.discard_database).await
    })
}

fn run(flags: &CommandFlags, task: impl AsyncFnOnce(Settings) -> anyhow::Result<()>) -> ExitCode {
    chassis::keep_files_private();
    let outcome = flags.settings().and_then(|settings| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(task(settings))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", cause_first(&error));
            ExitCode::FAILURE
        }
    }
}
