//! Fetches everything once for all concurrent callers.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Mutex, time::sleep};

use super::ComponentListing;
use crate::upstream::Failure;

/// Time for which a fetch waits for more callers: the changes of a session arrive in several messages.
const MOMENT: Duration = Duration::from_millis(250);

/// Shares a fetch of everything among all callers that arrived before it began.
#[derive(Default)]
pub(super) struct SharedFetch {
    /// Counter of callers and fetches, which orders them.
    clock: AtomicU64,
    newest: Mutex<Option<FetchResult>>,
}

struct FetchResult {
    began: u64,
    outcome: Result<Arc<ComponentListing>, Failure>,
}

impl SharedFetch {
    /// Returns the result of a fetch that began after this call: of `fetch`, or of another caller's.
    pub(super) async fn fetched(
        &self,
        fetch: impl Future<Output = Result<ComponentListing, Failure>>,
    ) -> Result<Arc<ComponentListing>, Failure> {
        let asked = self.clock.fetch_add(1, Ordering::SeqCst);
        // Callers that arrive during a fetch wait here for the next one.
        let mut newest = self.newest.lock().await;
        if let Some(fetched) = newest.as_ref().filter(|fetched| fetched.began > asked) {
            return fetched.outcome.clone();
        }
        sleep(MOMENT).await;
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let outcome = fetch.await.map(Arc::new);
        *newest = Some(FetchResult { began, outcome: outcome.clone() });
        outcome
    }
}
