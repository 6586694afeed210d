//! Exporter of spans that logs when the collector is away and when it is back.

use std::time::Duration;

use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use parking_lot::Mutex;

use crate::process::pause::FailureStreak;

/// Exporter that logs the beginning and the end of its troubles.
#[derive(Debug)]
pub(super) struct LoggedExporter<E> {
    exporter: E,
    /// Address of the collector.
    url: String,
    failures: Mutex<FailureStreak>,
}

impl<E> LoggedExporter<E> {
    pub(super) fn new(exporter: E, url: String) -> Self {
        Self { exporter, url, failures: Mutex::default() }
    }
}

impl<E: SpanExporter> SpanExporter for LoggedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let outcome = self.exporter.export(batch).await;
        let url = &self.url;
        let mut failures = self.failures.lock();
        match &outcome {
            Ok(()) => {
                if let Some(failures) = failures.end() {
                    tracing::info!(url, failures, "the collector takes spans again");
                }
            }
            Err(error) if failures.add() => {
                tracing::warn!(url, %error, "the collector does not take spans, which are lost");
            }
            Err(_) => {}
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
