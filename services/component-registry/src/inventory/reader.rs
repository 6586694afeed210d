//! The task that reads the inventory; concurrent callers share one read.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, store::resource::Resource};
use domain::boot::component::report::inventory::{LockAnswer, judge_locks};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{INVENTORY, InventorySnapshot, InventorySource, LockedIds};
use crate::{RegistryState, presence::InventoryListing};

/// Pending requests in the queue. Further callers wait for a slot.
const WAITING: usize = 1024;

/// Handle of the inventory for its callers.
pub(crate) struct InventoryHandle {
    questions: mpsc::Sender<InventoryRequest>,
    locked: watch::Receiver<Option<Arc<LockedIds>>>,
    listing: watch::Receiver<Option<Arc<InventoryListing>>>,
    driver: Arc<InventorySource>,
}

/// Queue of inventory requests, for [`run`].
pub(crate) struct InventoryRequests {
    waiting: mpsc::Receiver<InventoryRequest>,
    known: LatestResults,
}

/// Latest results, for subscribers.
struct LatestResults {
    locked: watch::Sender<Option<Arc<LockedIds>>>,
    listing: watch::Sender<Option<Arc<InventoryListing>>>,
}

type ReadResult<T> = Result<T, Fault>;

/// Request for a part of the inventory.
enum InventoryRequest {
    /// The whole inventory.
    Snapshot(oneshot::Sender<ReadResult<Arc<InventorySnapshot>>>),
    /// The ids of locked nodes.
    Locks(oneshot::Sender<ReadResult<()>>),
}

impl InventoryHandle {
    /// Creates a handle, and the queue that [`run`] serves.
    pub(crate) fn new(driver: Arc<InventorySource>) -> (Self, InventoryRequests) {
        let (questions, waiting) = mpsc::channel(WAITING);
        let known = LatestResults { locked: watch::Sender::new(None), listing: watch::Sender::new(None) };
        let locked = known.locked.subscribe();
        let listing = known.listing.subscribe();
        (Self { questions, locked, listing, driver }, InventoryRequests { waiting, known })
    }

    /// Returns a snapshot whose read began after this call.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] with the name of the failing peer and its error.
    pub(crate) async fn snapshot(&self) -> ReadResult<Arc<InventorySnapshot>> {
        self.ask(InventoryRequest::Snapshot).await
    }

    /// Reads the locks after this call. [`Self::locked`] receives the result.
    ///
    /// # Errors
    /// See [`Self::snapshot`].
    pub(crate) async fn poll_locks(&self) -> ReadResult<()> {
        self.ask(InventoryRequest::Locks).await
    }

    /// Subscribes to the ids of locked nodes, as of the latest read of any caller; `None`: no read has succeeded yet.
    pub(crate) fn locked(&self) -> watch::Receiver<Option<Arc<LockedIds>>> {
        self.locked.clone()
    }

    /// Subscribes to the components in the latest snapshot; `None`: no snapshot was read yet.
    pub(crate) fn listing(&self) -> watch::Receiver<Option<Arc<InventoryListing>>> {
        self.listing.clone()
    }

    /// Returns whether the source answers queries by id. Otherwise each read of the locks lists everything.
    pub(crate) fn has_queries(&self) -> bool {
        self.driver.has_queries()
    }

    /// Returns the subset of `ids` that the inventory lists now. The query is by id if the source supports that.
    ///
    /// # Errors
    /// See [`Self::snapshot`].
    pub(crate) async fn listed(
        &self,
        ids: Vec<Arc<str>>,
        answer_within: Duration,
    ) -> ReadResult<HashSet<Arc<str>>> {
        if let Some(listed) = self.driver.listed(&ids, answer_within).await? {
            return Ok(ids.into_iter().filter(|id| listed.contains(&**id)).collect());
        }
        let snapshot = self.snapshot().await?;
        let listed: HashSet<&str> = snapshot.hardware().map(|item| &*item.id).collect();
        Ok(ids.into_iter().filter(|id| listed.contains(&**id)).collect())
    }

    /// Reads the whole inventory and checks that it lists anything.
    ///
    /// # Errors
    /// See [`Self::snapshot`], also if it lists no hardware at all.
    pub(crate) async fn check_not_empty(&self) -> ReadResult<()> {
        match self.snapshot().await?.hardware().next() {
            Some(_) => Ok(()),
            None => Err(nothing_listed()),
        }
    }

    async fn ask<T>(
        &self,
        question: fn(oneshot::Sender<ReadResult<T>>) -> InventoryRequest,
    ) -> ReadResult<T> {
        let (answer, answered) = oneshot::channel();
        let stopping = || Fault::unavailable(INVENTORY, "the service is stopping");
        self.questions.send(question(answer)).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }
}

/// Serves requests for ever. Reads are sequential: callers that arrive during a read share the next one, so that no
/// answer is older than its request, and the locks never go back in time.
///
/// An error is returned at once to the callers that arrived during the failed read too. Otherwise a peer that hangs
/// would make them wait twice as long as one answer may take.
pub(crate) async fn run(
    registry: Arc<RegistryState>,
    driver: Arc<InventorySource>,
    mut questions: InventoryRequests,
) -> anyhow::Result<Infallible> {
    let mut asked = Vec::new();
    loop {
        if asked.is_empty() {
            let received = questions.waiting.recv_many(&mut asked, WAITING).await;
            anyhow::ensure!(received > 0, "the inventory has no callers any more");
        }
        let asking = PendingCallers::from(std::mem::take(&mut asked));
        let outcome = asking.answer(&driver, &registry, &questions.known).await;
        if let Err(fault) = outcome {
            asked = questions.refuse_snapshots(&fault);
        }
    }
}

