//! Lies on the way from a registry to a watcher, each a defect that a registry might have.

use std::collections::VecDeque;

use futures_util::{StreamExt, stream};
use proto::component::{Component, WatchComponentsResponse as Batch};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::wire::Batches;

/// What is done to a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Now and then a change is left out.
    Skip,
    /// Now and then a change is told again.
    Repeat,
    /// Now and then a bookmark is too high.
    Bookmark,
    /// Now and then two batches change places.
    Swap,
    /// Half of the deletions are left out.
    Deletions,
    /// After a resume the changes that were missed are left out.
    Resume,
    /// After a resume the deletions that were missed are left out, as if they were forgotten and nobody noticed.
    Compaction,
}

/// All of them.
pub const FAULTS: [Fault; 7] = [
    Fault::Skip,
    Fault::Repeat,
    Fault::Bookmark,
    Fault::Swap,
    Fault::Deletions,
    Fault::Resume,
    Fault::Compaction,
];

/// How often "now and then" is.
const OFTEN: f64 = 0.1;

impl Fault {
    /// A watch that was opened at `from`, with the fault.
    pub fn spoil(self, batches: Batches, from: u64, seed: u64) -> Batches {
        let liar = Liar {
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

struct Liar {
    fault: Fault,
    rng: SmallRng,
    from: u64,
    synced: bool,
    /// A change that was told before.
    told: Option<Component>,
    /// A batch that waits for the next one to go first.
    held: Option<Batch>,
    ready: VecDeque<Batch>,
}

impl Liar {
    fn take(&mut self, mut batch: Batch) {
        let now = self.synced && self.rng.random_bool(OFTEN);
        let resuming = self.from > 0 && !self.synced;
        self.synced |= batch.synced;
        let told = std::mem::replace(&mut self.told, batch.components.first().cloned());
        match self.fault {
            Fault::Skip if now => drop(batch.components.pop()),
            Fault::Repeat if now => batch.components.splice(..0, told).for_each(drop),
            Fault::Bookmark if now => batch.revision += 5,
            Fault::Deletions => batch.deletions.retain(|_| self.rng.random_bool(0.5)),
            Fault::Resume if resuming => batch.components.clear(),
            Fault::Compaction if resuming => batch.deletions.clear(),
            Fault::Swap if now && self.held.is_none() => {
                self.held = Some(batch);
                return;
            }
            _ => {}
        }
        self.ready.push_back(batch);
        self.ready.extend(self.held.take());
    }
}
