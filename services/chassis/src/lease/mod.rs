//! Which part of the work this replica does.
//!
//! The work of a part is cut into 64 *shards* by a hash of the key, the same everywhere and for ever. Where the
//! database is shared, each shard is leased to one replica at a time, in a row whose *epoch* goes up whenever
//! somebody takes the shard. Expiry is judged by the clock of the database; who holds a lease stops earlier, by
//! a clock of its own that nobody can set. A write says by a [`Fence`] under which epochs it was decided, and
//! changes nothing when one of them is over: a replica that slept through the end of its lease does no harm.
//!
//! Whoever asks while a lease is not acted upon drops the work. So an epoch that was not acted upon for a moment never
//! comes back: the shard comes under a new one, as if from another replica, and all of its work is looked at anew.
//!
//! Whoever has more than its share, because another replica has come, gives nothing away before it has taken over all that
//! it holds, for half the time of a lease at most: where the database has lost commits it may know what is not on record any
//! more, and records it while it takes over.
//!
//! Where the database is not shared, this replica holds everything and none of this costs anything.

mod custody;
mod keeper;
mod migrator;
#[cfg(feature = "simulation")]
mod simulated;
mod table;

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use futures_util::{Stream, StreamExt, stream};
use parking_lot::RwLock;
use sea_orm::{DatabaseConnection, DbErr};
use tokio::{sync::watch, time::Instant};
use uuid::Uuid;

pub use custody::{Custody, Takeover};
pub use migrator::Migrator;
pub use table::Migration;

use crate::Context;
pub use crate::fence::{Fence, SHARDS, Shard};
use keeper::Keeper;
#[cfg(feature = "simulation")]
use simulated::{Rows, is_shared};
#[cfg(not(feature = "simulation"))]
use table::{Rows, is_shared};

/// The shards that this replica holds. Clones share it.
#[derive(Clone)]
pub struct Leases {
    part: &'static str,
    /// Tells this start of this replica from every other; empty where nothing is shared.
    holder: Arc<str>,
    held: watch::Receiver<Arc<Held>>,
    taken: Taken,
}

/// Under which epoch each shard was taken over; none where what is held is acted upon at once. Clones share it.
type Taken = Arc<RwLock<Option<BTreeMap<Shard, u64>>>>;

/// What is held, and how long it may be acted upon.
#[derive(Debug, Clone)]
struct Held {
    epochs: BTreeMap<Shard, u64>,
    /// By the monotonic clock; none: for ever.
    until: Option<Instant>,
}

impl Held {
    fn nothing() -> Self {
        Self { epochs: BTreeMap::new(), until: Some(Instant::now()) }
    }

    fn everything() -> Self {
        Self { epochs: Shard::all().map(|shard| (shard, 0)).collect(), until: None }
    }

    /// The epoch under which `shard` is held now, if it is.
    fn epoch(&self, shard: Shard) -> Option<u64> {
        self.epochs.get(&shard).copied().filter(|_| self.is_in_time())
    }

    fn is_in_time(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    /// What is acted upon now.
    fn acted_upon(&self) -> Vec<Shard> {
        if self.is_in_time() { self.epochs.keys().copied().collect() } else { Vec::new() }
    }

    /// Whether `next`, told now, goes on with an epoch that is not acted upon now: somebody may have asked meanwhile.
    fn lapses_before(&self, next: &Self) -> bool {
        let same = |(shard, epoch): (&Shard, &u64)| self.epochs.get(shard) == Some(epoch);
        !self.is_in_time() && next.epochs.iter().any(same)
    }
}

/// Shards that came and went.
///
/// One in both was lost and gained again: whatever it was thought to be busy with has to be looked at anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// Held from now on: somebody else may have worked on them until now.
    pub gained: std::collections::BTreeSet<Shard>,
    /// Not held any more: somebody else may work on them already.
    pub lost: std::collections::BTreeSet<Shard>,
}

/// The epochs of the shards of `keys`; none when one of the shards has none.
fn epochs<'a>(
    keys: impl IntoIterator<Item = &'a str>,
    epoch: impl Fn(Shard) -> Option<u64>,
) -> Option<BTreeMap<Shard, u64>> {
    keys.into_iter().map(Shard::of).map(|shard| Some((shard, epoch(shard)?))).collect()
}

