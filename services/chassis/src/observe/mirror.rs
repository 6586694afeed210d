//! A copy of another service's resources, kept current by a watch.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::core::time::{Timestamp, began_by_our_clock};
use futures_util::{StreamExt, stream::BoxStream};
use parking_lot::{Mutex, RwLock};
use proto::{WatchRequest, WatchedMessage, watch_kind};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tonic::Status;
use uuid::Uuid;

use crate::{
    Channel, Context, Fault,
    mesh::channel::LARGEST_MESSAGE,
    process::{clock, pause},
    store::{
        ledger::{OwnerView, ResumeToken, named_incarnation},
        resource::{Batch, KeyedResource, Resource, WireForm},
    },
};

/// A kind of resource that can be watched over a channel.
pub trait MirroredKind: WireForm<Message: WatchedMessage> + PartialEq {
    /// Watches the owner of this kind for changes after `resume`; revision 0 delivers everything.
    fn watch(
        channel: Channel,
        resume: ResumeToken,
    ) -> impl Future<Output = Result<AdmittedWatch<Self>, Status>> + Send {
        AdmittedWatch::start(channel, resume)
    }

    /// Returns the beginning of an event that readers of the copy wait for, by the clock of the owner; `None`: there is
    /// none.
    fn began(&self) -> Option<Timestamp> {
        None
    }

    /// The resource with `began` in place of its own moment, by this host's clock.
    #[must_use]
    fn with_began(self: &Arc<Self>, _began: Timestamp) -> Arc<Self> {
        Arc::clone(self)
    }
}

/// A watch that the owner has admitted.
pub struct AdmittedWatch<R> {
    /// Incarnation of all batches; `None` when the owner names none.
    pub incarnation: Option<Uuid>,
    /// The batches.
    pub batches: BoxStream<'static, Result<Batch<R>, Status>>,
}

impl<R: WireForm<Message: WatchedMessage>> AdmittedWatch<R> {
    async fn start(channel: Channel, resume: ResumeToken) -> Result<Self, Status> {
        let request = resume.request(<R::Message as WatchedMessage>::Request::resuming(resume.revision));
        let response = watch_kind::<R::Message, _>(channel, request, LARGEST_MESSAGE).await?;
        let incarnation = named_incarnation(response.metadata());
        let mut pool = R::Pool::default();
        // The mirror drops the stream at the first error, so nothing that follows one is applied.
        let batches = response.into_inner().map(move |response| {
            let batch = Batch::from_wire(response?.into(), &mut pool);
            Ok(batch.map_err(Fault::Invalid)?)
        });
        Ok(Self { incarnation, batches: batches.boxed() })
    }
}

