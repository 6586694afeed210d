//! Sets up pending sessions: selects their members and assigns their target states (BOS reference 5.4).
//!
//! The intent of a session is stored before it is assigned, and is final from then on, whatever becomes of template,
//! inventory and images: an interrupted setup resumes with the same members. A repeated assignment under the same
//! session id changes nothing, and the session's own record changes last.

mod peers;
pub(crate) mod plan;
mod schedule;
mod wait_notice;

use std::{convert::Infallible, sync::Arc};

use anyhow::Context as _;
use chassis::{
    Fault,
    lease::Term,
    observe::work::WorkQueue,
    process::{clock::now, failpoint, traces},
};
use domain::boot::session::{self, Progress, Session, lacking::InventoryDoubt};
use proto::component::AssignSessionRequest;
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

pub(crate) use peers::SetupPeers;

use crate::{
    dependency::{Dependency, DependencyError, DependencyOutage},
    record::SessionRecord,
    setup::{
        peers::AssignedMembers,
        plan::choose,
        schedule::{SetupOutcome, SetupSchedule, SetupWait},
        wait_notice::WaitNotice,
    },
    shared::ManagerState,
};

/// Sessions that are taken from the queue at once.
const BATCH: usize = 64;

/// Sets up the sessions in `queue`, for ever. All pending sessions are set up concurrently, so that no number of
/// sessions with a silent upstream delays another: a waiting setup holds little more than the names of the session's
/// members.
pub(crate) async fn run(
    shared: ManagerState,
    peers: SetupPeers,
    queue: WorkQueue<Arc<str>>,
    term: Term,
) -> anyhow::Result<Infallible> {
    let setup = SessionSetup { shared, peers, term };
    let mut schedule = SetupSchedule::new(queue);
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            keys = schedule.queue.next(BATCH) => {
                for key in keys {
                    if !schedule.begin(&key) {
                        continue;
                    }
                    let setup = setup.clone();
                    let wait = schedule.wait(&key);
                    under_way.spawn(async move {
                        let outcome = setup.set_up(&key, wait).await;
                        (key, outcome)
                    }.in_current_span());
                }
            }
            Some(ended) = under_way.join_next() => {
                let (key, outcome) = ended.context("the setup of a session")?;
                schedule.end(key, outcome);
            }
        }
    }
}

#[derive(Clone)]
struct SessionSetup {
    shared: ManagerState,
    peers: SetupPeers,
    term: Term,
}

impl SessionSetup {
    /// Sets up a session, if it is due, within the trace of the request that created it.
    async fn set_up(&self, key: &Arc<str>, wait: SetupWait) -> SetupOutcome {
        let record = self.shared.sessions.view().get(key);
        let Some(record) = record.filter(|record| is_due(&record.session)) else {
            return SetupOutcome::Settled;
        };
        let span = traces::work_span("set a session up", &record.session.trace);
        self.set_up_pending(&record, wait).instrument(span).await
    }

    /// Sets up a session that is due.
    async fn set_up_pending(&self, record: &SessionRecord, mut wait: SetupWait) -> SetupOutcome {
        let _turn = self.term.turn("setup");
        let session = &record.session;
        let (written, outcome) = match self.assign(record, &mut wait).await {
            Ok(Some(assigned)) => (self.start(record, assigned).await, SetupOutcome::Settled),
            Ok(None) => (Ok(()), SetupOutcome::Settled),
            Err(DependencyError::Fatal(error)) => {
                let failed = self.shared.fail(record, error, None, self.term.fence());
                (failed.await, SetupOutcome::Settled)
            }
            Err(DependencyError::Idle { reason, error }) => {
                let failed = self.shared.fail(record, error, Some(reason), self.term.fence());
                (failed.await, SetupOutcome::Settled)
            }
            Err(DependencyError::Retryable(outage)) => self.report_wait(record, &outage, wait.clone()).await,
        };
        match written {
            Ok(()) => outcome,
            Err(Fault::Stale { .. }) => {
                tracing::info!(
                    session = session.name,
                    "session left to another replica, which holds the role now"
                );
                SetupOutcome::Settled
            }
            Err(fault) => {
                tracing::warn!(session = session.name, %fault, "cannot write session, retrying");
                SetupOutcome::Waits(wait)
            }
        }
    }

    /// Assigns the intent of the session; the intent is planned and stored first unless it exists. `None`: the session was
    /// paused meanwhile.
    async fn assign(
        &self,
        record: &SessionRecord,
        wait: &mut SetupWait,
    ) -> Result<Option<AssignedMembers>, DependencyError> {
        let intent = match &record.intent {
            Some(intent) => Some(Arc::clone(intent)),
            None => {
                let planned = self.plan(record, &mut wait.doubt).await;
                planned.map_err(|error| {
                    let notice = wait.notice.as_ref();
                    let waited = notice.map(|one| one.waited_for(&error, Instant::now()));
                    error.in_compatibility(self.shared.compatibility, waited.unwrap_or_default())
                })?
            }
        };
        let Some(intent) = intent else { return Ok(None) };
        // A call cannot be fenced: if our lease has expired since the write, the call is left to the replica that
        // holds the role now.
        if !self.term.is_current() {
            return Err(DependencyError::from_mesh(Dependency::Database, Fault::stale("session-manager")));
        }
        self.peers.assign(&intent).await.map(Some)
    }

