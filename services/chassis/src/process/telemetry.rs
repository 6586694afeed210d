//! Telemetry of a process: logs, pretty for people and JSON for machines, and metrics for Prometheus.

use std::{convert::Infallible, io::IsTerminal, sync::OnceLock, time::Duration};

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, reload, util::SubscriberInitExt};

use crate::{
    process::{
        clock,
        traces::{self, SpanCollector},
        usage::ProcessUsage,
    },
    settings::{LogFormat, LogSettings},
};

/// Default of the option `logging_level`. It leaves the level to the settings, so that a process started with more or
/// fewer lines keeps them although the option exists.
const UNSET: &str = "info";

/// Libraries that say less than the level in force. One logs as errors the troubles that the caller of a peer logs as that
/// peer's, such as untrusted certificates; another logs every HTTP/2 frame at `debug`. A filter of the settings may name
/// them again.
const QUIET_LIBRARIES: &str =
    "rustls_platform_verifier=off,h2=warn,sea_orm_migration=warn,request_traces=off";

/// Log level of the process. All its parts log the same way, so that the option is followed once.
static LEVEL: OnceLock<LogFilter> = OnceLock::new();

/// The filter in force and its origin.
struct LogFilter {
    /// The filter of the settings.
    settings: String,
    handle: reload::Handle<EnvFilter, Registry>,
    /// Revision and word of the option that was followed last.
    followed: Mutex<(u64, String)>,
}

/// Sends the log of the process to standard error in the configured format, and its traces to the `collector`, if there is
/// one. It needs the runtime.
///
/// # Errors
/// When the filter or the collector cannot be used, or another subscriber is in place.
pub(crate) fn init(log: &LogSettings, collector: Option<SpanCollector>) -> anyhow::Result<()> {
    let filter = format!("{QUIET_LIBRARIES},{}", log.filter);
    let filter = EnvFilter::try_new(filter).with_context(|| format!("log.filter: '{}'", log.filter))?;
    let (filter, handle) = reload::Layer::new(filter);
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
    let traces = collector.map(traces::layer).transpose()?;
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces).try_init().context("log")?;
    let followed = Mutex::new((0, UNSET.to_owned()));
    // The subscriber above is the first, so the level was unset.
    let _first = LEVEL.set(LogFilter { settings: log.filter.clone(), handle, followed });
    Ok(())
}

/// Logs at the `level` of the option `logging_level`, from now on and in the whole process. A `revision` of the option
/// older than the one that is followed already changes nothing.
///
/// The level of the option takes the place of the filter's level for everything; directives for single targets stay.
/// At `INFO`, its default, the option leaves that level to the settings.
pub(crate) fn follow(revision: u64, level: &str) {
    let Some(process) = LEVEL.get() else { return };
    let word = level.to_ascii_lowercase();
    let mut followed = process.followed.lock();
    if revision < followed.0 {
        return;
    }
    let same = followed.1 == word;
    *followed = (revision, word);
    if same {
        return;
    }
    let told = process.handle.reload(EnvFilter::new(filter(&process.settings, &followed.1)));
    match told {
        Ok(()) => tracing::info!(logging_level = followed.1, "logging as the option says"),
        Err(error) => tracing::warn!(%error, logging_level = followed.1, "the option cannot be followed"),
    }
}

/// The filter of the settings combined with the option. A later directive for the same target replaces an earlier.
fn filter(settings: &str, option: &str) -> String {
    let level = match option {
        UNSET => return format!("{QUIET_LIBRARIES},{settings}"),
        "warning" => "warn",
        // There is nothing above an error.
        "critical" => "error",
        level => level,
    };
    format!("{QUIET_LIBRARIES},{settings},{level}")
}

/// Media type of [`metrics`].
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4";

/// Bounds of histograms of seconds: from a call on the same machine to the longest deadline.
const SECONDS: [f64; 12] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

/// Bounds of histograms of work on machines: from a simulated power-on to the longest boot.
const MINUTES: [f64; 12] = [0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0];

