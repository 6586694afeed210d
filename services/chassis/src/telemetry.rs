//! Logs: structured fields, pretty for people and JSON for machines.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::settings::{Log, LogFormat};

/// Sends the process's traces to standard error, as the settings say.
///
/// # Errors
/// When the filter cannot be read or another subscriber is in place.
pub fn init(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter).with_context(|| format!("log.filter: '{}'", log.filter))?;
    let pretty = match log.format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Pretty => true,
        LogFormat::Json => false,
    };
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if pretty {
        tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .boxed()
    } else {
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().context("log")
}
