//! The replica of a part that acts.
//!
//! A part has a *role*, and one replica holds it at a time. Where the database is shared, the role is leased in a row
//! whose *epoch* goes up whenever a replica acquires it. Expiry is judged by the clock of the database; the holder
//! stops earlier, by a monotonic clock of its own that cannot be set. A [`Fence`] in a write names the epoch under
//! which the write was decided; the write changes nothing when that epoch is over, so a replica that slept through the
//! end of its lease does no harm.
//!
//! **A take-over is a start.** [`Role::while_held`] builds the engine of a part when the role is acquired, and drops it
//! when the role is lost: an engine knows nothing of the time before its [`Term`], and outlives none. An epoch that
//! lapsed for a moment never returns: the role is acquired under a new one, as if from another replica. The other
//! replicas are hot standbys, which answer calls.
//!
//! Where the database is not shared, this replica holds the role for ever and none of this costs anything.

mod keeper;
mod migrator;
#[cfg(feature = "simulation")]
mod simulated;
mod table;
mod turns;

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use sea_orm::{DatabaseConnection, DbErr};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tonic::Status;
use uuid::Uuid;

pub use migrator::RoleMigrator;
pub use table::{Migration, RoleMigration};
pub use turns::EngineTurn;

pub use crate::store::fence::Fence;
use crate::{Context, Tasks};
use keeper::LeaseKeeper;
#[cfg(feature = "simulation")]
use simulated::{RoleTable, is_shared};
#[cfg(not(feature = "simulation"))]
use table::{RoleTable, is_shared};
use turns::EngineTurns;

/// Longest wait of a client for a take-over. After that the client may try another replica.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// The role of a part, as one replica sees it. Clones share it.
#[derive(Clone)]
pub struct Role {
    part: &'static str,
    /// Distinguishes this start of this replica from every other; empty where nothing is shared.
    holder: Arc<str>,
    held: watch::Receiver<Option<HeldEpoch>>,
    taken_over: TakenOver,
    turns: EngineTurns,
    /// Whether this replica acquires the role when it can.
    takes_part: Arc<watch::Sender<bool>>,
}

/// Newest epoch whose holder, on any replica, is known to have taken over. Clones share it.
type TakenOver = Arc<watch::Sender<Option<u64>>>;

/// The epoch under which a role is held, and how long it may be acted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeldEpoch {
    epoch: u64,
    /// End of the time to act, by the monotonic clock; `None`: for ever.
    until: Option<Instant>,
}

