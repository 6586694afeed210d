//! Sorts sessions into the work that they need, from the ledger's own watch. A restart takes the same path as
//! a change, so that nothing has to be remembered about what was under way. Every replica sorts all of them and
//! works on its own.

use std::{convert::Infallible, pin::pin, sync::Arc};

use chassis::{Fault, resource::Batch, work::WorkQueue};
use domain::session::Progress;
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::{record::SessionRecord, shared::Shared};

/// Where work goes.
#[derive(Clone, Default)]
pub(crate) struct Work {
    /// Keys of pending sessions whose members are to be found.
    pub(crate) setup: WorkQueue<Arc<str>>,
    /// Keys of running sessions that may be over.
    pub(crate) completion: WorkQueue<Arc<str>>,
    /// Complete sessions have changed, or the time that they are kept.
    pub(crate) cleanup: Arc<Notify>,
}

/// Takes over sessions as they come to this replica, for ever: what the replica before was doing with them is taken up
/// from what is stored, as after a restart.
pub(crate) async fn take_over(shared: Shared, work: Work) -> anyhow::Result<Infallible> {
    let mut takeovers = pin!(shared.custody.takeovers());
    loop {
        let Some(takeover) = takeovers.next().await else { return std::future::pending().await };
        shared.sessions.catch_up().await;
        shared.custody.take(&takeover);
        for record in shared.sessions.view().all().iter().filter(|record| takeover.gains(&record.key)) {
            match record.session.progress {
                Progress::Pending => work.setup.mark([Arc::clone(&record.key)]),
                Progress::Running => work.completion.mark([Arc::clone(&record.key)]),
                Progress::Complete => work.cleanup.notify_one(),
            }
        }
    }
}

/// Follows the ledger for ever.
pub(crate) async fn run(shared: Shared, work: Work) -> anyhow::Result<()> {
    loop {
        let error = follow(&shared, &work).await;
        tracing::warn!(%error, "cannot follow the sessions further, starting over");
        shared.members.forget_all();
    }
}

async fn follow(shared: &Shared, work: &Work) -> Fault {
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
        initial &= !batch.synced;
    }
    Fault::Internal("a ledger's watch has ended".to_owned())
}

/// Sends every session of a batch where it belongs. `initial`: the batch tells what there was at the start.
fn sort(batch: &Batch<SessionRecord>, initial: bool, shared: &Shared, work: &Work) {
    for deletion in &batch.deleted {
        shared.members.forget(&deletion.key);
    }
    for record in &batch.changed {
        match record.session.progress {
            Progress::Pending => {
                shared.members.forget(&record.key);
                // One that waits has its time to be looked at again, and one that intends something is being
                // set up, unless that was before a restart.
                if initial || record.session.waiting_for.is_empty() && record.intent.is_none() {
                    work.setup.mark([Arc::clone(&record.key)]);
                }
            }
            Progress::Running => {
                shared.members.follow(record);
                work.completion.mark([Arc::clone(&record.key)]);
            }
            Progress::Complete => {
                shared.members.forget(&record.key);
                work.cleanup.notify_one();
            }
        }
    }
}