/// End of the names of histograms of work on machines. Of the ends that fit a name, the first one in the alphabet counts,
/// which is this one.
const OF_MACHINES: &str = "_duration_seconds";

/// Build of the process.
const BUILD: &str = "reveille_build_info";

/// Start of the process.
const START: &str = "process_start_time_seconds";

/// Commit of which the process is built, if it names one itself.
static COMMIT: OnceLock<&str> = OnceLock::new();

/// Commit that builds of single parts name, where the builder gives one.
const GIVEN_COMMIT: Option<&str> = option_env!("REVEILLE_COMMIT");

/// Period in which recorded values are summed up, so that they do not pile up without a scrape.
const SUM_UP: Duration = Duration::from_secs(5);

/// Metrics are recorded by the process, so that all its parts show the same.
static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Names the commit of which the process is built, in the metrics. Has to come before [`record_metrics`].
pub fn name_commit(commit: &'static str) {
    // A process is built of one commit.
    let _first = COMMIT.set(commit);
}

/// Begins to record metrics, unless the process does so already.
pub fn record_metrics() {
    METRICS.get_or_init(|| match recorder() {
        Ok(handle) => {
            record_build();
            Some(handle)
        }
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "metrics are not recorded");
            None
        }
    });
}

/// Records version, commit and start of the process, which never change.
fn record_build() {
    metrics::describe_gauge!(BUILD, "Version and commit of the process");
    metrics::describe_gauge!(START, "Start of the process");
    let commit = COMMIT.get().copied().or(GIVEN_COMMIT).unwrap_or("unknown");
    metrics::gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION"), "commit" => commit).set(1.0);
    metrics::gauge!(START).set(clock::now().0 as f64 / 1e3);
}

/// All metrics in Prometheus' text format.
pub fn metrics() -> String {
    let Some(Some(handle)) = METRICS.get() else { return String::new() };
    match ProcessUsage::read() {
        Ok(usage) => handle.render() + &usage.text(),
        Err(error) => {
            tracing::debug!(%error, "the system does not say what the process uses");
            handle.render()
        }
    }
}

/// Sums up recorded values periodically.
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
    let of_machines = Matcher::Suffix(OF_MACHINES.to_owned());
    let builder = builder.set_buckets_for_metric(of_machines, &MINUTES).context("buckets of machines")?;
    builder.install_recorder().context("recorder")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn the_option_takes_the_place_of_the_level_for_everything() {
        let mut rows = String::new();
        for settings in ["info,sea_orm_migration=warn", "debug", "warn,power_controller=debug"] {
            for option in ["info", "debug", "warning", "error", "critical"] {
                let filter = EnvFilter::new(filter(settings, option));
                writeln!(rows, "{settings} {option}: {filter}").unwrap();
            }
        }
        expect![[r#"
            info,sea_orm_migration=warn info: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,info
            info,sea_orm_migration=warn debug: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,debug
            info,sea_orm_migration=warn warning: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,warn
            info,sea_orm_migration=warn error: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,error
            info,sea_orm_migration=warn critical: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,error
            debug info: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,debug
            debug debug: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,debug
            debug warning: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,warn
            debug error: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,error
            debug critical: rustls_platform_verifier=off,sea_orm_migration=warn,request_traces=off,h2=warn,error
            warn,power_controller=debug info: rustls_platform_verifier=off,sea_orm_migration=warn,power_controller=debug,request_traces=off,h2=warn,warn
            warn,power_controller=debug debug: rustls_platform_verifier=off,sea_orm_migration=warn,power_controller=debug,request_traces=off,h2=warn,debug
            warn,power_controller=debug warning: rustls_platform_verifier=off,sea_orm_migration=warn,power_controller=debug,request_traces=off,h2=warn,warn
            warn,power_controller=debug error: rustls_platform_verifier=off,sea_orm_migration=warn,power_controller=debug,request_traces=off,h2=warn,error
            warn,power_controller=debug critical: rustls_platform_verifier=off,sea_orm_migration=warn,power_controller=debug,request_traces=off,h2=warn,error
        "#]]
        .assert_eq(&rows);
    }
}
