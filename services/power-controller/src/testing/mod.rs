//! Power upstreams in the process, for the tests of this crate.

pub(crate) mod fleet;
pub(crate) mod pcs;

use std::{future::Future, time::Duration};

use tokio::time::Instant;

/// Longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(150);

/// Waits until `look` returns a value.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
