//! Meshes to test: in this process or as processes of their own, with a simulated fleet, on free ports of the
//! loopback interface and in directories of their own.

pub mod authority;
pub mod bos;
pub mod mesh;
pub mod places;
pub mod processes;
pub mod tools;

use std::{future::Future, time::Duration};

/// How long to wait for something that happens within a second on an idle machine. Only a hang takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks `look` again and again until it gives something.
///
/// # Panics
/// When that takes longer than [`PATIENCE`]; says what was waited for.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let search = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, search).await.unwrap_or_else(|_| panic!("waited in vain for: {what}"))
}
