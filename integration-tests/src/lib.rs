//! Meshes to test: in this process or as processes of their own, with a simulated fleet, on free ports of the
//! loopback interface and in directories of their own.

pub mod authority;
pub mod bos;
pub mod failpoints;
pub mod hosts;
pub mod mesh;
pub mod places;
pub mod ports;
pub mod postgres;
pub mod processes;
pub mod redfish;
pub mod replicas;
pub mod tls_front;
pub mod tools;

use std::{fmt::Debug, future::Future, time::Duration};

use tokio::time::Instant;

/// Longest wait for an event that takes less than a second on an idle machine. Only a hang takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats `look` until it returns a value.
///
/// # Panics
/// When that takes longer than [`PATIENCE`]; the message names `what`.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    eventually_shown(what, async || look().await.ok_or("nothing")).await
}

/// Repeats `look` until it succeeds.
///
/// # Panics
/// When that takes longer than [`PATIENCE`]; the message names `what` and the last failure.
pub async fn eventually_shown<T, S: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<T, S>) -> T {
    let until = Instant::now() + PATIENCE;
    let mut last = None;
    while Instant::now() < until {
        match tokio::time::timeout_at(until, look()).await {
            Ok(Ok(found)) => return found,
            Ok(Err(seen)) => last = Some(seen),
            Err(_) => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("waited in vain for: {what}; seen last: {last:?}")
}
