//! Rounds of decisions about queued hosts, and reports of those that change them.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Channel,
    kinds::host::{HostRecord, parse_key, record},
    lease::Term,
    observe::work::WorkQueue,
    process::{clock, pause},
    settings::HostSettings,
    store::resource::Resource as _,
    within,
};
use domain::{
    core::{invalid::Invalid, time::Timestamp},
    host::{
        decision::{HostDecision, HostMetric},
        evidence::{HostMoment, HostPolicy},
        record::progress::{CallCarrier, SlotClaim},
        slots::HostSlots,
        step,
    },
};
use proto::host::{
    self as wire, ReportHostDecisionsRequest, ReportHostDecisionsResponse,
    host_report_service_client::HostReportServiceClient,
};
use tokio::time::Instant;
use tonic::Status;

use super::{convert, counters, evidence, mirrors::HostMirrors};

/// Hosts in one report.
const BATCH: usize = 500;

/// Deadline of a report. A batch commits within a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// Everything that decisions about hosts need. Clones share it.
#[derive(Clone)]
pub(super) struct HostRounds {
    mirrors: HostMirrors,
    queue: WorkQueue<Arc<str>>,
    registry: HostReportServiceClient<Channel>,
    policy: HostPolicy,
    slots: usize,
}

impl HostRounds {
    pub(super) fn new(
        mirrors: HostMirrors,
        queue: WorkQueue<Arc<str>>,
        registry: HostReportServiceClient<Channel>,
        settings: &HostSettings,
    ) -> Self {
        let policy = HostPolicy {
            max_provisioning_retries: settings.provisioning_retries,
            architecture: settings.architecture.as_str().into(),
            power_carrier: if settings.power_by_controller {
                CallCarrier::PowerController
            } else {
                CallCarrier::HostProvisioner
            },
        };
        Self { mirrors, queue, registry, policy, slots: settings.slots as usize }
    }

    /// Decides about all hosts, and about each again when something about it changes, until it is dropped.
    pub(super) async fn decide_all(self, term: Term) -> anyhow::Result<Infallible> {
        let _open = self.queue.open();
        let hosts = self.mirrors.hosts();
        let slots = claimed(self.slots, &hosts);
        self.queue.mark(hosts.iter().map(|host| host.shared_key()));
        HostEvaluator { rounds: self, slots, term, failures: 0 }.work().await
    }
}

/// Returns the table of slots by the claims in the records.
fn claimed(limit: usize, hosts: &[Arc<HostRecord>]) -> HostSlots {
    let mut slots = HostSlots::new(limit);
    for host in hosts {
        if let Ok(known) = record::host(&host.message()) {
            slots.settle(&known.meta.key, known.progress.slot);
        }
    }
    slots
}

/// Decision that changes a host, with the counters to raise once it is stored.
struct DecidedHost {
    report: wire::HostDecision,
    metrics: Vec<HostMetric>,
}

/// Decides about hosts during one term.
struct HostEvaluator {
    rounds: HostRounds,
    slots: HostSlots,
    term: Term,
    /// Reports in a row that failed.
    failures: u32,
}

impl HostEvaluator {
    async fn work(mut self) -> anyhow::Result<Infallible> {
        loop {
            let keys = self.rounds.queue.next(BATCH).await;
            // A mirror that is being replaced by another incarnation may contradict the others.
            self.rounds.mirrors.subjects_reached().await;
            let _turn = self.term.turn("evaluate-hosts");
            let now = clock::now();
            let decided: Vec<_> = keys.iter().filter_map(|key| self.decide(key, now)).collect();
            if !decided.is_empty() {
                self.report(keys, decided).await;
            }
            let due: Vec<Arc<str>> =
                self.slots.due().map(|key| key_text(&key.namespace, &key.name)).collect();
            self.rounds.queue.mark(due);
        }
    }

