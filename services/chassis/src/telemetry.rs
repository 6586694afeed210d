//! What a process tells about itself: logs, pretty for people and JSON for machines, and metrics for Prometheus.

use std::{convert::Infallible, io::IsTerminal, sync::OnceLock, time::Duration};

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
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

/// Media type of [`metrics`].
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4";

/// Bounds of histograms of seconds: from a call on the same machine to the longest deadline.
const SECONDS: [f64; 12] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// How often what was recorded is summed up, so that it does not pile up when nobody asks for it.
const SUM_UP: Duration = Duration::from_secs(5);

/// Metrics are recorded by the process, so that all its parts show the same.
static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to record metrics, unless the process does so already.
pub fn record_metrics() {
    METRICS.get_or_init(|| match recorder() {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "metrics are not recorded");
            None
        }
    });
}

/// What was recorded so far, in Prometheus' text format.
pub fn metrics() -> String {
    METRICS.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

/// Sums up what was recorded, again and again.
pub(crate) async fn sum_up_metrics() -> anyhow::Result<Infallible> {
    loop {
        tokio::time::sleep(SUM_UP).await;
        if let Some(Some(handle)) = METRICS.get() {
            handle.run_upkeep();
        }
    }
}

fn recorder() -> anyhow::Result<PrometheusHandle> {
    let buckets = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(buckets, &SECONDS).context("buckets")?;
    builder.install_recorder().context("recorder")
}