impl Handover {
    /// Whether the shard of `key` came or went.
    pub fn concerns(&self, key: &str) -> bool {
        let shard = Shard::of(key);
        self.gained.contains(&shard) || self.lost.contains(&shard)
    }
}

impl Leases {
    /// Takes part in sharing the work of `part`, whose `database` was migrated. Holds everything for ever where the
    /// database is SQLite; elsewhere shards come within moments, as [`Self::changes`] tells. They are given back when
    /// the context is shut down.
    ///
    /// # Errors
    /// When the rows of the leases cannot be made, or the settings of leases contradict one another.
    pub async fn start(
        context: &Context,
        part: &'static str,
        database: &DatabaseConnection,
    ) -> Result<Self, DbErr> {
        if !is_shared(context, database) {
            return Ok(Self::everything());
        }
        let holder: Arc<str> = Uuid::now_v7().to_string().into();
        let (told, held) = watch::channel(Arc::new(Held::nothing()));
        let leases = Self { part, holder, held, taken: Taken::default() };
        let keeper = Keeper::new(context, &leases, database, told).await?;
        let shutdown = context.tasks.shutdown();
        context.tasks.spawn("leases", keeper.run(shutdown));
        Ok(leases)
    }

    /// Holds everything for ever: for a part that shares its work with nobody.
    pub fn everything() -> Self {
        // The receiver shows the last value although the sender is gone.
        let (_, held) = watch::channel(Arc::new(Held::everything()));
        Self { part: "", holder: "".into(), held, taken: Taken::default() }
    }

    /// Whether this replica may act on `key` now. False from some time before the lease ends.
    pub fn holds(&self, key: &str) -> bool {
        self.holds_shard(Shard::of(key))
    }

    /// Whether this replica may act on the keys of `shard` now.
    pub fn holds_shard(&self, shard: Shard) -> bool {
        self.held.borrow().epoch(shard).is_some()
    }

    /// What a change of these keys has to be written under; none when one of them is not held now. To be asked
    /// before the change is decided, not right before it is written.
    pub fn fence<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<Fence> {
        let held = self.held.borrow();
        let epochs = epochs(keys, |shard| held.epoch(shard))?;
        Some(Fence { part: self.part, holder: Arc::clone(&self.holder), epochs })
    }

    /// Does `work` from its beginning whenever this replica holds `key`, and drops it when it holds it no more: for what
    /// one replica does for all. The work may be dropped anywhere.
    ///
    /// # Errors
    /// What `work` ends with.
    pub async fn while_holding<F: Future<Output = anyhow::Result<T>>, T>(
        self,
        key: &'static str,
        mut work: impl FnMut() -> F,
    ) -> anyhow::Result<T> {
        let mut changes = pin!(self.changes());
        let mut under_way = pin!(None);
        loop {
            let working = async {
                match under_way.as_mut().as_pin_mut() {
                    Some(work) => work.await,
                    None => std::future::pending().await,
                }
            };
            let handover = tokio::select! {
                biased;
                Some(handover) = changes.next() => handover,
                ended = working => return ended,
            };
            if handover.concerns(key) {
                under_way.set(handover.gained.contains(&Shard::of(key)).then(&mut work));
            }
        }
    }

    /// Shards as they come and go, without end. The first item is all that is held now, and may be empty. A shard that
    /// was not acted upon for a while, and that nobody else had meanwhile, has gone and come.
    ///
    /// Who is slow to read gets the sum of what happened. A shard that is lost is not held any more when the item
    /// is read, and may be somebody else's for some time already.
    pub fn changes(&self) -> impl Stream<Item = Handover> + Send + use<> {
        let start = (self.held.clone(), BTreeMap::new(), true);
        stream::unfold(start, |(mut held, known, first)| async move {
            loop {
                let newest = held.borrow_and_update().epochs.clone();
                if first || newest != known {
                    return Some((handover(&known, &newest), (held, newest, false)));
                }
                if held.changed().await.is_err() {
                    // Nothing changes any more: everything is held for ever, or the process ends.
                    std::future::pending::<()>().await;
                }
            }
        })
    }
}

