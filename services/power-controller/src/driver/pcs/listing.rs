//! The list of transitions of the service. Concurrent callers share one call.

use std::{collections::HashSet, sync::Arc};

use tokio::{sync::Mutex, time::Instant};

use crate::driver::DriverFailure;

/// Newest list, or the failure to get it.
#[derive(Default)]
pub(super) struct SharedListing(Mutex<Option<ListedTransitions>>);

struct ListedTransitions {
    began: Instant,
    ids: Result<Arc<HashSet<String>>, DriverFailure>,
}

impl SharedListing {
    /// Returns the ids of a list that was requested at `earliest` or later. There is one call at a time, and callers
    /// that arrive meanwhile share the next one.
    ///
    /// # Errors
    /// The failure of `list`, possibly of another caller's.
    pub(super) async fn listed_from<F>(
        &self,
        earliest: Instant,
        list: impl FnOnce() -> F,
    ) -> Result<Arc<HashSet<String>>, DriverFailure>
    where
        F: Future<Output = Result<HashSet<String>, DriverFailure>>,
    {
        let mut newest = self.0.lock().await;
        if let Some(listing) = newest.as_ref().filter(|listing| listing.began >= earliest) {
            return listing.ids.clone();
        }
        let began = Instant::now();
        let ids = list().await.map(Arc::new);
        *newest = Some(ListedTransitions { began, ids: ids.clone() });
        ids
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn one_list_serves_all_who_came_before_it() {
        let (shared, calls) = (SharedListing::default(), AtomicUsize::new(0));
        let ask = |earliest| {
            shared.listed_from(earliest, || async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                match calls.fetch_add(1, Ordering::Relaxed) {
                    0 => Err(DriverFailure::Unreachable("no answer".to_owned())),
                    call => Ok([call.to_string()].into()),
                }
            })
        };
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = Instant::now();
            join_all((0..50).map(|_| ask(now))).await
        };
        let first = join_all((0..50).map(|_| ask(Instant::now())));
        let (first, later) = tokio::join!(first, later);
        assert!(first.iter().all(Result::is_err));
        assert!(later.iter().all(|ids| ids.as_ref().unwrap().contains("1")));
        assert_eq!(calls.into_inner(), 2);
    }
}
