//! The progress of the engine of a role.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The turns of an engine's loops that are under way. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineTurns(Arc<Mutex<OpenTurns>>);

#[derive(Debug, Default)]
struct OpenTurns {
    last: u64,
    /// Name of the loop of each turn, and when the turn last made progress.
    open: BTreeMap<u64, (&'static str, Instant)>,
}

/// A turn of a loop: from the moment at which the loop has something to do until it waits again, when this is dropped.
#[must_use]
pub struct EngineTurn {
    turns: EngineTurns,
    number: u64,
}

impl Drop for EngineTurn {
    fn drop(&mut self) {
        self.turns.0.lock().open.remove(&self.number);
    }
}

impl EngineTurns {
    pub(super) fn begin(&self, name: &'static str) -> EngineTurn {
        let mut turns = self.0.lock();
        turns.last += 1;
        let number = turns.last;
        turns.open.insert(number, (name, Instant::now()));
        EngineTurn { turns: self.clone(), number }
    }

    /// Notes that a turn retries, because a peer is away.
    pub(super) fn make_progress(&self) {
        let now = Instant::now();
        self.0.lock().open.values_mut().for_each(|(_, since)| *since = now);
    }

    /// The loop that has made no progress for longest, if that is `limit` or more, and for how long.
    pub(super) fn stalled(&self, limit: Duration) -> Option<(&'static str, Duration)> {
        let turns = self.0.lock();
        let longest =
            turns.open.values().map(|(name, since)| (*name, since.elapsed())).max_by_key(|turn| turn.1);
        longest.filter(|(_, lasts)| *lasts >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turn_without_progress_stalls() {
        let (turns, limit) = (EngineTurns::default(), Duration::from_secs(10));
        let advance = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        let turn = turns.begin("decide");
        advance(9).await;
        assert_eq!(turns.stalled(limit), None);
        turns.make_progress();
        advance(9).await;
        let other = turns.begin("read");
        assert_eq!(turns.stalled(limit), None);
        advance(1).await;
        assert_eq!(turns.stalled(limit), Some(("decide", limit)));
        drop(turn);
        assert_eq!(turns.stalled(limit), None, "the other turn has just begun");
        drop(other);
        advance(100).await;
        assert_eq!(turns.stalled(limit), None, "a loop that waits does not stall");
    }
}
