//! A client that watches a kind of resource all the time, and checks the guarantees of the watch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chassis::{
    observe::mirror::{AdmittedWatch, MirroredKind},
    store::{ledger::ResumeToken, resource::Batch},
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::{
    invariants, trace,
    world::{Part, World},
};

/// Most time until a paused replica has continued, and its changes have been delivered.
const GOES_ON: Duration = Duration::from_secs(45);

/// Copy of all resources of one kind, built from watches.
pub struct Watcher<R> {
    world: Arc<World>,
    owner: Part,
    copy: Mutex<Copy>,
    kind: std::marker::PhantomData<fn() -> R>,
}

#[derive(Default)]
struct Copy {
    revisions: BTreeMap<String, u64>,
    /// Last revision that was delivered, and its incarnation.
    resume: ResumeToken,
    /// Whether the initial set was delivered.
    whole: bool,
    /// Earlier resources that a restarted watch has not delivered again.
    stale: BTreeMap<String, u64>,
}

impl<R: MirroredKind> Watcher<R> {
    /// Creates a watcher of the resources of `owner`.
    pub fn new(world: &Arc<World>, owner: Part) -> Self {
        Self { world: Arc::clone(world), owner, copy: Mutex::default(), kind: std::marker::PhantomData }
    }

    /// Watches, without end.
    pub async fn watch(&self) -> anyhow::Result<()> {
        loop {
            let ended = self.watch_once().await;
            if let Err(status) = &ended
                && status.code() == Code::OutOfRange
            {
                trace::note(|| format!("watch of {} begins anew: {}", R::KIND, status.message()));
                self.world.trouble.count("watch resumed too late");
                let mut copy = self.copy.lock();
                *copy = Copy { stale: std::mem::take(&mut copy.revisions), ..Copy::default() };
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn watch_once(&self) -> Result<(), Status> {
        let channel = self.world.channel(self.owner).map_err(|error| Status::internal(error.to_string()))?;
        let resume = self.copy.lock().resume;
        let AdmittedWatch { incarnation, mut batches } = R::watch(channel, resume).await?;
        self.copy.lock().resume.incarnation = incarnation;
        loop {
            self.world.trouble.reading().await;
            let Some(batch) = batches.next().await else { return Ok(()) };
            self.take(&batch?);
        }
    }

    fn take(&self, batch: &Batch<R>) {
        let mut copy = self.copy.lock();
        let changed: Vec<u64> = batch.changed.iter().map(|one| one.revision()).collect();
        if let Err(what) = invariants::watch_moves_on(copy.resume.revision, batch.revision, &changed) {
            self.world.journal.violated("I8", format!("watch of {}: {what}", R::KIND));
        }
        copy.resume.revision = batch.revision;
        for deletion in &batch.deleted {
            copy.revisions.remove(&*deletion.key);
        }
        for one in &batch.changed {
            copy.stale.remove(one.key());
            copy.revisions.insert(one.key().to_owned(), one.revision());
        }
        copy.whole |= batch.synced;
    }

    /// I8: judges that the copy equals the stored resources at rest, at the latest once a paused replica continues.
    pub async fn check(&self) {
        let until = Instant::now() + GOES_ON;
        while let Some(what) = self.difference() {
            if Instant::now() >= until {
                return self.world.journal.violated("I8", what);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns a difference between copy and store. Only replicas that have read an unreadable row before deliver it.
    fn difference(&self) -> Option<String> {
        let disk = self.world.disk(self.owner)?;
        let spoilt = disk.spoilt(R::KIND);
        let kept = disk.look(|kept: &BTreeMap<Arc<str>, Arc<R>>| {
            kept.iter().map(|(key, one)| (key.to_string(), one.revision())).collect::<BTreeMap<_, _>>()
        });
        let copy = self.copy.lock();
        let readable = |revisions: &BTreeMap<String, u64>| {
            let readable = revisions.iter().filter(|(key, _)| !spoilt.contains(key.as_str()));
            readable.map(|(key, revision)| (key.clone(), *revision)).collect::<BTreeMap<_, _>>()
        };
        let (told, kept) = (readable(&copy.revisions), readable(&kept));
        (told != kept).then(|| {
            format!(
                "a watch of {} at {} told of {told:?}, and there are {kept:?}",
                R::KIND,
                copy.resume.revision
            )
        })
    }
}