/// Change of one resource.
#[derive(Debug)]
pub struct Change<R> {
    /// State before; `None` for a new resource.
    pub previous: Option<Arc<R>>,
    /// State now; `None` for a deleted resource.
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

/// Called with changes after they are visible; must not wait.
type Listener<R> = Box<dyn Fn(&[Change<R>]) + Send + Sync>;

/// Duration of a broken watch after which the owner counts as away. A restart or a failover is shorter.
const OUTAGE: Duration = Duration::from_secs(10);

/// A local copy of every resource of one kind. Clones share it.
///
/// The copy is behind the owner by one stream at most and never goes back in time. During an outage of the owner it
/// stays as it is; afterwards the watch resumes.
///
/// All resources are of one incarnation of the owner. When the owner answers with another one, the copy is not complete
/// until the first whole set of that incarnation replaces everything at once.
pub struct Mirror<R> {
    shared: Arc<MirrorInner<R>>,
}

struct MirrorInner<R> {
    resources: RwLock<HashSet<KeyedResource<R>>>,
    /// Whether a task keeps this copy current.
    followed: AtomicBool,
    /// Held during visible changes, so that every listener gets everything once.
    listeners: Mutex<Vec<Listener<R>>>,
    /// Revision up to which the copy is complete; 0 before the first complete set of an incarnation.
    revision: watch::Sender<u64>,
    /// Number of requests for a confirmation that nothing is missing.
    asked: watch::Sender<u64>,
    /// Up to which of these it is known.
    caught_up: watch::Sender<u64>,
    /// Last sign of life of the watch; `None`: the watch is broken.
    pulse: Mutex<Option<Instant>>,
    /// Time at which another incarnation of the owner last replaced the copy.
    replaced_at: Mutex<Option<Timestamp>>,
    /// Outage of the owner; `None`: the watch works, or has only just broken.
    outage: Mutex<Option<OwnerOutage>>,
    /// Called before the others with the changes by which another incarnation replaces the copy.
    replacement_listeners: Mutex<Vec<Listener<R>>>,
    /// Called whenever the copy becomes current, and when an outage is noticed.
    availability_listeners: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl<R> MirrorInner<R> {
    fn tell_availability(&self) {
        self.availability_listeners.lock().iter().for_each(|listener| listener());
    }
}

/// Outage of the service that owns a kind of resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerOutage {
    /// Time at which the watch broke.
    pub since: Timestamp,
    /// Error at the time when the outage was noticed.
    pub error: String,
}

/// Period in which a watch without news is checked.
const BEAT: Duration = Duration::from_secs(1);

/// Longest pause of the watch after which the copy still counts as current. A longer one means that the process slept,
/// and that the owner's reports wait in the connection.
const LAPSE: Duration = Duration::from_secs(6);

impl<R> Clone for Mirror<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<R: MirroredKind> Mirror<R> {
    /// The copy of the collection of the service behind `channel`. The parts of a process have the same settings, and
    /// so the same owners, and share it: a change is sent, decoded and held once, also where the owner is in the
    /// process. `listener` gets the present resources first, and then every change after it is visible; it must not
    /// wait.
    pub fn start(
        context: &Context,
        channel: Channel,
        listener: impl Fn(&[Change<R>]) + Send + Sync + 'static,
    ) -> Self {
        let mirror = context.shared.of::<Self>();
        mirror.tell(Box::new(listener));
        if !mirror.shared.followed.swap(true, Ordering::Relaxed) {
            let follower = MirrorFollower::new(mirror.clone(), context.shared.of(), channel);
            context.tasks.spawn_until_shutdown(R::KIND, async {
                follower.follow().await;
                Ok(())
            });
        }
        mirror
    }
}

impl<R> Default for Mirror<R> {
    fn default() -> Self {
        let shared = MirrorInner {
            resources: RwLock::default(),
            followed: AtomicBool::new(false),
            listeners: Mutex::default(),
            revision: watch::Sender::new(0),
            asked: watch::Sender::new(0),
            caught_up: watch::Sender::new(0),
            pulse: Mutex::default(),
            replaced_at: Mutex::default(),
            outage: Mutex::default(),
            replacement_listeners: Mutex::default(),
            availability_listeners: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl<R: Resource> Mirror<R> {
    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        self.shared.resources.read().get(key).map(|held| Arc::clone(&held.0))
    }

    /// Every resource, in no particular order.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.shared.resources.read().iter().map(|held| Arc::clone(&held.0)).collect()
    }

    /// Returns whether the copy is complete, of the incarnation that the owner had when it was last reached.
    pub fn is_complete(&self) -> bool {
        self.revision() > 0
    }

    /// Waits until the copy includes everything up to `revision`; 1 or 0 mean that it is complete at all.
    pub async fn reached(&self, revision: u64) {
        let mut current = self.shared.revision.subscribe();
        // The sender lives as long as the copy, so waiting cannot fail.
        let _reached = current.wait_for(|now| *now >= revision.max(1)).await;
    }

    /// Waits until the copy includes everything that the owner had acknowledged at this call, for callers that were
    /// stopped for a while. Restarts the watch for that.
    pub async fn catch_up(&self) {
        let mut caught_up = self.shared.caught_up.subscribe();
        let mut asked = 0;
        self.shared.asked.send_modify(|before| {
            *before += 1;
            asked = *before;
        });
        // The sender lives as long as the copy, so waiting cannot fail.
        let _caught_up = caught_up.wait_for(|known| *known >= asked).await;
    }

    /// Revision up to which the copy is complete; 0 before the first complete set of an incarnation.
    pub fn revision(&self) -> u64 {
        *self.shared.revision.borrow()
    }

    /// Returns whether the watch works, so that the copy equals the owner's collection but for messages in flight. A
    /// copy that is not current shows the owner's collection at the end of the last watch.
    pub fn is_current(&self) -> bool {
        self.shared.pulse.lock().is_some_and(|seen| seen.elapsed() < LAPSE)
    }

    /// Returns when the copy was last replaced because the owner had lost commits; `None`: never in this process.
    pub fn replaced_at(&self) -> Option<Timestamp> {
        *self.shared.replaced_at.lock()
    }

    /// Calls `listener` with the changes by which another incarnation of the owner replaces the copy, before the other
    /// listeners get them: the owner has lost commits. It must not wait.
    pub fn on_replacement(&self, listener: impl Fn(&[Change<R>]) + Send + Sync + 'static) {
        self.shared.replacement_listeners.lock().push(Box::new(listener));
    }

    /// Returns the outage of the owner; `None`: the watch works, or has broken less than 10 seconds ago.
    pub fn outage(&self) -> Option<OwnerOutage> {
        self.shared.outage.lock().clone()
    }

    /// Calls `listener` whenever the copy becomes current, for the first time and after every gap, and whenever an
    /// outage of the owner is noticed; it must not wait.
    pub fn on_availability_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        let mut listeners = self.shared.availability_listeners.lock();
        if self.is_current() {
            listener();
        }
        listeners.push(Box::new(listener));
    }

