//! The evaluation loop: decides queued components, and reports decisions that change them.

use std::{
    collections::HashSet,
    convert::Infallible,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use chassis::{
    Channel,
    lease::Term,
    observe::work::{WorkBatch, WorkQueue},
    process::{clock, pause},
    within,
};
use domain::{
    boot::{
        bos::{compatibility::Compatibility, options::Options},
        component::{Component, report::StatusReport},
        evaluation::{Decision, DecisionNotice, evaluate},
    },
    core::{decision::DecisionVersion, id::ComponentId, time::Timestamp},
};
use metrics::{Unit, counter, histogram};
use proto::component::{
    ReportStatusesRequest, ReportStatusesResponse, report_service_client::ReportServiceClient,
};
use tokio::{sync::broadcast, time::Instant};
use tonic::Status;

use crate::{convert, mirrors::EvidenceMirrors, rpc::Announced};

/// Components in one report. The registry writes thousands of rows in one statement, and the first components of any
/// fleet need not wait for the last.
const BATCH: usize = 5000;

/// Deadline of a report. A batch commits within a second. After this time the report is retried; reports that did
/// arrive are stale by then and change nothing.
const DEADLINE: Duration = Duration::from_secs(20);

/// Turning points of components.
const TURNS: &str = "reveille_component_turns_total";

/// Time from a change of evidence to the decision on record.
const DECISIONS: &str = "reveille_decision_seconds";

/// Everything that an evaluator works with. Clones share it.
#[derive(Clone)]
pub(crate) struct EvaluatorPeers {
    pub(crate) mirrors: EvidenceMirrors,
    pub(crate) queue: WorkQueue<ComponentId>,
    pub(crate) registry: ReportServiceClient<Channel>,
    pub(crate) announced: broadcast::Sender<Announced>,
    pub(crate) compatibility: Compatibility,
}

impl EvaluatorPeers {
    /// Decides all components, and each of them again when its evidence changes, until it is dropped.
    pub(crate) async fn evaluate(self, term: Term) -> anyhow::Result<Infallible> {
        metrics::describe_counter!(
            TURNS,
            "Components that reached their state, failed or are held, by reason"
        );
        metrics::describe_histogram!(
            DECISIONS,
            Unit::Seconds,
            "Time from a change of evidence to the decision on record"
        );
        let _open = self.queue.open();
        self.queue.mark(self.mirrors.enabled());
        StatusEvaluator { peers: self, term, yields: AtomicBool::default() }.work().await
    }
}

/// Decides components.
struct StatusEvaluator {
    peers: EvaluatorPeers,
    term: Term,
    /// Whether a warning about decisions of newer rules was logged.
    yields: AtomicBool,
}

/// A decision that changes its component, with the report to the registry.
struct DecidedComponent {
    decision: Decision,
    report: StatusReport,
    turn: Option<ComponentTurn>,
}

/// Turning point of a component, as the log names it.
struct ComponentTurn {
    notice: DecisionNotice,
    session: String,
    error: String,
}

impl ComponentTurn {
    fn of(decision: &Decision, component: &Component) -> Option<Self> {
        let notice = decision.notice(component)?;
        let error = decision.error.text().unwrap_or(component.error_text()).to_owned();
        Some(Self { notice, session: component.session_name().to_owned(), error })
    }

    /// Counts the turning point, and logs that of a node that needs the attention of an operator.
    fn note(&self, report: &StatusReport, decision: &Decision) {
        let (component, reason) = (&report.id, decision.reason.word());
        counter!(TURNS, "turn" => self.notice.word(), "reason" => reason).increment(1);
        let Self { notice, session, error } = self;
        match notice {
            DecisionNotice::Failed => tracing::info!(%component, reason, session, error, "node failed"),
            DecisionNotice::Held => tracing::info!(%component, reason, session, error, "node held"),
            DecisionNotice::Reached => {}
        }
    }
}

impl StatusEvaluator {
    async fn work(&self) -> anyhow::Result<Infallible> {
        let mut failures = 0;
        loop {
            let WorkBatch { keys: ids, since } = self.peers.queue.next_batch(BATCH).await;
            // A mirror that is being replaced by another incarnation may contradict the others.
            self.peers.mirrors.subjects_reached().await;
            let _turn = self.term.turn("evaluate");
            let decided = self.decide(ids, clock::now());
            if decided.is_empty() {
                continue;
            }
            match self.report(&decided).await {
                Ok(stale) => {
                    failures = 0;
                    histogram!(DECISIONS).record_many(since.elapsed().as_secs_f64(), decided.len());
                    self.announce(decided, stale);
                }
                Err(status) => {
                    failures += 1;
                    tracing::warn!(%status, failures, components = decided.len(), "cannot report statuses");
                    self.retry_later(decided, failures);
                }
            }
        }
    }

    fn decide(&self, ids: Vec<ComponentId>, now: Timestamp) -> Vec<DecidedComponent> {
        // The version is read first: options that change in between then have the older revision, and trigger another
        // decision.
        let version = self.peers.mirrors.version();
        let options = self.peers.mirrors.options();
        let mut decided = Vec::new();
        for id in ids {
            let component = self.peers.mirrors.component(id.as_str());
            match component.filter(|component| component.is_enabled()) {
                Some(component) => decided.extend(self.decide_one(&component, &options, version, now)),
                None => self.peers.queue.unmark(&id),
            }
        }
        decided
    }

    /// Decides one component, schedules the next decision for the end of this one, and returns the report.
    fn decide_one(
        &self,
        component: &Component,
        options: &Options,
        version: DecisionVersion,
        now: Timestamp,
    ) -> Option<DecidedComponent> {
        if version.is_older_than(component.evaluation.decided_by) {
            self.peers.queue.unmark(&component.id);
            self.log_newer(component, version);
            return None;
        }
        let decision = evaluate(component, &self.peers.mirrors.evidence(component), options, now);
        let decision = decision.followed(component, self.peers.compatibility);
        match decision.until {
            Some(until) => self.peers.queue.mark_at(component.id.clone(), Instant::now() + until.since(now)),
            None => self.peers.queue.unmark(&component.id),
        }
        let report = decision.report(component, version)?;
        let turn = ComponentTurn::of(&decision, component);
        Some(DecidedComponent { decision, report, turn })
    }

    /// Logs once that newer rules have decided components. Newer options of the same rules will arrive at the mirror.
    fn log_newer(&self, component: &Component, version: DecisionVersion) {
        let newer = component.evaluation.decided_by.rules;
        let ours = version.rules;
        if newer > ours && !self.yields.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                component = %component.id,
                newer,
                ours,
                "components decided by newer rules skipped; enable them again to have this version decide"
            );
        }
    }

    /// Reports decisions in one call and returns the stale ids. Stale components have changed meanwhile: the change
    /// will arrive at the mirror and queue them again.
    async fn report(&self, decided: &[DecidedComponent]) -> Result<HashSet<String>, Status> {
        let reports = decided.iter().map(|one| convert::report(&one.report)).collect();
        let mut registry = self.peers.registry.clone();
        let call = registry.report_statuses(ReportStatusesRequest { reports });
        let ReportStatusesResponse { stale_ids } = within(DEADLINE, call).await?.into_inner();
        Ok(stale_ids.into_iter().collect())
    }

    fn announce(&self, decided: Vec<DecidedComponent>, stale: HashSet<String>) {
        let taken = decided.iter().filter(|one| !stale.contains(one.report.id.as_str()));
        for DecidedComponent { decision, report, turn } in taken.clone() {
            if let Some(turn) = turn {
                turn.note(report, decision);
            }
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
            // There may be no subscribers.
            let _listeners = self.peers.announced.send(decisions);
        }
    }

    /// Schedules the whole batch for a retry, at one time, so that it stays one batch.
    fn retry_later(&self, decided: Vec<DecidedComponent>, failures: u32) {
        let at = Instant::now() + pause::after(failures);
        for one in decided {
            self.peers.queue.mark_at(one.report.id, at);
        }
    }
}
