//! Reports of booted nodes over REST, with the token of their boot data (BOS reference 8).
//!
//! A report is repeated until it is accepted, and again after a period, until the node turns off. Real nodes report
//! each by itself; here one task sends all reports, with so few concurrent requests that ten thousand nodes that boot
//! at once do not use up the sockets of the machine.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use chassis::mesh::tls::ReloadedValue;
use futures_util::stream::{FuturesUnordered, StreamExt};
use reqwest::{Certificate, Client};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::boot::BootData;

/// Most concurrent requests. The gateway handles a report in about a millisecond, so more would only queue there.
const MOST_UNDER_WAY: usize = 64;

/// Deadline of a request: a gateway that accepts a request and never answers must not hold its slot for ever.
const DEADLINE: Duration = Duration::from_secs(30);

/// Report of a node, valid for one boot.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Id of the node.
    pub id: Arc<str>,
    /// Boot data of the report.
    pub boot: Arc<BootData>,
    /// Cancelled when the node turns off.
    pub ended: CancellationToken,
}

/// Sends the reports of all nodes.
pub struct ReportSender {
    client: ReloadedValue<Client>,
    gateway: String,
    speed: f64,
}

struct PendingReport {
    report: NodeReport,
    refusals: u32,
}

impl ReportSender {
    /// Creates a reporter for the address `gateway`, with the factor `speed` on pauses between attempts. Encrypted, it
    /// trusts the authorities in the file `authorities`, read again when it changes, or those of the system if that is
    /// empty.
    ///
    /// # Errors
    /// The authorities cannot be read, or the HTTP client cannot be created.
    pub fn new(gateway: &str, authorities: &Path, speed: f64) -> anyhow::Result<Self> {
        let is_used = gateway.starts_with("https:") && !authorities.as_os_str().is_empty();
        let authorities = is_used.then(|| authorities.to_owned());
        let client = ReloadedValue::new(authorities.clone(), move || client(authorities.as_deref()))?;
        Ok(Self { client, gateway: gateway.trim_end_matches('/').to_owned(), speed })
    }

    /// Sends the reports that arrive until `shutdown`.
    pub async fn run(self, mut reports: mpsc::UnboundedReceiver<NodeReport>, shutdown: CancellationToken) {
        let mut waiting = ReportQueue::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            let next = waiting.first_due().filter(|_| under_way.len() < MOST_UNDER_WAY);
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(report) = reports.recv() => {
                    waiting.push(Instant::now(), PendingReport { report, refusals: 0 });
                }
                Some((due, again)) = under_way.next() => waiting.push(due, again),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    under_way.extend(waiting.pop().map(|due| self.attempt(due)));
                }
            }
        }
    }

    /// Sends a report, and returns the time of the node's next report.
    async fn attempt(&self, waiting: PendingReport) -> (Instant, PendingReport) {
        let PendingReport { report, refusals } = waiting;
        let (pause, refusals) = match self.send(&report).await {
            Ok(()) => (report.boot.report_period, 0),
            Err(reason) => {
                tracing::debug!(component = %report.id, refusals, reason, "gateway refused boot report");
                (pause(refusals + 1, self.speed), refusals + 1)
            }
        };
        (Instant::now() + pause, PendingReport { report, refusals })
    }

    async fn send(&self, report: &NodeReport) -> Result<(), String> {
        let url = format!("{}/apis/bos/v2/components/{}", self.gateway, report.id);
        let body = json!({"id": *report.id, "actual_state": {"bss_token": *report.boot.token}});
        let request = self.client.current().patch(url).json(&body);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        // The answer is read to its end, so that the connection can be reused.
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(()) } else { Err(format!("{status}: {text}")) }
    }
}

fn client(authorities: Option<&Path>) -> anyhow::Result<Client> {
    // Nodes reach the gateway over the network of the machine, without a proxy.
    let client = Client::builder().no_proxy();
    let client = client.pool_max_idle_per_host(MOST_UNDER_WAY).timeout(DEADLINE);
    let client = match authorities {
        Some(file) => client.tls_certs_only(Certificate::from_pem_bundle(&fs::read(file)?)?),
        None => client,
    };
    Ok(client.build()?)
}

/// Returns the pause after that many refusals: the pause of a real node, but never so short that a fleet without
/// delays floods the gateway.
fn pause(refusals: u32, speed: f64) -> Duration {
    let node = Duration::from_secs(u64::from(refusals.saturating_mul(2).min(30)));
    let least = Duration::from_millis(20 << refusals.saturating_sub(1).min(6)).min(Duration::from_secs(1));
    node.mul_f64(speed).max(least)
}

#[derive(Default)]
struct ReportQueue {
    waiting: BTreeMap<(Instant, u64), PendingReport>,
    sequence: u64,
}