    /// Decides about one host, schedules the next decision, and returns the report, if there is anything to report.
    fn decide(&mut self, key: &Arc<str>, now: Timestamp) -> Option<DecidedHost> {
        let Some(record) = self.rounds.mirrors.host(key) else {
            self.slots.settle(&parse_key(key), SlotClaim::Nothing);
            self.rounds.queue.unmark(key);
            return None;
        };
        match self.decide_one(&record, now) {
            Ok((decision, decided)) => {
                self.slots.settle(&decision.host.meta.key, decision.slot());
                self.schedule(key, &decision, now);
                decided
            }
            Err(invalid) => {
                tracing::error!(host = &**key, %invalid, "the record of a host, or the report about it, cannot be read");
                self.slots.settle(&parse_key(key), SlotClaim::Nothing);
                self.rounds.queue.unmark(key);
                None
            }
        }
    }

    fn decide_one(
        &self,
        record: &HostRecord,
        now: Timestamp,
    ) -> Result<(HostDecision, Option<DecidedHost>), Invalid> {
        let message = record.message();
        let host = evidence::host(&self.rounds.mirrors, &message)?;
        let seen = evidence::evidence(&self.rounds.mirrors, &message, self.slots.offer(&host.meta.key))?;
        let moment = HostMoment { now, jitter: pause::jitter() };
        let decision = step(&host, &seen, &self.rounds.policy, moment);
        let is_news = decision.host != host || !decision.events.is_empty() || !decision.companions.is_empty();
        let decided = is_news.then(|| DecidedHost {
            report: convert::report(&message, &host.meta.annotations, &decision),
            metrics: decision.metrics.clone(),
        });
        Ok((decision, decided))
    }

    fn schedule(&self, key: &Arc<str>, decision: &HostDecision, now: Timestamp) {
        match decision.look.filter(|_| !decision.is_gone()) {
            Some(look) => self.rounds.queue.mark_at(Arc::clone(key), Instant::now() + look.since(now)),
            None => self.rounds.queue.unmark(key),
        }
    }

    /// Reports decisions, and waits until the mirror shows them, so that no host is decided about on an old record.
    /// Stale hosts have changed meanwhile: the change arrives at the mirror and queues them again.
    async fn report(&mut self, keys: Vec<Arc<str>>, decided: Vec<DecidedHost>) {
        let count = decided.len();
        match self.send(decided.iter().map(|one| one.report.clone()).collect()).await {
            Ok(answer) => {
                self.failures = 0;
                let stale = answer.stale_names.len();
                tracing::debug!(hosts = count, stale, "reported decisions about hosts");
                let is_stale = |one: &&DecidedHost| {
                    one.report.name.as_ref().is_some_and(|name| answer.stale_names.contains(name))
                };
                let stored = decided.iter().filter(|one| !is_stale(one));
                stored.flat_map(|one| &one.metrics).for_each(counters::count);
                // A registry that has lost commits may never show this revision. Decisions about older records come back
                // as stale.
                let shown = self.rounds.mirrors.hosts_reached(answer.revision);
                let _is_shown = tokio::time::timeout(DEADLINE, shown).await;
            }
            Err(status) => {
                self.failures += 1;
                tracing::warn!(%status, failures = self.failures, hosts = count, "cannot report decisions");
                let at = Instant::now() + pause::after(self.failures);
                keys.into_iter().for_each(|key| self.rounds.queue.mark_at(key, at));
            }
        }
    }

    async fn send(&self, decisions: Vec<wire::HostDecision>) -> Result<ReportHostDecisionsResponse, Status> {
        let mut registry = self.rounds.registry.clone();
        let call = registry.report_host_decisions(ReportHostDecisionsRequest { decisions });
        Ok(within(DEADLINE, call).await?.into_inner())
    }
}

fn key_text(namespace: &str, name: &str) -> Arc<str> {
    chassis::kinds::host::key(namespace, name).into()
}