    /// Plans and stores the intent and the left-out nodes. The left-out nodes are stored also if no member is left. `None`:
    /// the session was paused meanwhile, and nothing is stored.
    async fn plan(
        &self,
        record: &SessionRecord,
        doubt: &mut InventoryDoubt,
    ) -> Result<Option<Arc<AssignSessionRequest>>, DependencyError> {
        let choice = choose(&self.shared, &self.peers, &record.session, doubt).await?;
        let left_out = Some(Arc::clone(&choice.left_out));
        match choice.plan(&self.peers, &record.session).await {
            Ok(intent) => {
                let intent = Arc::new(intent);
                let intended = Some(Arc::clone(&intent));
                let is_stored = self.note(record, move |pending| match pending.session.is_setup_paused() {
                    true => None,
                    false => Some(SessionRecord { intent: intended, left_out, ..pending }),
                });
                if is_stored.await? == PendingWrite::LeftAlone {
                    return Ok(None);
                }
                failpoint::pass(format_args!("session.intended"));
                Ok(Some(intent))
            }
            Err(error @ (DependencyError::Fatal(_) | DependencyError::Idle { .. })) => {
                self.note(record, |pending| Some(SessionRecord { left_out, ..pending })).await?;
                Err(error)
            }
            Err(DependencyError::Retryable(outage)) => Err(DependencyError::Retryable(outage)),
        }
    }

    /// Stores the result of the plan. Peers may have taken long to answer, and a session that was deleted meanwhile
    /// must not touch a node.
    async fn note(
        &self,
        seen: &SessionRecord,
        change: impl FnOnce(SessionRecord) -> Option<SessionRecord> + Send + 'static,
    ) -> Result<PendingWrite, DependencyError> {
        let written = self.change(seen, change).await;
        match written.map_err(|fault| DependencyError::from_mesh(Dependency::Database, fault))? {
            written @ (PendingWrite::Written | PendingWrite::LeftAlone) => Ok(written),
            PendingWrite::Gone => {
                Err(DependencyError::Fatal("it was deleted or ended while it was set up".to_owned()))
            }
        }
    }

    /// Marks the session as running with its members.
    async fn start(&self, seen: &SessionRecord, assigned: AssignedMembers) -> Result<(), Fault> {
        let AssignedMembers { members, revision } = assigned;
        // The ids of all components are in memory already; a running session, which may have as many members, shares
        // them.
        let components = &self.shared.components;
        let members: Vec<_> = members
            .into_iter()
            .map(|id| components.get(id.as_str()).map_or(id, |one| one.id.clone()))
            .collect();
        tracing::info!(session = seen.session.name, members = members.len(), "session running");
        let run = move |pending: SessionRecord| {
            let session = session::run(pending.session.clone(), members, revision);
            Some(SessionRecord { left_out: None, ..pending }.with(session))
        };
        self.change(seen, run).await?;
        failpoint::pass(format_args!("session.running"));
        Ok(())
    }

    /// Writes the outage that the session waits for to its record, unless the record has it already.
    async fn report_wait(
        &self,
        seen: &SessionRecord,
        outage: &DependencyOutage,
        wait: SetupWait,
    ) -> (Result<(), Fault>, SetupOutcome) {
        let shown = &seen.session.waiting_for;
        let Some(next) = WaitNotice::next(wait.notice.as_ref(), shown, outage, (now(), Instant::now()))
        else {
            return (Ok(()), SetupOutcome::Waits(wait));
        };
        let waiting_for = next.text.clone();
        tracing::warn!(session = seen.session.name, waiting_for, "session waiting");
        let show = move |pending: SessionRecord| {
            let session = Session { waiting_for, ..pending.session.clone() };
            (!session.is_setup_paused()).then(|| pending.with(session))
        };
        let wait = SetupWait { notice: Some(next), ..wait };
        (self.change(seen, show).await.map(drop), SetupOutcome::Waits(wait))
    }

    /// Changes the session if it still exists and is pending. `None` leaves it as it is.
    async fn change(
        &self,
        seen: &SessionRecord,
        change: impl FnOnce(SessionRecord) -> Option<SessionRecord> + Send + 'static,
    ) -> Result<PendingWrite, Fault> {
        let key = Arc::clone(&seen.key);
        let id = seen.session.id.clone();
        let write = self.shared.sessions.write_fenced(self.term.fence(), move |draft| {
            let newest = draft.get(&key).filter(|newest| newest.is_still(&id, Progress::Pending));
            let Some(pending) = newest else { return Ok(PendingWrite::Gone) };
            let Some(changed) = change(Arc::unwrap_or_clone(pending)) else {
                return Ok(PendingWrite::LeftAlone);
            };
            draft.put(changed);
            Ok(PendingWrite::Written)
        });
        write.await.map(|(written, _revision)| written)
    }
}

/// Returns whether the session is to be set up now.
fn is_due(session: &Session) -> bool {
    session.progress == Progress::Pending && !session.is_setup_paused()
}

/// Outcome of a change of a pending session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingWrite {
    /// The session was changed.
    Written,
    /// The session is pending, and does not need the change.
    LeftAlone,
    /// The session was deleted, or is not pending any more.
    Gone,
}
