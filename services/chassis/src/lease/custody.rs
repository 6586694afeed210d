//! What of the held work was taken over: looked at as after a start, and acted upon since.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{Stream, StreamExt};
use tokio::time::Instant;

use super::{Fence, Handover, Leases, Shard, epochs};

/// The keys that this replica acts upon. Clones share it.
///
/// A shard that was leased is acted upon only after it was taken over: whatever the replica before has left is looked
/// at first, as a restart looks at what the last run left. One that was lost is in nobody's hands here from the moment
/// that the lease is not held any more.
#[derive(Clone)]
pub struct Custody {
    leases: Leases,
}

/// Shards that came and went. Those that came have to be looked at, and are then [taken](Custody::take).
#[derive(Debug, Clone)]
pub struct Takeover {
    part: &'static str,
    holder: Arc<str>,
    /// Shards that came, with their epochs.
    gained: BTreeMap<Shard, u64>,
    /// Shards that went. One that went and came again is not among them: it is looked at anew.
    lost: BTreeSet<Shard>,
    /// When they came.
    since: Instant,
}

impl Takeover {
    /// Whether the shard of `key` came.
    pub fn gains(&self, key: &str) -> bool {
        self.gained.contains_key(&Shard::of(key))
    }

    /// Whether the shard of `key` went.
    pub fn loses(&self, key: &str) -> bool {
        self.lost.contains(&Shard::of(key))
    }

    /// Whether any shard came.
    pub fn gains_any(&self) -> bool {
        !self.gained.is_empty()
    }

    /// Whether another replica may have had what came, and may still be busy with it. What is shared with nobody was
    /// left by a run that is over.
    pub fn is_from_others(&self) -> bool {
        !self.holder.is_empty()
    }

    /// Under what a change of `keys` has to be written before they are acted upon; none when one of them did not come.
    pub fn fence<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<Fence> {
        let epochs = epochs(keys, |shard| self.gained.get(&shard).copied())?;
        Some(Fence { part: self.part, holder: Arc::clone(&self.holder), epochs })
    }

    /// Whether the shard of `key` came or went: nothing that was remembered of it counts any more.
    pub fn concerns(&self, key: &str) -> bool {
        self.gains(key) || self.loses(key)
    }
}

impl Custody {
    /// What `leases` brings, of which nothing is taken over yet.
    pub fn new(leases: Leases) -> Self {
        leases.taken.write().get_or_insert_default();
        Self { leases }
    }

    /// Whether this replica acts upon `key` now.
    pub fn has(&self, key: &str) -> bool {
        self.epoch(Shard::of(key)).is_some()
    }

    /// Under what a change of `keys` has to be written; none when one of them is not acted upon here. To be asked
    /// before the change is decided: whoever asked before a hand-over cannot write after it.
    pub fn fence<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<Fence> {
        let epochs = epochs(keys, |shard| self.epoch(shard))?;
        Some(Fence { part: self.leases.part, holder: Arc::clone(&self.leases.holder), epochs })
    }

    /// Under what a change of those of `keys` has to be written that are acted upon here. Which ones that are is told by
    /// [`Self::still_has`].
    pub fn fence_of_those<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Fence {
        let epochs = keys.into_iter().filter_map(|key| {
            let shard = Shard::of(key);
            Some((shard, self.epoch(shard)?))
        });
        Fence { part: self.leases.part, holder: Arc::clone(&self.leases.holder), epochs: epochs.collect() }
    }

    /// Whether nothing was handed over since `fence` was given: to be asked right before something is done that cannot
    /// be fenced.
    pub fn is_current(&self, fence: &Fence) -> bool {
        fence.epochs.iter().all(|(shard, epoch)| self.epoch(*shard) == Some(*epoch))
    }

    /// Whether `key` was not handed over since `fence` was given.
    pub fn still_has(&self, fence: &Fence, key: &str) -> bool {
        let shard = Shard::of(key);
        self.epoch(shard).is_some_and(|epoch| fence.epochs.get(&shard) == Some(&epoch))
    }

    /// Tells one time of having `key` from every other; none while this replica does not act upon it.
    pub fn tenure(&self, key: &str) -> Option<u64> {
        self.epoch(Shard::of(key))
    }

    fn epoch(&self, shard: Shard) -> Option<u64> {
        let held = self.leases.held.borrow().epoch(shard)?;
        self.leases.taken.read().as_ref()?.get(&shard).copied().filter(|taken| *taken == held)
    }

