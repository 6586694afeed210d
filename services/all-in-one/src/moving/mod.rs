//! Migration: `reveille import` and `reveille export`.
//!
//! Both speak the REST contract, so they work with a Reveille anywhere, and export works with BOS too. The files are
//! those of the export procedure of BOS: `v2/options.json`, `v2/sessiontemplates.json` and `v2/components.json`, each
//! with the answer of the list of that name.
//!
//! An import writes whole records, one request for many of them, and can be repeated: existing records stay as they
//! are. Nothing acts on a node because of an import, unless it was asked for: records are stored disabled.

use std::{future::Future, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use self::{report::ImportReport, site::RestSite};

mod array;
mod component;
mod export;
mod file;
mod import;
mod option;
mod record;
mod report;
mod site;
mod template;

/// Flags of `reveille import`.
#[derive(Debug, Args)]
pub(crate) struct ImportFlags {
    /// Directory of a backup: the unpacked archive of the BOS export procedure, or the output of `reveille export`
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Treatment of components that are enabled in the backup
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    enabled: EnabledComponents,
    #[command(flatten)]
    common: SiteFlags,
}

/// Flags of `reveille export`.
#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// Where to write; created where missing, and files of an earlier export are replaced
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    #[command(flatten)]
    common: SiteFlags,
}

#[derive(Debug, Args)]
struct SiteFlags {
    /// Base of the REST contract, without /v2 [default: the gateway of the settings]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// TOML file with settings, for the address of the gateway
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Report the changes without making them
    #[arg(long)]
    dry_run: bool,
}

/// Handling of components that are enabled in a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnabledComponents {
    /// Stored disabled, so that nothing is done to their nodes
    #[default]
    Off,
    /// Stored enabled: Reveille begins to act on their nodes at once
    Keep,
}

impl SiteFlags {
    fn site(&self) -> anyhow::Result<RestSite> {
        if let Some(url) = &self.url {
            return RestSite::new(url);
        }
        let command = chassis::CommandFlags { config: self.config.clone(), ..Default::default() };
        RestSite::new(&format!("{}/apis/bos", command.settings()?.gateway.url))
    }
}

/// Imports a backup. The exit code is zero if no record was skipped.
pub(crate) fn import(flags: &ImportFlags) -> ExitCode {
    run(async {
        let report = ImportReport::new(flags.common.dry_run);
        import::run(&flags.common.site()?, &flags.directory, flags.enabled, report).await
    })
}

/// Writes a backup.
pub(crate) fn export(flags: &ExportFlags) -> ExitCode {
    run(async {
        export::run(&flags.common.site()?, &flags.directory, flags.common.dry_run).await?;
        Ok(ExitCode::SUCCESS)
    })
}

fn run(task: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("runtime");
    runtime.and_then(|runtime| runtime.block_on(task)).unwrap_or_else(|error| {
        eprintln!("error: {}", chassis::cause_first(&error));
        ExitCode::FAILURE
    })
}