impl InventoryRequests {
    /// Returns the error to all pending snapshot requests, and keeps the others: reading the locks may succeed where
    /// the whole inventory fails.
    fn refuse_snapshots(&mut self, fault: &Fault) -> Vec<InventoryRequest> {
        let mut others = Vec::new();
        while let Ok(question) = self.waiting.try_recv() {
            match question {
                InventoryRequest::Snapshot(answer) => settle(vec![answer], &Err(fault.clone())),
                InventoryRequest::Locks(_) => others.push(question),
            }
        }
        others
    }
}

/// Callers that wait for the same read.
#[derive(Default)]
struct PendingCallers {
    snapshots: Vec<oneshot::Sender<ReadResult<Arc<InventorySnapshot>>>>,
    locks: Vec<oneshot::Sender<ReadResult<()>>>,
}

impl From<Vec<InventoryRequest>> for PendingCallers {
    /// Drops the requests of callers that no longer wait.
    fn from(questions: Vec<InventoryRequest>) -> Self {
        let mut asking = Self::default();
        for question in questions {
            match question {
                InventoryRequest::Snapshot(answer) if !answer.is_closed() => asking.snapshots.push(answer),
                InventoryRequest::Locks(answer) if !answer.is_closed() => asking.locks.push(answer),
                InventoryRequest::Snapshot(_) | InventoryRequest::Locks(_) => {}
            }
        }
        asking
    }
}

impl PendingCallers {
    /// Reads as much as the callers requested, publishes listed and locked components, and answers. A snapshot
    /// includes the locks.
    ///
    /// # Errors
    /// The failure of the read, which all callers received.
    async fn answer(
        self,
        driver: &InventorySource,
        registry: &RegistryState,
        known: &LatestResults,
    ) -> Result<(), Fault> {
        let Self { snapshots, locks } = self;
        if snapshots.is_empty() && locks.is_empty() {
            return Ok(());
        }
        let read_at = Instant::now();
        let InventoryRead { locked, whole } = match read(driver, registry, !snapshots.is_empty()).await {
            Ok(read) => read,
            Err(fault) => {
                settle(snapshots, &Err(fault.clone()));
                settle(locks, &Err(fault.clone()));
                return Err(fault);
            }
        };
        let lists_hardware = whole.as_ref().map(|whole| whole.hardware().next().is_some());
        if let Some(whole) = whole {
            known.listing.send_replace(Some(Arc::new(listing(&whole, registry, read_at))));
            settle(snapshots, &Ok(whole));
        }
        let outcome = match judge(&locked, registry, lists_hardware) {
            LockAnswer::Counts => {
                known.locked.send_replace(Some(locked));
                Ok(())
            }
            LockAnswer::NeedsListing | LockAnswer::Lost => Err(nothing_listed()),
        };
        settle(locks, &outcome);
        Ok(())
    }
}

/// Parts of the inventory that were read at once.
struct InventoryRead {
    locked: Arc<LockedIds>,
    /// The whole inventory; `None`: the locks were enough.
    whole: Option<Arc<InventorySnapshot>>,
}

/// Reads the locks. Reads the whole inventory if it `is_wanted`, if the source has no parts, or if the answer about the
/// locks needs it.
async fn read(
    driver: &InventorySource,
    registry: &RegistryState,
    is_wanted: bool,
) -> ReadResult<InventoryRead> {
    if !is_wanted && driver.has_queries() {
        let locked = driver.locked(registry).await?;
        if judge(&locked, registry, None) == LockAnswer::Counts {
            return Ok(InventoryRead { locked, whole: None });
        }
    }
    let whole = Arc::new(driver.snapshot(registry).await?);
    Ok(InventoryRead { locked: Arc::clone(&whole.locked), whole: Some(whole) })
}

/// Judges an answer about locks. Only one without any is compared with the records of the registry.
fn judge(locked: &LockedIds, registry: &RegistryState, lists_hardware: Option<bool>) -> LockAnswer {
    let is_recorded = || registry.components.view().all().iter().any(|component| component.inventory.locked);
    judge_locks(!locked.is_empty(), locked.is_empty() && is_recorded(), lists_hardware)
}

/// Returns the error of an inventory without any records. Its reason reads well after "waiting for" too.
fn nothing_listed() -> Fault {
    Fault::unavailable(INVENTORY, "an inventory that lists hardware; it lists none")
}

/// Returns the components of the registry that the snapshot lists. They share the memory of their ids.
fn listing(snapshot: &InventorySnapshot, registry: &RegistryState, read_at: Instant) -> InventoryListing {
    let hardware: HashSet<&str> = snapshot.hardware().map(|item| &*item.id).collect();
    let components = registry.components.view().all();
    let listed = components.iter().filter(|component| hardware.contains(component.key()));
    InventoryListing { read_at, ids: listed.map(|component| component.shared_key()).collect() }
}

fn settle<T: Clone>(asking: Vec<oneshot::Sender<ReadResult<T>>>, answer: &ReadResult<T>) {
    for one in asking {
        // The caller may have gone meanwhile.
        let _gone = one.send(answer.clone());
    }
}