    /// Shards as they come and go, without end. Whoever gets one looks at what there is under its keys and then
    /// [takes](Self::take) it. Nothing of it is acted upon before. There can be one who does that; others look at the
    /// [changes](Self::changes).
    pub fn takeovers(&self) -> impl Stream<Item = Takeover> + Send + use<> {
        let custody = self.clone();
        self.leases.changes().map(move |handover| custody.hand_over(handover.gained, handover.lost))
    }

    /// The part of `takeover` that is still this replica's, taken or not.
    pub fn rest_of(&self, takeover: &Takeover) -> Takeover {
        let held = self.leases.held.borrow();
        let mut rest = takeover.clone();
        rest.gained.retain(|shard, epoch| held.epoch(*shard) == Some(*epoch));
        rest
    }

    /// Shards as they come and go, for whoever has to forget what was known of them.
    pub fn changes(&self) -> impl Stream<Item = Handover> + Send + use<> {
        self.leases.changes()
    }

    fn hand_over(&self, gained: BTreeSet<Shard>, mut lost: BTreeSet<Shard>) -> Takeover {
        let mut taken = self.leases.taken.write();
        taken.iter_mut().for_each(|taken| taken.retain(|shard, _| !lost.contains(shard)));
        lost.retain(|shard| !gained.contains(shard));
        let held = self.leases.held.borrow();
        // One that is lost again already comes with the next item.
        let gained = gained.into_iter().filter_map(|shard| Some((shard, *held.epochs.get(&shard)?)));
        Takeover {
            part: self.leases.part,
            holder: Arc::clone(&self.leases.holder),
            gained: gained.collect(),
            lost,
            since: Instant::now(),
        }
    }

    /// Acts upon what `takeover` brought from now on.
    pub fn take(&self, takeover: &Takeover) {
        let part = self.leases.part;
        let held = {
            let mut taken = self.leases.taken.write();
            let taken = taken.get_or_insert_default();
            taken.extend(takeover.gained.iter().map(|(shard, epoch)| (*shard, *epoch)));
            taken.len()
        };
        // Where nothing is shared there is nothing to tell.
        if part.is_empty() {
            return;
        }
        let (gained, lost) = (takeover.gained.len(), takeover.lost.len());
        if gained + lost > 0 {
            let took = takeover.since.elapsed().as_secs_f64() * 1e3;
            tracing::info!(part, held, gained, lost, milliseconds = took, "shards taken over");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::lease::{Held, Taken};

    /// Leases as somebody else tells them.
    fn leases() -> (watch::Sender<Arc<Held>>, Custody) {
        let (told, held) = watch::channel(Arc::new(Held::nothing()));
        (told, Custody::new(Leases { part: "test", holder: "me".into(), held, taken: Taken::default() }))
    }

    fn held(epochs: &[(&str, u64)]) -> Arc<Held> {
        let until = Some(Instant::now() + Duration::from_secs(4));
        Arc::new(Held { epochs: epochs.iter().map(|(key, epoch)| (Shard::of(key), *epoch)).collect(), until })
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_acted_upon_after_it_was_taken_over() {
        let (told, custody) = leases();
        let mut takeovers = Box::pin(custody.takeovers());
        let first = takeovers.next().await.unwrap();
        custody.take(&first);
        assert!(!first.gains("a") && !custody.has("a"));

        told.send_replace(held(&[("a", 1)]));
        let takeover = takeovers.next().await.unwrap();
        assert!(takeover.gains("a") && !custody.has("a"), "nobody has looked at it yet");
        custody.take(&takeover);
        assert!(custody.has("a"));
        let fence = custody.fence(["a"]).unwrap();
        assert!(custody.is_current(&fence) && custody.tenure("a") == Some(1));

        told.send_replace(held(&[("a", 3)]));
        assert!(!custody.has("a") && !custody.is_current(&fence), "somebody else had it meanwhile");
        let takeover = takeovers.next().await.unwrap();
        assert!(takeover.gains("a") && !takeover.loses("a"));
        assert_eq!(takeover.fence(["a"]).unwrap().epochs, [(Shard::of("a"), 3)].into());
        custody.take(&takeover);
        assert_eq!(custody.fence(["a"]), takeover.fence(["a"]));
        assert!(!custody.is_current(&fence));

        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!custody.has("a"), "the lease may be somebody else's");
        told.send_replace(held(&[]));
        let takeover = takeovers.next().await.unwrap();
        assert!(takeover.loses("a"));
        assert!(takeovers.next().now_or_never().is_none());
    }
}
