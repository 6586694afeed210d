//! The report that every booted node makes over REST: which boot data it was started with (BOS reference 8).
//!
//! A report is repeated until it is taken, and again after a period, until the node turns off. Real nodes do so each
//! by itself; here one task does it for all, with so few requests under way that ten thousand nodes that boot at once
//! do not use up the sockets of the machine.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::boot::BootData;

/// Most requests under way. The gateway takes a report in about a millisecond, so more would only queue there.
const MOST_UNDER_WAY: usize = 64;

/// A gateway that takes a request and never answers must not hold its place for ever.
const DEADLINE: Duration = Duration::from_secs(30);

/// What a node has to say, for as long as its boot lasts.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) id: Arc<str>,
    pub(crate) boot: Arc<BootData>,
    /// Cancelled when the node turned off.
    pub(crate) ended: CancellationToken,
}

/// Makes the reports of all nodes.
pub(crate) struct Reporter {
    client: reqwest::Client,
    gateway: String,
    speed: f64,
}

struct Waiting {
    report: Report,
    refusals: u32,
}

impl Reporter {
    /// `gateway` is the address of the gateway, `speed` the factor on pauses between attempts.
    pub(crate) fn new(gateway: &str, speed: f64) -> reqwest::Result<Self> {
        let client =
            reqwest::Client::builder().pool_max_idle_per_host(MOST_UNDER_WAY).timeout(DEADLINE).build()?;
        Ok(Self { client, gateway: gateway.trim_end_matches('/').to_owned(), speed })
    }

    /// Makes the reports that arrive until `shutdown`.
    pub(crate) async fn run(self, mut reports: mpsc::UnboundedReceiver<Report>, shutdown: CancellationToken) {
        let mut waiting = Queue::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            let next = waiting.first_due().filter(|_| under_way.len() < MOST_UNDER_WAY);
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(report) = reports.recv() => {
                    waiting.push(Instant::now(), Waiting { report, refusals: 0 });
                }
                Some((due, again)) = under_way.next() => waiting.push(due, again),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    under_way.extend(waiting.pop().map(|due| self.attempt(due)));
                }
            }
        }
    }

    /// Sends a report, and answers when the node wants to be heard again.
    async fn attempt(&self, waiting: Waiting) -> (Instant, Waiting) {
        let Waiting { report, refusals } = waiting;
        let (pause, refusals) = match self.send(&report).await {
            Ok(()) => (report.boot.report_period, 0),
            Err(reason) => {
                tracing::debug!(component = %report.id, refusals, reason, "boot report not taken");
                (pause(refusals + 1, self.speed), refusals + 1)
            }
        };
        (Instant::now() + pause, Waiting { report, refusals })
    }

    async fn send(&self, report: &Report) -> Result<(), String> {
        let url = format!("{}/apis/bos/v2/components/{}", self.gateway, report.id);
        let body = json!({"id": *report.id, "actual_state": {"bss_token": *report.boot.token}});
        let answer = self.client.patch(url).json(&body).send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        // Read to the end, or the connection cannot be used again.
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(()) } else { Err(format!("{status}: {text}")) }
    }
}

/// Pause before the next attempt after so many refusals: what a node waits, but never so little that a fleet without
/// delays asks the gateway as fast as it can answer.
fn pause(refusals: u32, speed: f64) -> Duration {
    let node = Duration::from_secs(u64::from(refusals.saturating_mul(2).min(30)));
    let least = Duration::from_millis(20 << refusals.saturating_sub(1).min(6)).min(Duration::from_secs(1));
    node.mul_f64(speed).max(least)
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<(Instant, u64), Waiting>,
    sequence: u64,
}

impl Queue {
    fn push(&mut self, due: Instant, waiting: Waiting) {
        self.sequence += 1;
        self.waiting.insert((due, self.sequence), waiting);
    }

    fn first_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// The first whose node is still up.
    fn pop(&mut self) -> Option<Waiting> {
        let (_, first) = self.waiting.pop_first()?;
        Some(first).filter(|first| !first.report.ended.is_cancelled())
    }
}
