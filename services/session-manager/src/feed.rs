//! Queues sessions for the work that they need, from the ledger's own watch. A restart takes the same path as a
//! change, so no work in progress has to be remembered. The queues are open in the replica that holds the role.

use std::{pin::pin, sync::Arc};

use chassis::{Fault, observe::work::WorkQueue, store::resource::Batch};
use domain::boot::session::Progress;
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::{record::SessionRecord, shared::ManagerState};

/// Work queues of this service.
#[derive(Clone)]
pub(crate) struct WorkQueues {
    /// Keys of pending sessions that need their members.
    pub(crate) setup: WorkQueue<Arc<str>>,
    /// Keys of running sessions that may be over.
    pub(crate) completion: WorkQueue<Arc<str>>,
    /// Names of sessions whose components may lack a mark, or have a wrong one.
    pub(crate) marking: WorkQueue<Arc<str>>,
    /// Keys of running sessions that roll out.
    pub(crate) rolling: WorkQueue<Arc<str>>,
    /// Notified when complete sessions or their time to live have changed.
    pub(crate) cleanup: Arc<Notify>,
}

impl WorkQueues {
    /// Queues the sessions on record, as after a start.
    pub(crate) fn mark_all(&self, shared: &ManagerState) {
        for record in &shared.sessions.view().all() {
            match record.session.progress {
                Progress::Pending => self.setup.mark([Arc::clone(&record.key)]),
                Progress::Running => {
                    self.completion.mark([Arc::clone(&record.key)]);
                    self.rolling.mark([Arc::clone(&record.key)]);
                }
                Progress::Complete => self.cleanup.notify_one(),
            }
        }
        let all = shared.sessions.view().all().into_iter();
        let holding = all.filter(|record| record.session.holds_components());
        self.marking.mark(holding.map(|record| record.session.name.as_str().into()));
        self.marking.mark(shared.members.holding_names());
    }
}

impl Default for WorkQueues {
    fn default() -> Self {
        Self {
            setup: WorkQueue::closed(),
            completion: WorkQueue::closed(),
            marking: WorkQueue::closed(),
            rolling: WorkQueue::closed(),
            cleanup: Arc::default(),
        }
    }
}

/// Follows the ledger for ever.
pub(crate) async fn run(shared: ManagerState, work: WorkQueues) -> anyhow::Result<()> {
    loop {
        let error = follow(&shared, &work).await;
        tracing::warn!(%error, "session watch failed, restarting it");
        shared.members.forget_all();
    }
}

async fn follow(shared: &ManagerState, work: &WorkQueues) -> Fault {
    let watch = match shared.sessions.watch(0) {
        Ok(watch) => watch,
        Err(fault) => return fault,
    };
    let mut batches = pin!(watch.batches());
    let mut initial = true;
    while let Some(batch) = batches.next().await {
        let batch = match batch {
            Ok(batch) => batch,
            Err(fault) => return fault,
        };
        sort(&batch, initial, shared, work);
        if initial && batch.synced {
            // Sessions whose deletion was missed left their marks.
            work.marking.mark(shared.members.holding_names());
        }
        initial &= !batch.synced;
    }
    Fault::Internal("session watch ended".to_owned())
}

/// Queues every session of a batch. `initial`: the batch belongs to the initial list.
fn sort(batch: &Batch<SessionRecord>, initial: bool, shared: &ManagerState, work: &WorkQueues) {
    for deletion in &batch.deleted {
        shared.members.forget(&deletion.key);
        work.marking.mark(shared.members.forget_holding(&deletion.key));
    }
    for record in &batch.changed {
        let was_paused = shared.members.is_paused(&record.key);
        work.marking.mark(shared.members.follow_holding(record));
        match record.session.progress {
            Progress::Pending => {
                shared.members.forget(&record.key);
                // A waiting session has a scheduled retry, and a session with an intent is being set up, unless the
                // intent predates a restart. The setup of a paused session ended, and begins again with its end or a cancellation.
                let goes_on = was_paused && !record.session.is_setup_paused();
                if initial || goes_on || record.session.waiting_for.is_empty() && record.intent.is_none() {
                    work.setup.mark([Arc::clone(&record.key)]);
                }
            }
            Progress::Running => {
                shared.members.follow(record);
                work.completion.mark([Arc::clone(&record.key)]);
                work.rolling.mark([Arc::clone(&record.key)]);
            }
            Progress::Complete => {
                shared.members.forget(&record.key);
                work.cleanup.notify_one();
            }
        }
    }
}