    /// Calls `listener` with the present resources, and with every later change.
    fn tell(&self, listener: Listener<R>) {
        let mut listeners = self.shared.listeners.lock();
        let there = self.all().into_iter().map(|current| Change { previous: None, current: Some(current) });
        let there: Vec<_> = there.collect();
        if !there.is_empty() {
            listener(&there);
        }
        listeners.push(listener);
    }
}

/// The task that keeps one mirror current.
struct MirrorFollower<R> {
    mirror: Mirror<R>,
    /// The ledger that owns the kind: a resource that it holds as well is in memory once.
    owner: OwnerView<R>,
    channel: Channel,
    /// After starting over: the earlier resources that have not arrived again.
    stale: Option<HashSet<KeyedResource<R>>>,
    /// The set of another incarnation, which replaces the visible one once it is whole.
    arriving: Option<HashSet<KeyedResource<R>>>,
    resume: ResumeToken,
    /// The incarnation of the visible resources.
    visible: Option<Uuid>,
    /// Whether the initial list is complete, so that further batches are live changes.
    live: bool,
    /// Beginnings of events by the owner's clock and by ours, where the two differ.
    began: HashMap<Box<str>, (Timestamp, Timestamp)>,
    /// Time at which the watch broke, by the monotonic clock and by the wall clock; `None`: it works, or has not begun.
    broken: Option<(Instant, Timestamp)>,
}

impl<R: MirroredKind> MirrorFollower<R> {
    fn new(mirror: Mirror<R>, owner: OwnerView<R>, channel: Channel) -> Self {
        Self {
            mirror,
            owner,
            channel,
            stale: None,
            arriving: None,
            resume: ResumeToken::default(),
            visible: None,
            live: false,
            began: HashMap::new(),
            broken: None,
        }
    }

    async fn follow(mut self) {
        let mut failures = 0;
        loop {
            let before = self.resume;
            let Err(status) = self.follow_once().await else { continue };
            *self.mirror.shared.pulse.lock() = None;
            let fault = Fault::from(status);
            // Not by the code alone: the transport has the same one for a message that is too large, and to start
            // over would bring that message again at once.
            if matches!(fault, Fault::ResumeExpired(_)) {
                self.start_over();
                continue;
            }
            failures = if self.resume.revision > before.revision { 1 } else { failures + 1 };
            self.note_break(&fault);
            tokio::time::sleep(pause::after(failures)).await;
        }
    }

