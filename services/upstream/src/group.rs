//! Settings of peers, checked.

use std::{sync::Arc, time::Duration};

use chassis::settings;

use crate::{Peer, client::HttpClients, exchange::CallLimits};

/// Longest deadline. A larger number has most likely the wrong unit.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Systems of one kind at several addresses, such as the BMCs of a machine. The peers of a group share all settings
/// except address and credentials, and share their metric labels.
#[derive(Clone)]
pub struct PeerGroup {
    pub(crate) label: Arc<str>,
    pub(crate) limits: CallLimits,
    /// Largest answer, in bytes.
    pub(crate) largest: u64,
    pub(crate) plain_http: bool,
    pub(crate) batch_size: usize,
    pub(crate) calls_in_flight: usize,
    pub(crate) clients: Arc<HttpClients>,
}

/// A setting with which a peer cannot be called.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct PeerError {
    /// Name of the setting within the peer's section.
    pub field: &'static str,
    /// Reason of the refusal.
    pub reason: String,
}

impl PeerGroup {
    /// Creates a group with the metric label `label`. The `url` and `credentials` of the settings are ignored.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(label: &str, settings: &settings::Peer) -> Result<Self, PeerError> {
        let connect = seconds("connect_seconds", settings.connect_seconds)?;
        let limits = CallLimits {
            connect,
            answer: seconds("answer_seconds", settings.answer_seconds)?,
            total: seconds("total_seconds", settings.total_seconds)?,
        };
        let clients = HttpClients::new(label, settings, connect)?;
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

    /// Creates the peer called `name` in texts, at `url`, with credentials from the place `credentials`, both as in
    /// the settings.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn peer(&self, name: impl Into<String>, url: &str, credentials: &str) -> Result<Peer, PeerError> {
        Peer::of(self.clone(), name.into(), url, credentials)
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
