//! The loop: what is marked is decided, what a decision changes is reported.

use std::{
    collections::HashSet,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use chassis::{
    Channel,
    convert::time,
    lease::{Leases, Shard},
    pause, within,
    work::WorkQueue,
};
use domain::{
    compatibility::Compatibility,
    component::Component,
    evaluation::{Decision, DecisionVersion, evaluate},
    id::ComponentId,
    options::Options,
    report::StatusReport,
    time::Timestamp,
};
use futures_util::StreamExt;
use proto::component::{
    ReportStatusesRequest, ReportStatusesResponse, report_service_client::ReportServiceClient,
};
use tokio::{sync::broadcast, time::Instant};
use tonic::Status;

use crate::{convert, mirrors::Mirrors, rpc::Announced};

/// Components in one report. The registry writes thousands of rows in one statement, and the first ones of
/// a fleet of any size need not wait for the last.
const BATCH: usize = 5000;

/// A batch commits within a second. A registry that is silent for this long has to be asked again; reports
/// that did arrive are stale by then and change nothing.
const DEADLINE: Duration = Duration::from_secs(20);

/// Decides about components until it is dropped.
pub(crate) struct Evaluator {
    mirrors: Mirrors,
    queue: WorkQueue<ComponentId>,
    leases: Leases,
    registry: ReportServiceClient<Channel>,
    announced: broadcast::Sender<Announced>,
    compatibility: Compatibility,
    /// Whether it was logged that components are left to a newer version.
    yields: AtomicBool,
}

/// A decision that changes the component it was made on, and how the registry is told.
struct Decided {
    decision: Decision,
    report: StatusReport,
}

impl Evaluator {
    pub(crate) fn new(
        mirrors: Mirrors,
        queue: WorkQueue<ComponentId>,
        leases: Leases,
        registry: ReportServiceClient<Channel>,
        announced: broadcast::Sender<Announced>,
        compatibility: Compatibility,
    ) -> Self {
        let yields = AtomicBool::default();
        Self { mirrors, queue, leases, registry, announced, compatibility, yields }
    }

    pub(crate) async fn run(self) {
        tokio::join!(self.mark_what_comes(), self.work());
    }

    /// Components that come to this replica are decided on as after a start.
    async fn mark_what_comes(&self) {
        let mut changes = pin!(self.leases.changes());
        while let Some(handover) = changes.next().await {
            let came = |id: &ComponentId| handover.gained.contains(&Shard::of(id.as_str()));
            self.queue.mark(self.mirrors.enabled().filter(came));
        }
    }

    async fn work(&self) {
        let mut failures = 0;
        loop {
            let ids = self.queue.next(BATCH).await;
            // A copy that is being replaced by another incarnation may contradict the others.
            self.mirrors.reached().await;
            let decided = self.decide(ids, time::now());
            if decided.is_empty() {
                continue;
            }
            match self.report(&decided).await {
                Ok(stale) => {
                    failures = 0;
                    self.announce(decided, stale);
                }
                Err(status) => {
                    failures += 1;
                    tracing::warn!(%status, failures, components = decided.len(), "statuses not reported");
                    self.put_off(decided, failures);
                }
            }
        }
    }

    fn decide(&self, ids: Vec<ComponentId>, now: Timestamp) -> Vec<Decided> {
        // Options that change in between have the older revision, and are decided with once more.
        let version = self.mirrors.version();
        let options = self.mirrors.options();
        let mut decided = Vec::new();
        for id in ids {
            let ours = self.leases.holds(id.as_str());
            let component = self.mirrors.component(id.as_str());
            match component.filter(|component| ours && component.is_enabled()) {
                Some(component) => decided.extend(self.decide_one(&component, &options, version, now)),
                None => self.queue.unmark(&id),
            }
        }
        decided
    }

    /// Decides, sets the alarm for the moment at which the decision ends, and keeps what has to be reported.
    fn decide_one(
        &self,
        component: &Component,
        options: &Options,
        version: DecisionVersion,
        now: Timestamp,
    ) -> Option<Decided> {
        if version.is_older_than(component.decided_by) {
            self.queue.unmark(&component.id);
            self.log_newer(component, version);
            return None;
        }
        let decision = evaluate(component, &self.mirrors.evidence(component), options, now);
        let decision = decision.followed(component, self.compatibility);
        match decision.until {
            Some(until) => self.queue.mark_at(component.id.clone(), Instant::now() + until.since(now)),
            None => self.queue.unmark(&component.id),
        }
        let report = decision.report(component, version)?;
        Some(Decided { decision, report })
    }

    /// Logs once that newer rules have decided about components. Newer options of the same rules are on their way to the
    /// mirror.
    fn log_newer(&self, component: &Component, version: DecisionVersion) {
        let (newer, ours) = (component.decided_by.rules, version.rules);
        if newer > ours && !self.yields.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                component = %component.id,
                newer,
                ours,
                "components decided by newer rules are left alone; enable them again to have this version decide"
            );
        }
    }

    /// Reports in one call. Those that come back stale have changed meanwhile: the change is on its way to
    /// the mirror and marks them again.
    async fn report(&self, decided: &[Decided]) -> Result<HashSet<String>, Status> {
        let reports = decided.iter().map(|one| convert::report(&one.report)).collect();
        let mut registry = self.registry.clone();
        let call = registry.report_statuses(ReportStatusesRequest { reports });
        let ReportStatusesResponse { stale_ids } = within(DEADLINE, call).await?.into_inner();
        Ok(stale_ids.into_iter().collect())
    }

    fn announce(&self, decided: Vec<Decided>, stale: HashSet<String>) {
        let taken = decided.iter().filter(|one| !stale.contains(one.report.id.as_str()));
        for Decided { decision, report } in taken.clone() {
            tracing::debug!(
                component = %report.id,
                reason = decision.reason.word(),
                phase = decision.phase.word(),
                status_override = decision.status_override,
                settled = decision.settled,
                "decided"
            );
        }
        let decisions: Announced =
            taken.map(|one| convert::decision(&one.report.id, &one.decision)).collect();
        if !decisions.is_empty() {
            // Nobody may be listening.
            let _listeners = self.announced.send(decisions);
        }
    }

    /// Looks at the whole batch again later. All at one time, so that it stays one batch.
    fn put_off(&self, decided: Vec<Decided>, failures: u32) {
        let at = Instant::now() + pause::after(failures);
        for one in decided {
            self.queue.mark_at(one.report.id, at);
        }
    }
}
