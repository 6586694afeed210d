//! Times at which agents were last seen: noted in memory at once, and stored together once a second.
//!
//! A heartbeat is no revision of its device. However many agents there are, their signs cost one transaction a second.
//! A crash loses the signs of the last second at most; each agent gives the next one within minutes.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::device::sight::SightRecord,
    process::pause,
    store::ledger::{Draft, Ledger},
};
use domain::core::time::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::sleep};

use crate::store::SightTable;

/// Time in which signs share a transaction.
const BEAT: Duration = Duration::from_secs(1);

/// Signs of agents, stored and not yet stored.
pub(crate) struct DeviceLiveness {
    pub(super) sights: Ledger<SightTable>,
    noted: Mutex<NotedSights>,
    news: Notify,
}

/// Sights that are not stored yet, by the name of the device.
#[derive(Default)]
struct NotedSights {
    waiting: HashMap<Arc<str>, NotedSight>,
    /// Sights of the transaction under way. If it fails, they are in the next one.
    under_way: Arc<HashMap<Arc<str>, NotedSight>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotedSight {
    /// The agent was seen.
    Seen(Timestamp),
    /// The device is gone.
    Gone,
}

impl NotedSights {
    fn get(&self, name: &str) -> Option<NotedSight> {
        self.waiting.get(name).or_else(|| self.under_way.get(name)).copied()
    }

    /// Returns the sights of the next transaction.
    fn begin(&mut self) -> Arc<HashMap<Arc<str>, NotedSight>> {
        let newer = std::mem::take(&mut self.waiting);
        Arc::make_mut(&mut self.under_way).extend(newer);
        Arc::clone(&self.under_way)
    }
}

impl DeviceLiveness {
    pub(super) fn new(sights: Ledger<SightTable>) -> Self {
        Self { sights, noted: Mutex::default(), news: Notify::new() }
    }

    /// Notes that the agent of a device was seen. The caller knows that there is such a device.
    pub(super) fn note(&self, name: Arc<str>, at: Timestamp) {
        self.noted.lock().waiting.insert(name, NotedSight::Seen(at));
        self.news.notify_one();
    }

    /// Notes that a device is gone.
    pub(super) fn forget(&self, name: Arc<str>) {
        self.noted.lock().waiting.insert(name, NotedSight::Gone);
        self.news.notify_one();
    }

    /// Returns the last sight of a device.
    pub(super) fn seen(&self, name: &str) -> Option<Timestamp> {
        match self.noted.lock().get(name) {
            Some(NotedSight::Seen(at)) => Some(at),
            Some(NotedSight::Gone) => None,
            None => self.sights.view().get(name).map(|sight| sight.seen_at),
        }
    }

    /// Stores sights, for ever.
    pub(super) async fn run(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut failures = 0;
        loop {
            self.news.notified().await;
            sleep(BEAT).await;
            while let Err(fault) = self.store().await {
                failures += 1;
                tracing::warn!(%fault, failures, "cannot store when agents were seen, trying again");
                sleep(pause::after(failures)).await;
            }
            failures = 0;
        }
    }

    async fn store(&self) -> Result<(), Fault> {
        let noted = self.noted.lock().begin();
        let write = move |draft: &mut Draft<'_, SightRecord>| {
            noted.iter().for_each(|(name, noted)| write_sight(draft, name, *noted));
            Ok(())
        };
        self.sights.write(write).await?;
        self.noted.lock().under_way = Arc::default();
        Ok(())
    }
}

/// Another replica may have stored a later sight.
fn write_sight(draft: &mut Draft<'_, SightRecord>, name: &Arc<str>, noted: NotedSight) {
    let known = draft.get(name);
    match noted {
        NotedSight::Gone => draft.delete(name),
        NotedSight::Seen(seen_at) if known.is_none_or(|known| known.seen_at < seen_at) => {
            draft.put(SightRecord { name: Arc::clone(name), seen_at, revision: 0 });
        }
        NotedSight::Seen(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sights_of_a_failed_transaction_are_in_the_next_one() {
        let mut noted = NotedSights::default();
        let seen = |at| NotedSight::Seen(Timestamp(at));
        noted.waiting.extend([("a".into(), seen(1)), ("b".into(), seen(1)), ("c".into(), seen(1))]);
        assert_eq!(noted.begin().len(), 3);
        noted.waiting.extend([("a".into(), seen(2)), ("c".into(), NotedSight::Gone)]);
        let shown = ["a", "b", "c", "d"].map(|name| noted.get(name));
        assert_eq!(shown, [Some(seen(2)), Some(seen(1)), Some(NotedSight::Gone), None]);
        let next = noted.begin();
        assert_eq!(["a", "b", "c"].map(|name| next[name]), [seen(2), seen(1), NotedSight::Gone]);
        assert!(noted.waiting.is_empty());
    }
}
