//! Lies on the way from a registry to a watcher, each a defect that a registry might have.

use std::collections::VecDeque;

use futures_util::{StreamExt, stream};
use proto::component::{Component, WatchComponentsResponse as Batch};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::wire::Batches;

/// A fault planted into a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedFault {
    /// Now and then a change is left out.
    Skip,
    /// Now and then a change is delivered again.
    Repeat,
    /// Now and then a bookmark is too high.
    Bookmark,
    /// Now and then two batches change places.
    Swap,
    /// Half of the deletions are left out.
    Deletions,
    /// After a resume the changes that were missed are left out.
    Resume,
    /// After a resume the missed deletions are left out, as if a forgotten deletion went unnoticed.
    Compaction,
}

/// All of them.
pub const FAULTS: [PlantedFault; 7] = [
    PlantedFault::Skip,
    PlantedFault::Repeat,
    PlantedFault::Bookmark,
    PlantedFault::Swap,
    PlantedFault::Deletions,
    PlantedFault::Resume,
    PlantedFault::Compaction,
];

/// Probability of a planted fault.
const OFTEN: f64 = 0.1;

impl PlantedFault {
    /// A watch that was opened at `from`, with the fault.
    pub fn spoil(self, batches: Batches, from: u64, seed: u64) -> Batches {
        let liar = LyingStream {
            fault: self,
            rng: SmallRng::seed_from_u64(seed),
            from,
            synced: false,
            told: None,
            held: None,
            ready: VecDeque::new(),
        };
        let lies = stream::unfold((batches, liar), |(mut batches, mut liar)| async move {
            loop {
                if let Some(batch) = liar.ready.pop_front() {
                    return Some((Ok(batch), (batches, liar)));
                }
                match batches.next().await? {
                    Ok(batch) => liar.take(batch),
                    Err(status) => return Some((Err(status), (batches, liar))),
                }
            }
        });
        lies.boxed()
    }
}

struct LyingStream {
    fault: PlantedFault,
    rng: SmallRng,
    from: u64,
    synced: bool,
    /// An earlier change, to be repeated.
    told: Option<Component>,
    /// A batch that waits for the next one to go first.
    held: Option<Batch>,
    ready: VecDeque<Batch>,
}

impl LyingStream {
    fn take(&mut self, mut batch: Batch) {
        let now = self.synced && self.rng.random_bool(OFTEN);
        let resuming = self.from > 0 && !self.synced;
        self.synced |= batch.synced;
        let told = std::mem::replace(&mut self.told, batch.components.first().cloned());
        match self.fault {
            PlantedFault::Skip if now => drop(batch.components.pop()),
            PlantedFault::Repeat if now => batch.components.splice(..0, told).for_each(drop),
            PlantedFault::Bookmark if now => batch.revision += 5,
            PlantedFault::Deletions => batch.deletions.retain(|_| self.rng.random_bool(0.5)),
            PlantedFault::Resume if resuming => batch.components.clear(),
            PlantedFault::Compaction if resuming => batch.deletions.clear(),
            PlantedFault::Swap if now && self.held.is_none() => {
                self.held = Some(batch);
                return;
            }
            _ => {}
        }
        self.ready.push_back(batch);
        self.ready.extend(self.held.take());
    }
}