impl ReportQueue {
    fn push(&mut self, due: Instant, waiting: PendingReport) {
        self.sequence += 1;
        self.waiting.insert((due, self.sequence), waiting);
    }

    fn first_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Removes the first report whose node is still up.
    fn pop(&mut self) -> Option<PendingReport> {
        let (_, first) = self.waiting.pop_first()?;
        Some(first).filter(|first| !first.report.ended.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use axum::{Router, extract::Path, http::StatusCode, routing::patch};
    use expect_test::expect;
    use parking_lot::Mutex;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    /// A fake gateway: refuses each node a number of times and records the reports.
    #[derive(Default)]
    struct Gateway {
        refusals: usize,
        attempts: Mutex<HashMap<String, usize>>,
        taken: Mutex<Vec<String>>,
        under_way: AtomicUsize,
        most_under_way: AtomicUsize,
    }

    impl Gateway {
        async fn answer(&self, id: String, body: String) -> StatusCode {
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            let mut attempts = self.attempts.lock();
            let attempt = attempts.entry(id.clone()).or_insert(0);
            *attempt += 1;
            if *attempt <= self.refusals {
                return StatusCode::CONFLICT;
            }
            self.taken.lock().push(format!("{id} {body}"));
            StatusCode::OK
        }
    }

    struct Stage {
        gateway: Arc<Gateway>,
        reports: mpsc::UnboundedSender<NodeReport>,
        _running: [AbortOnDropHandle<()>; 2],
    }

    async fn stage(refusals: usize) -> Stage {
        let gateway = Arc::new(Gateway { refusals, ..Gateway::default() });
        let answering = gateway.clone();
        let answer = move |Path(id): Path<String>, body: String| {
            let gateway = answering.clone();
            async move { gateway.answer(id, body).await }
        };
        let routes = Router::new().route("/apis/bos/v2/components/{id}", patch(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.expect("never fails") });
        let (reports, inbox) = mpsc::unbounded_channel();
        let reporter =
            ReportSender::new(&url, std::path::Path::new(""), 0.0).expect("plain HTTP needs nothing");
        let reporting = tokio::spawn(reporter.run(inbox, CancellationToken::new()));
        Stage { gateway, reports, _running: [serving, reporting].map(AbortOnDropHandle::new) }
    }

    fn report(id: &str, period: Duration) -> NodeReport {
        let boot = Arc::new(BootData { token: "t1".into(), report_period: period });
        NodeReport { id: id.into(), boot, ended: CancellationToken::new() }
    }

    async fn taken(gateway: &Gateway, least: usize) -> Vec<String> {
        let enough = async {
            while gateway.taken.lock().len() < least {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), enough).await.expect("in time");
        gateway.taken.lock().clone()
    }

    const NEVER: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_report_is_repeated_until_it_is_accepted() {
        let stage = stage(3).await;
        stage.reports.send(report("x1000c0s0b0n0", NEVER)).expect("running");
        expect![[r#"x1000c0s0b0n0 {"actual_state":{"bss_token":"t1"},"id":"x1000c0s0b0n0"}"#]]
            .assert_eq(&taken(&stage.gateway, 1).await.join("\n"));
        assert_eq!(stage.gateway.attempts.lock()["x1000c0s0b0n0"], 4);
    }

    #[tokio::test]
    async fn a_fleet_that_boots_at_once_reports_in_turn() {
        let stage = stage(1).await;
        for index in 0..1000 {
            stage.reports.send(report(&format!("n{index}"), NEVER)).expect("running");
        }
        assert_eq!(taken(&stage.gateway, 1000).await.len(), 1000);
        assert!(stage.gateway.most_under_way.load(Ordering::SeqCst) <= MOST_UNDER_WAY);
    }

    #[tokio::test]
    async fn a_node_reports_again_until_it_turns_off() {
        let stage = stage(0).await;
        let stays = report("stays", Duration::from_millis(5));
        let leaves = report("leaves", Duration::ZERO);
        leaves.ended.cancel();
        stage.reports.send(leaves).expect("running");
        stage.reports.send(stays).expect("running");
        let taken = taken(&stage.gateway, 3).await;
        assert!(taken.iter().all(|report| report.starts_with("stays")), "{taken:?}");
    }

    #[test]
    fn pauses_grow_like_those_of_a_node() {
        let row = |speed| [1, 2, 3, 8, 15, 16, 1000].map(|refusals| pause(refusals, speed).as_millis());
        let rows = [1.0, 0.02, 0.0].map(|speed| format!("{speed}: {:?}\n", row(speed)));
        expect![[r#"
            1: [2000, 4000, 6000, 16000, 30000, 30000, 30000]
            0.02: [40, 80, 120, 1000, 1000, 1000, 1000]
            0: [20, 40, 80, 1000, 1000, 1000, 1000]
        "#]]
        .assert_eq(&rows.concat());
    }
}