    /// Logs that the watch broke, and notices the outage of the owner once it lasts.
    fn note_break(&mut self, fault: &Fault) {
        let revision = self.resume.revision;
        let Some((at, since)) = self.broken else {
            tracing::warn!(kind = R::KIND, revision, %fault, "watch broke, resuming");
            self.broken = Some((Instant::now(), clock::now()));
            return;
        };
        tracing::debug!(kind = R::KIND, revision, %fault, "watch is still broken");
        let shared = &self.mirror.shared;
        if at.elapsed() >= OUTAGE && shared.outage.lock().is_none() {
            *shared.outage.lock() = Some(OwnerOutage { since, error: fault.to_string() });
            shared.tell_availability();
        }
    }

    /// Follows until the watch breaks. Returns without error when it is to be restarted.
    async fn follow_once(&mut self) -> Result<(), Status> {
        self.live = false;
        let shared = Arc::clone(&self.mirror.shared);
        let mut asked = shared.asked.subscribe();
        let known = *asked.borrow_and_update();
        let AdmittedWatch { incarnation, mut batches } = R::watch(self.channel.clone(), self.resume).await?;
        self.enter(incarnation);
        let mut seen = None;
        loop {
            tokio::select! {
                biased;
                Ok(()) = asked.changed(), if self.live => return Ok(()),
                batch = batches.next() => match batch {
                    Some(batch) => self.apply(batch?),
                    None => return Err(Status::unavailable("the watch ended")),
                },
                () = sleep(BEAT), if self.live => {}
            }
            if self.live && !self.goes_on(&mut seen) {
                return Ok(());
            }
            if self.live {
                shared.caught_up.send_if_modified(|before| std::mem::replace(before, known) != known);
            }
        }
    }

    /// Notes that the watch, last `seen` before, continues. False after a sleep of the process: an unknown number of
    /// reports is still in flight.
    fn goes_on(&mut self, seen: &mut Option<Instant>) -> bool {
        let now = Instant::now();
        if seen.replace(now).is_some_and(|seen| now.duration_since(seen) >= LAPSE) {
            return false;
        }
        let was_current = self.mirror.is_current();
        *self.mirror.shared.pulse.lock() = Some(now);
        if let Some((at, _)) = self.broken.take() {
            tracing::info!(kind = R::KIND, outage = ?at.elapsed(), "watch resumed");
            *self.mirror.shared.outage.lock() = None;
        }
        if !was_current {
            self.mirror.shared.tell_availability();
        }
        true
    }

    fn start_over(&mut self) {
        let revision = self.resume.revision;
        tracing::info!(kind = R::KIND, revision, "the watch cannot be resumed, starting over");
        self.resume = ResumeToken::default();
    }

    /// Notes the incarnation of an admitted watch. A resumed watch continues the visible history, whatever its
    /// incarnation; one that starts over may be of another history.
    fn enter(&mut self, incarnation: Option<Uuid>) {
        self.resume.incarnation = incarnation;
        if self.resume.revision > 0 {
            self.visible = incarnation;
            return;
        }
        let held = self.mirror.shared.resources.read().clone();
        if held.is_empty() || incarnation == self.visible {
            (self.stale, self.arriving, self.visible) = (Some(held), None, incarnation);
            return;
        }
        tracing::warn!(kind = R::KIND, "the owner has begun another incarnation, replacing the copy");
        (self.stale, self.arriving) = (None, Some(HashSet::new()));
        self.mirror.shared.revision.send_replace(0);
    }

    /// Replaces all that is visible by the set of another incarnation.
    fn replace(&mut self, arrived: HashSet<KeyedResource<R>>) {
        let shared = Arc::clone(&self.mirror.shared);
        *shared.replaced_at.lock() = Some(clock::now());
        let listeners = shared.listeners.lock();
        let mut changes = Vec::with_capacity(arrived.len());
        {
            let mut resources = shared.resources.write();
            let mut before = std::mem::replace(&mut *resources, arrived);
            for resource in resources.iter() {
                let previous = before.take(resource.0.key()).map(|held| held.0);
                changes.push(Change { previous, current: Some(Arc::clone(&resource.0)) });
            }
            let gone = before.into_iter().map(|held| Change { previous: Some(held.0), current: None });
            changes.extend(gone);
        }
        self.visible = self.resume.incarnation;
        self.began.retain(|key, _| shared.resources.read().contains(&**key));
        shared.replacement_listeners.lock().iter().for_each(|listener| listener(&changes));
        listeners.iter().for_each(|listener| listener(&changes));
    }

