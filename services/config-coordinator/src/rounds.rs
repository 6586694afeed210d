//! Processes a queue in concurrent rounds.

use std::{future::Future, pin::pin, time::Duration};

use chassis::observe::work::WorkQueue;
use domain::core::id::ComponentId;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::time::sleep;

/// Concurrent rounds. A round that waits for a slow upstream must not delay others; many more rounds would only compete
/// for the upstream.
const SIDE_BY_SIDE: usize = 4;

/// Number of components at once that indicates more to come: large machines are switched in several calls, which end
/// one after the other.
const CROWD: usize = 1_000;

/// Passes batches of at most `most` components to rounds of work, without end. When a crowd arrives, the round waits
/// for the rest as long as `patience`: one round for all takes a fraction of the calls of a round for each part.
pub(crate) async fn run<F: Future<Output = ()>>(
    queue: &WorkQueue<ComponentId>,
    most: usize,
    patience: Duration,
    round: impl Fn(Vec<ComponentId>) -> F,
) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            ids = queue.next(most), if running.len() < SIDE_BY_SIDE => {
                let is_crowd = ids.len() >= CROWD && !patience.is_zero();
                let ids = if is_crowd { gather(queue, most, patience, ids, &mut running).await } else { ids };
                running.push(round(ids));
            }
            Some(()) = running.next() => {}
        }
    }
}

/// Returns `ids` and the components that arrive within `patience`. Running rounds continue meanwhile.
async fn gather<F: Future<Output = ()>>(
    queue: &WorkQueue<ComponentId>,
    most: usize,
    patience: Duration,
    mut ids: Vec<ComponentId>,
    running: &mut FuturesUnordered<F>,
) -> Vec<ComponentId> {
    let mut gathered = pin!(sleep(patience));
    loop {
        tokio::select! {
            () = &mut gathered => break,
            Some(()) = running.next() => {}
        }
    }
    if let Some(more) = queue.next(most - ids.len()).now_or_never() {
        ids.extend(more);
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    fn ids(range: std::ops::Range<usize>) -> Vec<ComponentId> {
        range.map(|number| ComponentId::parse(&format!("x{number:05}")).expect("an id")).collect()
    }

    /// Returns the sizes of the rounds when `first` components arrive, and `second` a moment later.
    async fn rounds(first: Vec<ComponentId>, second: Vec<ComponentId>, patience: Duration) -> Vec<usize> {
        let (queue, sizes) = (WorkQueue::default(), Mutex::new(Vec::new()));
        queue.mark(first);
        let round = async |ids: Vec<ComponentId>| sizes.lock().push(ids.len());
        let come = async {
            sleep(Duration::from_millis(50)).await;
            queue.mark(second);
            sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            () = run(&queue, 20_000, patience, round) => {}
            () = come => {}
        }
        sizes.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn only_crowds_are_waited_for() {
        let patience = Duration::from_millis(200);
        assert_eq!(rounds(ids(0..2_500), ids(2_000..5_000), patience).await, [5_000], "each once");
        assert_eq!(rounds(ids(0..999), ids(999..1_000), patience).await, [999, 1]);
        assert_eq!(rounds(ids(0..2_500), ids(2_500..5_000), Duration::ZERO).await, [2_500, 2_500]);
    }
}
