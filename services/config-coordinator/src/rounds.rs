//! Working off a queue in rounds, several at a time.

use std::future::Future;

use chassis::work::WorkQueue;
use domain::id::ComponentId;
use futures_util::{StreamExt, stream::FuturesUnordered};

/// Rounds that run at the same time. One that waits for a slow upstream must not keep others waiting; many
/// more than a few would only take the upstream's attention from each other.
const SIDE_BY_SIDE: usize = 4;

/// Hands batches of at most `most` components to rounds of work, without end.
pub(crate) async fn run<F: Future<Output = ()>>(
    queue: &WorkQueue<ComponentId>,
    most: usize,
    round: impl Fn(Vec<ComponentId>) -> F,
) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            ids = queue.next(most), if running.len() < SIDE_BY_SIDE => running.push(round(ids)),
            Some(()) = running.next() => {}
        }
    }
}
