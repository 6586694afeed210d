//! Delivers state change notifications to subscribers.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::hsm::NoticeDelivery;

/// Notifications on their way at the same time, so that one slow subscriber does not hold up the others.
const MOST_UNDER_WAY: usize = 32;

/// A subscriber that takes longer misses the notification, as with the real inventory.
const DEADLINE: Duration = Duration::from_secs(10);

/// Delivers notices until shutdown.
pub(crate) async fn run(
    client: reqwest::Client,
    mut deliveries: mpsc::Receiver<NoticeDelivery>,
    shutdown: CancellationToken,
) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(delivery) = deliveries.recv(), if under_way.len() < MOST_UNDER_WAY => {
                under_way.push(deliver(&client, delivery));
            }
            Some(()) = under_way.next() => {}
        }
    }
}

async fn deliver(client: &reqwest::Client, delivery: NoticeDelivery) {
    let request = client.post(&delivery.url).header("content-type", "application/json").timeout(DEADLINE);
    match request.body(delivery.body).send().await {
        Ok(answer) => tracing::debug!(url = delivery.url, status = %answer.status(), "notified"),
        Err(error) => tracing::debug!(url = delivery.url, %error, "could not notify"),
    }
}