fn handover(before: &BTreeMap<Shard, u64>, after: &BTreeMap<Shard, u64>) -> Handover {
    let not_in = |one: &BTreeMap<Shard, u64>, other: &BTreeMap<Shard, u64>| {
        one.iter().filter(|(shard, epoch)| other.get(shard) != Some(epoch)).map(|(shard, _)| *shard).collect()
    };
    Handover { gained: not_in(after, before), lost: not_in(before, after) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::{FutureExt, StreamExt};

    use super::*;

    #[tokio::test]
    async fn who_shares_with_nobody_holds_everything() {
        let leases = Leases::everything();
        assert!(leases.holds("x1000c0s0b0n0") && leases.holds(""));
        assert!(leases.fence(["a", "b"]).is_some());
        let mut changes = Box::pin(leases.changes());
        let first = changes.next().await.unwrap();
        assert_eq!((first.gained.len(), first.lost.len()), (SHARDS as usize, 0));
        assert!(changes.next().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_does_for_all_begins_anew_whenever_it_comes() {
        let (told, held) = watch::channel(Arc::new(Held::nothing()));
        let leases = Leases { part: "test", holder: "me".into(), held, taken: Taken::default() };
        let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let work = move || {
            let began = began.clone();
            async move {
                began.send(()).unwrap();
                std::future::pending::<anyhow::Result<()>>().await
            }
        };
        let task = tokio::spawn(leases.while_holding("a", work));
        let hold = |epochs: &[(Shard, u64)]| {
            let until = Some(Instant::now() + Duration::from_secs(4));
            told.send_replace(Arc::new(Held { epochs: epochs.iter().copied().collect(), until }));
        };
        hold(&[(Shard::of("a"), 1)]);
        begun.recv().await.unwrap();
        hold(&[]);
        tokio::task::yield_now().await;
        hold(&[(Shard::of("a"), 2)]);
        begun.recv().await.unwrap();
        assert!(begun.try_recv().is_err());
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_not_acted_upon_until_its_end() {
        let (told, held) = watch::channel(Arc::new(Held::nothing()));
        let leases = Leases { part: "test", holder: "me".into(), held, taken: Taken::default() };
        let shard = Shard::of("a");
        assert!(!leases.holds("a") && leases.fence(["a"]).is_none());
        let until = Some(Instant::now() + Duration::from_secs(4));
        told.send_replace(Arc::new(Held { epochs: [(shard, 7)].into(), until }));
        assert!(leases.holds("a") && leases.fence(["a"]).unwrap().epochs == [(shard, 7)].into());
        let foreign = (0..).map(|n| n.to_string()).find(|key| Shard::of(key) != shard).unwrap();
        assert!(leases.fence(["a", &foreign]).is_none(), "one of two is not held");
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!leases.holds("a") && leases.fence(["a"]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn no_epoch_goes_on_after_a_time_without_it() {
        let [one, two] = ["a", "b"].map(Shard::of);
        let held = |epochs: &[(Shard, u64)]| {
            let until = Some(Instant::now() + Duration::from_secs(4));
            Held { epochs: epochs.iter().copied().collect(), until }
        };
        let before = held(&[(one, 1), (two, 1)]);
        assert_eq!(before.acted_upon().len(), 2);
        assert!(!before.lapses_before(&held(&[(one, 1), (two, 1)])), "renewed in time");
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(before.acted_upon().is_empty());
        for (next, lapses) in [
            (held(&[(one, 1), (two, 1)]), true),
            (held(&[(one, 2), (two, 1)]), true),
            (held(&[(one, 2), (two, 2)]), false),
            (held(&[]), false),
        ] {
            assert_eq!(before.lapses_before(&next), lapses, "{next:?}");
        }
        assert!(!Held::everything().lapses_before(&Held::everything()));
    }

    #[test]
    fn a_shard_that_was_away_is_both_lost_and_gained() {
        let [one, two, three] = ["a", "b", "c"].map(Shard::of);
        let changed = handover(&[(one, 1), (two, 1)].into(), &[(two, 3), (three, 1)].into());
        assert_eq!(changed, Handover { gained: [two, three].into(), lost: [one, two].into() });
    }
}
