//! Fetching everything once for all who want it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Mutex, time::sleep};

use super::Listing;
use crate::upstream::Failure;

/// How long a fetch waits for others who want it: what a session changes comes in several messages.
const MOMENT: Duration = Duration::from_millis(250);

/// A fetch of everything is shared by all who asked for it before it began.
#[derive(Default)]
pub(super) struct Shared {
    /// Counts askers and fetches, to tell which came first.
    clock: AtomicU64,
    newest: Mutex<Option<Fetched>>,
}

struct Fetched {
    began: u64,
    outcome: Result<Arc<Listing>, Failure>,
}

impl Shared {
    /// What a fetch brought that began after this was called: `fetch`, or that of another.
    pub(super) async fn fetched(
        &self,
        fetch: impl Future<Output = Result<Listing, Failure>>,
    ) -> Result<Arc<Listing>, Failure> {
        let asked = self.clock.fetch_add(1, Ordering::SeqCst);
        // Whoever comes while a fetch is under way waits here for the next one.
        let mut newest = self.newest.lock().await;
        if let Some(fetched) = newest.as_ref().filter(|fetched| fetched.began > asked) {
            return fetched.outcome.clone();
        }
        sleep(MOMENT).await;
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let outcome = fetch.await.map(Arc::new);
        *newest = Some(Fetched { began, outcome: outcome.clone() });
        outcome
    }
}
