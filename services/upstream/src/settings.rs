//! Settings of calls, checked.

use std::{sync::Arc, time::Duration};

use chassis::settings;

use crate::{PeerError, client::HttpClients, exchange::CallLimits};

/// Longest deadline. A larger number has most likely the wrong unit.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Settings that the peers of a group share. Clones share the HTTP clients.
#[derive(Clone)]
pub(crate) struct CallSettings {
    pub label: Arc<str>,
    pub limits: CallLimits,
    /// Largest answer, in bytes.
    pub largest: u64,
    pub plain_http: bool,
    pub batch_size: usize,
    pub calls_in_flight: usize,
    pub clients: Arc<HttpClients>,
}

/// Warns of settings that take every certificate.
pub(crate) fn warn_if_unverified(label: &str, settings: &settings::Peer) {
    if !settings.verify_tls {
        tracing::warn!(peer = label, "TLS certificates are not verified: verify_tls is false");
    }
}

impl CallSettings {
    /// Checks the settings of calls with the metric label `label`. Leaves out `url` and `credentials`.
    pub(crate) fn new(label: &str, settings: &settings::Peer) -> Result<Self, PeerError> {
        let connect = seconds("connect_seconds", settings.connect_seconds)?;
        let limits = CallLimits {
            connect,
            answer: seconds("answer_seconds", settings.answer_seconds)?,
            total: seconds("total_seconds", settings.total_seconds)?,
        };
        let clients = HttpClients::new(settings, connect)?;
        Ok(Self {
            label: label.into(),
            limits,
            largest: largest(settings.largest_answer)?,
            plain_http: settings.plain_http,
            batch_size: count("batch_size", settings.batch_size)?,
            calls_in_flight: count("calls_in_flight", settings.calls_in_flight)?,
            clients: Arc::new(clients),
        })
    }
}

fn seconds(field: &'static str, seconds: f64) -> Result<Duration, PeerError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
        _ => Err(PeerError { field, reason: "has to be more than 0 and at most 86400 seconds".to_owned() }),
    }
}

fn largest(bytes: u64) -> Result<u64, PeerError> {
    let none = PeerError { field: "largest_answer", reason: "has to be at least 1".into() };
    if bytes == 0 { Err(none) } else { Ok(bytes) }
}

fn count(field: &'static str, count: u32) -> Result<usize, PeerError> {
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(PeerError { field, reason: "has to be at least 1".into() }),
    }
}
