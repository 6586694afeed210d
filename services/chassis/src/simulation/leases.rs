//! The rows of leases and replicas on a disk in memory. Each function does what the statement of the same name does to
//! the tables of a database; who may do it to which rows at what time is said by the transaction around it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::Defect;
use crate::fence::Shard;

/// A replica, as it writes to the rows.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) id: Arc<str>,
    /// How long what it takes or renews lasts.
    pub(crate) ttl: Duration,
    /// The start of the host that it is.
    pub(crate) start: u64,
}

/// All rows of one part.
#[derive(Clone, Default)]
pub(crate) struct LeaseRows {
    leases: BTreeMap<Shard, Lease>,
    /// Until when each lives.
    replicas: BTreeMap<Arc<str>, Instant>,
}

#[derive(Clone)]
struct Lease {
    /// Empty: nobody.
    holder: Arc<str>,
    start: u64,
    epoch: u64,
    expires_at: Instant,
}

impl LeaseRows {
    pub(crate) fn make(&mut self, now: Instant) {
        for shard in Shard::all() {
            let free = Lease { holder: "".into(), start: 0, epoch: 0, expires_at: now };
            self.leases.entry(shard).or_insert(free);
        }
    }

    pub(crate) fn live(&mut self, who: &Holder, now: Instant) -> (u64, bool) {
        let is_new = self.replicas.insert(Arc::clone(&who.id), now + who.ttl).is_none();
        self.replicas.retain(|_, expires_at| *expires_at >= now);
        (self.replicas.len() as u64, is_new)
    }

    pub(crate) fn renew(&mut self, who: &Holder, acted_upon: &[Shard], now: Instant) -> BTreeMap<Shard, u64> {
        let mine = self.leases.iter_mut().filter(|(shard, lease)| {
            lease.holder == who.id && lease.expires_at >= now && acted_upon.contains(shard)
        });
        let renewed = mine.map(|(shard, lease)| {
            lease.expires_at = now + who.ttl;
            (*shard, lease.epoch)
        });
        renewed.collect()
    }

    /// What [`Self::take`] may take, in order.
    pub(crate) fn free(&self, who: &Holder, acted_upon: &[Shard], now: Instant) -> Vec<Shard> {
        let is_free = |(shard, lease): &(&Shard, &Lease)| {
            lease.holder.is_empty()
                || lease.expires_at < now
                || (lease.holder == who.id && !acted_upon.contains(shard))
        };
        let lost = |shard: &Shard| Defect::LostShard.is_planted() && Some(*shard) == Shard::all().last();
        self.leases.iter().filter(is_free).map(|(shard, _)| *shard).filter(|shard| !lost(shard)).collect()
    }

    pub(crate) fn take(&mut self, who: &Holder, shards: &[Shard], now: Instant) -> BTreeMap<Shard, u64> {
        let mut taken = BTreeMap::new();
        for shard in shards {
            if let Some(lease) = self.leases.get_mut(shard) {
                let epoch = lease.epoch + 1;
                *lease =
                    Lease { holder: Arc::clone(&who.id), start: who.start, epoch, expires_at: now + who.ttl };
                taken.insert(*shard, epoch);
            }
        }
        taken
    }

    pub(crate) fn next_change(
        &self,
        who: &Holder,
        held: &[Shard],
        short: bool,
        now: Instant,
    ) -> Option<Duration> {
        let others = self.leases.iter().filter(|(shard, _)| !held.contains(shard));
        let waited_for = others.filter(|(_, lease)| lease.holder == who.id || short);
        let at = waited_for.map(|(_, lease)| if lease.holder == who.id { now } else { lease.expires_at });
        at.min().map(|at| at.saturating_duration_since(now))
    }

    /// What `who` has beside `held`.
    pub(crate) fn others_of(&self, who: &Holder, held: &[Shard]) -> Vec<Shard> {
        let mine =
            self.leases.iter().filter(|(shard, lease)| lease.holder == who.id && !held.contains(shard));
        mine.map(|(shard, _)| *shard).collect()
    }

