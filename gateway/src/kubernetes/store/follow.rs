//! The watch of a ledger of the component registry, which keeps the copies of its kinds current.

use std::{marker::PhantomData, sync::Arc};

use chassis::{
    Channel, Fault,
    mesh::channel::LARGEST_MESSAGE,
    process::pause,
    store::ledger::{ResumeToken, named_incarnation},
};
use proto::{WatchBatch, WatchRequest, WatchedMessage, watch_kind};
use tonic::Status;

use super::{
    super::{kinds::ResourceKind, object::ApiObject},
    cache::RecordCache,
    record::{CachedRecord, key},
    version::VersionBase,
};

/// Message of a record that is shown as an object.
pub(crate) trait FollowedKind: WatchedMessage {
    /// Returns the kind of the record; none if it is not shown.
    fn kind(&self) -> Option<&'static ResourceKind>;

    /// Returns the revision of its last change.
    fn revision(&self) -> u64;

    /// Returns the record as an object.
    fn shown(self, base: VersionBase) -> ApiObject;

    /// Returns kind, namespace and name of the record with this key in the ledger.
    fn place(key: &str) -> Option<(&'static ResourceKind, &str, &str)>;
}

/// Copies of the kinds of one ledger.
pub(crate) type LedgerCaches = Vec<(&'static ResourceKind, Arc<RecordCache>)>;

/// Keeps copies current until the task ends. An outage of the owner leaves them as they are.
pub(crate) async fn follow<M: FollowedKind>(channel: Channel, caches: LedgerCaches) {
    let mut follower = LedgerFollower::<M>::new(caches);
    let mut failures = 0;
    loop {
        let before = follower.resume;
        let Err(status) = follower.follow_once(channel.clone()).await else { continue };
        let fault = Fault::from(status);
        if matches!(fault, Fault::ResumeExpired(_)) {
            follower.start_over();
            continue;
        }
        failures = if follower.resume.revision > before.revision { 1 } else { failures + 1 };
        if failures == 1 {
            let revision = follower.resume.revision;
            tracing::warn!(kind = M::PATH, revision, %fault, "watch broke, resuming");
            follower.is_broken = true;
        }
        tokio::time::sleep(pause::after(failures)).await;
    }
}

struct LedgerFollower<M> {
    caches: LedgerCaches,
    resume: ResumeToken,
    /// Records of the first set for each of the copies; none once it is complete.
    arriving: Option<Vec<Vec<CachedRecord>>>,
    /// Whether a break of the watch was logged that is not over.
    is_broken: bool,
    message: PhantomData<M>,
}

impl<M: FollowedKind> LedgerFollower<M> {
    fn new(caches: LedgerCaches) -> Self {
        let resume = ResumeToken::default();
        let mut follower = Self { caches, resume, arriving: None, is_broken: false, message: PhantomData };
        follower.start_over();
        follower
    }

    fn start_over(&mut self) {
        self.resume = ResumeToken::default();
        self.arriving = Some(self.caches.iter().map(|_| Vec::new()).collect());
    }

    /// Follows until the watch breaks. Returns without error when it is to be started over.
    async fn follow_once(&mut self, channel: Channel) -> Result<(), Status> {
        let request = self.resume.request(M::Request::resuming(self.resume.revision));
        let response = watch_kind::<M, _>(channel, request, LARGEST_MESSAGE).await?;
        let incarnation = named_incarnation(response.metadata());
        if self.resume.revision > 0 && incarnation != self.resume.incarnation {
            // Versions of another incarnation are above all present ones, also those of unchanged records.
            self.start_over();
            return Ok(());
        }
        if self.resume.revision == 0 {
            self.start_over();
        }
        self.resume.incarnation = incarnation;
        let mut batches = response.into_inner();
        while let Some(batch) = batches.message().await? {
            self.apply(batch.into());
            if std::mem::take(&mut self.is_broken) {
                tracing::info!(kind = M::PATH, revision = self.resume.revision, "watch resumed");
            }
        }
        Err(Status::unavailable("the watch ended"))
    }

    fn apply(&mut self, batch: WatchBatch<M>) {
        let WatchBatch { changed, deletions, revision, synced } = batch;
        let base = VersionBase::of(self.resume.incarnation);
        let Some(mut arriving) = self.arriving.take() else {
            for (kind, cache) in &self.caches {
                let deleted = deletions.iter().filter_map(|deletion| {
                    let (of, namespace, name) = M::place(&deletion.key)?;
                    (of == *kind).then(|| (key(namespace, name), deletion.revision))
                });
                cache.apply(records(&changed, kind, cache, base), deleted.collect(), revision);
            }
            self.resume.revision = revision;
            return;
        };
        for ((kind, cache), arrived) in self.caches.iter().zip(&mut arriving) {
            arrived.extend(records(&changed, kind, cache, base));
        }
        if !synced {
            self.arriving = Some(arriving);
            return;
        }
        for ((_, cache), arrived) in self.caches.iter().zip(arriving) {
            cache.replace(base, arrived, revision);
        }
        self.resume.revision = revision;
    }
}

fn records<M: FollowedKind>(
    changed: &[M],
    kind: &'static ResourceKind,
    cache: &RecordCache,
    base: VersionBase,
) -> Vec<CachedRecord> {
    let of_kind = changed.iter().filter(|record| record.kind() == Some(kind));
    let records = of_kind.map(|record| {
        let version = base.version(record.revision());
        cache.record(&record.clone().shown(base), version)
    });
    records.collect()
}
