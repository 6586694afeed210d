//! A copy of another service's resources, kept current by a watch.

use std::{collections::HashMap, future::Future, sync::Arc};

use futures_util::{Stream, StreamExt};
use parking_lot::RwLock;
use tokio::sync::watch;
use tonic::{Code, Status};

use crate::{
    Channel, Context, pause,
    resource::{Batch, Resource},
};

/// A kind of resource that can be watched over a channel.
pub trait Mirrored: Resource + Sized {
    /// Watches the owner of this kind for what changed after `resume`; 0 delivers everything.
    fn watch(channel: Channel, resume: u64) -> impl Future<Output = Result<Watch<Self>, Status>> + Send;
}

/// The batches of one watch.
pub type Watch<R> = std::pin::Pin<Box<dyn Stream<Item = Result<Batch<R>, Status>> + Send>>;

/// What became of one resource.
#[derive(Debug)]
pub struct Change<R> {
    /// The state before; none for a new resource.
    pub previous: Option<Arc<R>>,
    /// The state now; none for a deleted resource.
    pub current: Option<Arc<R>>,
}

impl<R: Resource> Change<R> {
    /// Key of the resource.
    pub fn key(&self) -> &str {
        self.newest().map_or("", |resource| resource.key())
    }

    /// The resource as it is, or as it was before it was deleted.
    pub fn newest(&self) -> Option<&Arc<R>> {
        self.current.as_ref().or(self.previous.as_ref())
    }
}

/// A local copy of every resource of one kind. Clones share it.
///
/// It is behind the owner by one stream at most and never goes back in time. While the owner cannot be
/// reached it keeps what it has; when it is back the watch resumes where it broke.
pub struct Mirror<R> {
    shared: Arc<Shared<R>>,
}

struct Shared<R> {
    resources: RwLock<HashMap<Box<str>, Arc<R>>>,
    /// Revision up to which the copy is complete; 0 before the first complete set.
    revision: watch::Sender<u64>,
}

impl<R> Clone for Mirror<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<R: Mirrored> Mirror<R> {
    /// Starts copying what the service behind `channel` has. `listener` is told of every change after it is
    /// visible; it must not wait.
    pub fn start(
        context: &Context,
        channel: Channel,
        listener: impl Fn(&[Change<R>]) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared { resources: RwLock::default(), revision: watch::Sender::new(0) });
        let mirror = Self { shared };
        let follower = Follower { mirror: mirror.clone(), channel, listener, stale: None, resume: 0 };
        context.tasks.spawn_until_shutdown(R::KIND, async {
            follower.follow().await;
            Ok(())
        });
        mirror
    }
}

impl<R: Resource> Mirror<R> {
    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        self.shared.resources.read().get(key).cloned()
    }

    /// Every resource, in no particular order.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.shared.resources.read().values().cloned().collect()
    }

    /// Waits until the copy includes everything up to `revision`; 1 or 0 mean that it is complete at all.
    pub async fn reached(&self, revision: u64) {
        let mut current = self.shared.revision.subscribe();
        // The sender lives as long as the copy, so waiting cannot fail.
        let _reached = current.wait_for(|now| *now >= revision.max(1)).await;
    }

    /// Revision up to which the copy is complete; 0 before the first complete set.
    pub fn revision(&self) -> u64 {
        *self.shared.revision.borrow()
    }
}

/// The task that keeps one mirror current.
struct Follower<R, L> {
    mirror: Mirror<R>,
    channel: Channel,
    listener: L,
    /// After starting over: what was held before and has not been seen again.
    stale: Option<HashMap<Box<str>, Arc<R>>>,
    resume: u64,
}

impl<R: Mirrored, L: Fn(&[Change<R>])> Follower<R, L> {
    async fn follow(mut self) {
        let mut failures = 0;
        loop {
            let before = self.resume;
            let status = self.follow_once().await;
            if status.code() == Code::OutOfRange {
                self.start_over();
                continue;
            }
            failures = if self.resume > before { 1 } else { failures + 1 };
            tracing::warn!(kind = R::KIND, revision = self.resume, failures, %status, "watch broke, resuming");
            tokio::time::sleep(pause::after(failures)).await;
        }
    }

    async fn follow_once(&mut self) -> Status {
        let mut batches = match R::watch(self.channel.clone(), self.resume).await {
            Ok(batches) => batches,
            Err(status) => return status,
        };
        while let Some(batch) = batches.next().await {
            match batch {
                Ok(batch) => self.apply(batch),
                Err(status) => return status,
            }
        }
        Status::unavailable("the watch ended")
    }

    fn start_over(&mut self) {
        tracing::info!(kind = R::KIND, revision = self.resume, "the watch cannot be resumed, starting over");
        self.stale = Some(self.mirror.shared.resources.read().clone());
        self.resume = 0;
    }

    fn apply(&mut self, batch: Batch<R>) {
        let Batch { changed, deleted, revision, synced } = batch;
        let mut changes = Vec::with_capacity(changed.len() + deleted.len());
        {
            let mut resources = self.mirror.shared.resources.write();
            for deletion in deleted {
                if resources.get(&*deletion.key).is_some_and(|held| held.revision() < deletion.revision) {
                    changes.push(Change { previous: resources.remove(&*deletion.key), current: None });
                }
            }
            for resource in changed {
                if let Some(stale) = &mut self.stale {
                    stale.remove(resource.key());
                }
                let previous = resources.insert(resource.key().into(), Arc::clone(&resource));
                changes.push(Change { previous, current: Some(resource) });
            }
            if synced {
                for key in self.stale.take().into_iter().flatten().map(|(key, _)| key) {
                    changes.push(Change { previous: resources.remove(&key), current: None });
                }
            }
        }
        (self.listener)(&changes);
        self.advance(revision, synced);
    }

    /// Moves the resume point. During an initial set that is sent in the order of revisions every batch is
    /// one, but only the end of the set makes the copy complete.
    fn advance(&mut self, revision: u64, synced: bool) {
        self.resume = revision;
        let complete = *self.mirror.shared.revision.borrow() > 0;
        if synced || complete {
            self.mirror.shared.revision.send_replace(revision.max(1));
        }
    }
}