    fn apply(&mut self, batch: Batch<R>) {
        let Batch { changed, deleted, revision, synced } = batch;
        let now = clock::now();
        let changed: Vec<_> = changed.into_iter().map(|resource| self.held(resource, now)).collect();
        self.live |= synced;
        if let Some(mut arriving) = self.arriving.take() {
            arriving.extend(changed.into_iter().map(KeyedResource));
            if synced {
                self.replace(arriving);
                self.advance(revision, synced);
            } else {
                self.arriving = Some(arriving);
            }
            return;
        }
        for deletion in &deleted {
            self.began.remove(&*deletion.key);
        }
        let shared = Arc::clone(&self.mirror.shared);
        let listeners = shared.listeners.lock();
        let mut changes = Vec::with_capacity(changed.len() + deleted.len());
        {
            let mut resources = shared.resources.write();
            for deletion in deleted {
                if resources.get(&*deletion.key).is_some_and(|held| held.0.revision() < deletion.revision) {
                    let previous = resources.take(&*deletion.key).map(|held| held.0);
                    changes.push(Change { previous, current: None });
                }
            }
            for resource in changed {
                if let Some(stale) = &mut self.stale {
                    stale.remove(resource.key());
                }
                let previous = resources.replace(KeyedResource(Arc::clone(&resource))).map(|held| held.0);
                changes.push(Change { previous, current: Some(resource) });
            }
            if synced {
                for stale in self.stale.take().into_iter().flatten() {
                    let previous = resources.take(stale.0.key()).map(|held| held.0);
                    changes.push(Change { previous, current: None });
                }
            }
        }
        listeners.iter().for_each(|listener| listener(&changes));
        drop(listeners);
        self.advance(revision, synced);
    }

    /// The resource as it is held here: the owner's own record, where the owner is in this process and its record is
    /// equal. Otherwise only the text of its key is shared, which many keep as long as the key is in use.
    fn held(&mut self, mut resource: Arc<R>, now: Timestamp) -> Arc<R> {
        let owned = self.owner.get().and_then(|owner| owner.get(resource.key()));
        let told = match owned.or_else(|| self.mirror.get(resource.key())) {
            Some(known) if known == resource => known,
            Some(known) => {
                if let Some(told) = Arc::get_mut(&mut resource) {
                    told.share_key(&known);
                }
                resource
            }
            None => resource,
        };
        self.by_our_clock(told, now)
    }

    /// Waits are measured by our clock, and the owner's may be another.
    fn by_our_clock(&mut self, resource: Arc<R>, now: Timestamp) -> Arc<R> {
        let Some(told) = resource.began() else { return resource };
        let key = resource.key();
        let known =
            self.began.get(key).copied().filter(|(before, _)| *before == told).map(|(_, began)| began);
        let same = || self.mirror.get(key).is_some_and(|before| before.began() == Some(told));
        let began = known.unwrap_or_else(|| began_by_our_clock(told, self.live && !same(), now));
        if began == told {
            self.began.remove(key);
            return resource;
        }
        self.began.insert(key.into(), (told, began));
        resource.with_began(began)
    }

    /// Moves the resume point. During an initial set that is sent in the order of revisions every batch is
    /// one, but only the end of the set makes the copy complete.
    fn advance(&mut self, revision: u64, synced: bool) {
        self.resume.revision = revision;
        let complete = *self.mirror.shared.revision.borrow() > 0;
        if synced || complete {
            self.mirror.shared.revision.send_replace(revision.max(1));
        }
    }
}

#[cfg(test)]
mod tests;