impl HeldEpoch {
    fn is_in_time(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// The epoch of `held`, if it may be acted under now.
fn current(held: Option<HeldEpoch>) -> Option<u64> {
    held.filter(HeldEpoch::is_in_time).map(|held| held.epoch)
}

/// Returns whether `next` continues the epoch of `held` after a moment in which the role could not be used: a caller
/// may have checked it in that moment, and has dropped the work.
fn lapses(held: Option<HeldEpoch>, next: Option<HeldEpoch>) -> bool {
    let is_same = held.zip(next).is_some_and(|(held, next)| held.epoch == next.epoch);
    is_same && current(held).is_none()
}

/// Unbroken time of holding a role, from its acquisition to its loss.
#[derive(Clone)]
pub struct Term {
    fence: Fence,
    held: watch::Receiver<Option<HeldEpoch>>,
    taken_over: TakenOver,
    turns: EngineTurns,
}

impl Term {
    /// The fencing token of every write that is decided in this term.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Returns whether the term lasts: to be checked right before an effect that cannot be fenced. False from some time
    /// before the lease ends, and for ever after.
    pub fn is_current(&self) -> bool {
        current(*self.held.borrow()) == Some(self.fence.epoch)
    }

    /// Returns whether another replica may have held the role before, and may still be busy with a call that it made
    /// then. Where the database is not shared, an earlier run is over.
    pub fn follows_another(&self) -> bool {
        !self.fence.holder.is_empty()
    }

    /// Reports that the work of the previous holder is taken over: from now on every replica may show the record.
    pub fn took_over(&self) {
        self.taken_over.send_replace(Some(self.fence.epoch));
    }

    /// Begins a turn of the loop `name` of the engine. If a turn makes no progress for `leases.stall_seconds`, the role is
    /// released, so that another replica acts.
    pub fn turn(&self, name: &'static str) -> EngineTurn {
        self.turns.begin(name)
    }

    /// Reports that a turn retries because a peer is away, and does not hang.
    pub fn make_progress(&self) {
        self.turns.make_progress();
    }
}

impl Role {
    /// Takes part in holding the role of `part`, whose `database` was migrated. Holds it for ever where the database is
    /// SQLite; elsewhere the role is acquired within moments, unless another replica holds it. It is released when the
    /// context is shut down.
    ///
    /// # Errors
    /// When the row of the role cannot be created, or the settings of leases contradict one another.
    pub async fn start(
        context: &Context,
        part: &'static str,
        database: &DatabaseConnection,
    ) -> Result<Self, DbErr> {
        if !is_shared(context, database) {
            return Ok(Self::forever());
        }
        let holder: Arc<str> = Uuid::now_v7().to_string().into();
        let (told, held) = watch::channel(None);
        let (taken_over, turns) = (TakenOver::default(), EngineTurns::default());
        let role = Self { part, holder, held, taken_over, turns, takes_part: Arc::default() };
        let keeper = LeaseKeeper::new(context, &role, database, told).await?;
        let shutdown = context.tasks.shutdown();
        context.tasks.spawn("leases", keeper.run(shutdown));
        Ok(role)
    }

    /// Creates a role that is held for ever: for a part that shares it with no replica.
    pub fn forever() -> Self {
        // The receiver shows the last value although the sender is gone.
        let (_, held) = watch::channel(Some(HeldEpoch { epoch: 0, until: None }));
        let (taken_over, turns) = (TakenOver::default(), EngineTurns::default());
        Self { part: "", holder: "".into(), held, taken_over, turns, takes_part: Arc::default() }
    }

    /// Returns whether this replica may act now. False from some time before the lease ends.
    pub fn is_held(&self) -> bool {
        current(*self.held.borrow()).is_some()
    }

    /// Waits until a holder has taken over, this replica or another: records from before the start of all replicas are
    /// not shown as current any more.
    pub async fn taken_over(&self) {
        let mut taken_over = self.taken_over.subscribe();
        // This role keeps the sender.
        let _taken = taken_over.wait_for(Option::is_some).await;
    }

    /// Waits as [`Self::taken_over`] does, as long as a client should wait before it tries another replica.
    ///
    /// # Errors
    /// `UNAVAILABLE` when no replica has taken over in that time, or the service stops.
    pub async fn taken_over_in_time(&self, tasks: &Tasks) -> Result<(), Status> {
        let shutdown = tasks.shutdown();
        tokio::select! {
            () = self.taken_over() => Ok(()),
            () = shutdown.cancelled() => Err(Status::unavailable("the service stops")),
            () = sleep(CLIENT_PATIENCE) => Err(Status::unavailable("no replica has taken over yet")),
        }
    }

    /// Lets this replica acquire the role from now on. Before, it only follows the other replicas: an engine that lacks the
    /// data of its peers would hold the role and not act.
    pub fn take_part(&self) {
        self.takes_part.send_replace(true);
    }

    /// Runs `work` from its beginning whenever this replica acquires the role, and drops it when the role is lost. The
    /// work may be dropped anywhere.
    ///
    /// # Errors
    /// The error with which `work` ends.
    pub async fn while_held<F: Future<Output = anyhow::Result<T>>, T>(
        self,
        mut work: impl FnMut(Term) -> F,
    ) -> anyhow::Result<T> {
        self.take_part();
        let mut terms = pin!(self.terms());
        let mut under_way = pin!(None);
        loop {
            let working = async {
                match under_way.as_mut().as_pin_mut() {
                    Some(work) => work.await,
                    None => std::future::pending().await,
                }
            };
            let term = tokio::select! {
                biased;
                Some(term) = terms.next() => term,
                ended = working => return ended,
            };
            // The last term's work is dropped before the next one begins.
            under_way.set(None);
            under_way.set(term.map(&mut work));
        }
    }

    /// Returns the terms as they begin, and `None` where one ends, without end. The first item is the present state. A
    /// stream that is read slowly skips terms that are over.
    pub fn terms(&self) -> impl Stream<Item = Option<Term>> + Send + use<> {
        let start = (self.clone(), self.held.clone(), None);
        stream::unfold(start, |(role, mut held, known)| async move {
            loop {
                let newest = held.borrow_and_update().map(|held| held.epoch);
                if known != Some(newest) {
                    let term = newest.map(|epoch| role.term(epoch));
                    return Some((term, (role, held, Some(newest))));
                }
                if held.changed().await.is_err() {
                    // The state is final: the role is held for ever, or the process ends.
                    std::future::pending::<()>().await;
                }
            }
        })
    }

    fn term(&self, epoch: u64) -> Term {
        let fence = Fence { part: self.part, holder: Arc::clone(&self.holder), epoch };
        let (taken_over, turns) = (Arc::clone(&self.taken_over), self.turns.clone());
        Term { fence, held: self.held.clone(), taken_over, turns }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::{FutureExt, StreamExt};

    use super::*;

    /// Returns a role and the sender of its keeper.
    fn role() -> (watch::Sender<Option<HeldEpoch>>, Role) {
        let (told, held) = watch::channel(None);
        let (taken_over, turns) = (TakenOver::default(), EngineTurns::default());
        (
            told,
            Role { part: "test", holder: "me".into(), held, taken_over, turns, takes_part: Arc::default() },
        )
    }

    fn held(epoch: u64) -> Option<HeldEpoch> {
        Some(HeldEpoch { epoch, until: Some(Instant::now() + Duration::from_secs(4)) })
    }

    #[tokio::test]
    async fn unshared_role_is_held_for_ever() {
        let role = Role::forever();
        let mut terms = Box::pin(role.terms());
        let term = terms.next().await.unwrap().unwrap();
        assert!(role.is_held() && term.is_current() && !term.follows_another());
        assert!(terms.next().now_or_never().is_none());
        assert!(role.taken_over().now_or_never().is_none());
        term.took_over();
        role.taken_over().await;
    }

    #[tokio::test(start_paused = true)]
    async fn work_begins_anew_in_every_term() {
        let (told, role) = role();
        let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let work = move |term: Term| {
            let began = began.clone();
            async move {
                began.send(term.fence.epoch).unwrap();
                std::future::pending::<anyhow::Result<()>>().await
            }
        };
        let task = tokio::spawn(role.while_held(work));
        told.send_replace(held(1));
        assert_eq!(begun.recv().await, Some(1));
        told.send_replace(held(1));
        told.send_replace(None);
        tokio::task::yield_now().await;
        told.send_replace(held(2));
        assert_eq!(begun.recv().await, Some(2));
        told.send_replace(held(4));
        assert_eq!(begun.recv().await, Some(4), "another replica held it meanwhile");
        assert!(begun.try_recv().is_err());
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn term_ends_before_its_lease_and_does_not_return() {
        let (told, role) = role();
        let mut terms = Box::pin(role.terms());
        assert!(terms.next().await.unwrap().is_none() && !role.is_held());
        told.send_replace(held(7));
        let term = terms.next().await.unwrap().unwrap();
        assert!(role.is_held() && term.is_current());
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!role.is_held() && !term.is_current());
        told.send_replace(held(8));
        assert!(role.is_held() && !term.is_current());
        let next = terms.next().await.unwrap().unwrap();
        assert!(next.is_current() && next.fence() != term.fence());
    }

    #[tokio::test(start_paused = true)]
    async fn lapsed_epoch_is_not_renewed() {
        let before = held(1);
        assert!(!lapses(before, held(1)), "renewed in time");
        tokio::time::advance(Duration::from_secs(4)).await;
        for (next, expected) in [(held(1), true), (held(2), false), (None, false)] {
            assert_eq!(lapses(before, next), expected, "{next:?}");
        }
        let forever = Some(HeldEpoch { epoch: 0, until: None });
        assert!(!lapses(forever, forever) && !lapses(None, held(1)));
    }
}