    pub(crate) fn release(&mut self, shards: &[Shard], now: Instant) {
        for shard in shards {
            if let Some(lease) = self.leases.get_mut(shard) {
                (lease.holder, lease.expires_at) = ("".into(), now);
            }
        }
    }

    pub(crate) fn leave(&mut self, who: &Holder) {
        self.replicas.remove(&who.id);
    }

    /// Whether `shard` is `holder`'s under `epoch`, and nobody has taken it since.
    pub(crate) fn is(&self, shard: Shard, holder: &str, epoch: u64) -> bool {
        self.leases.get(&shard).is_some_and(|lease| *lease.holder == *holder && lease.epoch == epoch)
    }

    /// Which start took `shard` last, if it was not released since.
    pub(crate) fn start_of(&self, shard: Shard) -> Option<u64> {
        self.leases.get(&shard).filter(|lease| !lease.holder.is_empty()).map(|lease| lease.start)
    }

    /// The shards that each start holds now.
    pub(crate) fn held(&self, now: Instant) -> BTreeMap<u64, BTreeSet<Shard>> {
        let mut held = BTreeMap::<_, BTreeSet<_>>::new();
        let leases = self.leases.iter().filter(|(_, lease)| !lease.holder.is_empty());
        for (shard, lease) in leases.filter(|(_, lease)| lease.expires_at >= now) {
            held.entry(lease.start).or_default().insert(*shard);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(6);

    fn holder(id: &str, start: u64) -> Holder {
        Holder { id: id.into(), ttl: TTL, start }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_ran_out_is_not_renewed_and_is_taken_under_the_next_epoch() {
        let (one, other) = (holder("one", 1), holder("other", 2));
        let (mut rows, shards) = (LeaseRows::default(), Shard::all().take(2).collect::<Vec<_>>());
        let now = Instant::now();
        rows.make(now);
        assert_eq!(rows.free(&one, &[], now).len(), 64);
        let taken = rows.take(&one, &shards, now);
        assert_eq!(taken.values().copied().collect::<Vec<_>>(), [1, 1]);
        assert_eq!(rows.free(&other, &[], now).len(), 62);
        assert_eq!(rows.free(&one, &shards[..1], now).len(), 63, "what it does not act upon is not kept");
        assert_eq!(rows.next_change(&other, &[], false, now), None);
        assert_eq!(rows.next_change(&one, &shards[..1], false, now), Some(Duration::ZERO));

        assert_eq!(rows.renew(&one, &shards, now + TTL), taken, "to the last moment");
        let later = now + TTL * 2 + Duration::from_millis(1);
        assert!(rows.renew(&one, &shards, later).is_empty() && rows.held(later).is_empty());
        assert!(rows.is(shards[0], "one", 1), "nobody has taken it");
        assert_eq!(rows.take(&other, &shards[..1], later), [(shards[0], 2)].into());
        assert!(!rows.is(shards[0], "one", 1) && rows.start_of(shards[0]) == Some(2));

        rows.release(&shards[..1], later);
        assert_eq!(rows.start_of(shards[0]), None);
        assert_eq!(rows.take(&one, &shards[..1], later), [(shards[0], 3)].into());
    }

    #[tokio::test(start_paused = true)]
    async fn replicas_that_fell_silent_are_counted_no_more() {
        let mut rows = LeaseRows::default();
        let now = Instant::now();
        assert_eq!(rows.live(&holder("one", 1), now), (1, true));
        assert_eq!(rows.live(&holder("other", 2), now + TTL), (2, true));
        assert_eq!(rows.live(&holder("other", 2), now + TTL * 2), (1, false));
        rows.leave(&holder("other", 2));
        assert_eq!(rows.live(&holder("one", 3), now), (1, true));
    }
}
