//! Looks at the systems of BMCs, for listings. A look may last longer than its listing: it then counts in a later one,
//! which does not wait for it, so that BMCs that hang keep no listing from its end.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use domain::{
    core::time::Timestamp,
    host::{evidence::DriverView, record::HostKey},
};
use tokio::{
    sync::{Mutex, Semaphore},
    task::{JoinError, JoinSet},
    time::{Instant, timeout_at},
};

use super::{RedfishHostDriver, view::view};
use crate::driver::{BackendListing, HostTarget};

/// Looks under way. There is one at a time for each host.
pub(super) struct BmcLooks {
    running: Mutex<RunningLooks>,
    /// Time for which one listing waits for BMCs.
    patience: Duration,
    /// Permits for looks: half of all calls, so that operations go on meanwhile.
    usual: Arc<Semaphore>,
    /// Permits for looks at BMCs that were silent last time: a few, so that hundreds of them delay no others.
    silent: Arc<Semaphore>,
}

#[derive(Default)]
struct RunningLooks {
    tasks: JoinSet<SystemLook>,
    hosts: HashSet<HostKey>,
    /// Hosts whose BMCs gave no answer when they were last looked at.
    silent: HashSet<HostKey>,
}

/// Look that has ended.
struct SystemLook {
    host: Arc<HostTarget>,
    view: DriverView,
    is_silent: bool,
}

impl BmcLooks {
    /// Creates looks for listings that wait for `patience`, of BMCs that take so many calls at the same time together.
    pub(super) fn new(patience: Duration, calls_in_flight: usize) -> Self {
        let share = |part: usize| Arc::new(Semaphore::new((calls_in_flight / part).max(1)));
        Self { running: Mutex::default(), patience, usual: share(2), silent: share(8) }
    }

    /// Looks at hosts, and returns the sights that came in time. The others are as they were: their looks go on.
    pub(super) async fn list(
        &self,
        driver: &RedfishHostDriver,
        hosts: &[Arc<HostTarget>],
        asked_at: Timestamp,
    ) -> BackendListing {
        let deadline = Instant::now() + self.patience;
        let mut running = self.running.lock().await;
        let wanted: HashMap<_, _> = hosts.iter().map(|host| (&host.key, host)).collect();
        running.silent.retain(|key| wanted.contains_key(key));
        let mut awaited: HashSet<_> = hosts
            .iter()
            .filter(|host| self.begin(&mut running, driver, host))
            .map(|host| &host.key)
            .collect();
        let mut looks = Vec::new();
        while !awaited.is_empty()
            && let Ok(Some(look)) = timeout_at(deadline, running.next()).await
        {
            awaited.remove(&look.host.key);
            looks.push(look);
        }
        looks.extend(std::iter::from_fn(|| running.next_ended()));
        // A look at an earlier BMC or login of the host says nothing.
        looks.retain(|look| wanted.get(&look.host.key).is_some_and(|host| **host == look.host));
        let seen: HashMap<_, _> = looks.into_iter().map(|look| (look.host.key.clone(), look.view)).collect();
        let unseen = hosts.iter().filter(|host| !seen.contains_key(&host.key));
        let outages = unseen.map(|host| (host.key.clone(), 0)).collect();
        BackendListing { asked_at, hosts: seen, outages }
    }

    /// Begins to look at a host, unless a look at it is under way. Returns whether its end is worth a wait.
    fn begin(&self, running: &mut RunningLooks, driver: &RedfishHostDriver, host: &Arc<HostTarget>) -> bool {
        if !running.hosts.insert(host.key.clone()) {
            return false;
        }
        let was_silent = running.silent.contains(&host.key);
        let permits = Arc::clone(if was_silent { &self.silent } else { &self.usual });
        let (driver, host) = (driver.clone(), Arc::clone(host));
        running.tasks.spawn(async move {
            let _permit = permits.acquire().await.expect("nobody closes the permits");
            let (asked_at, document) = driver.document(&host).await;
            SystemLook { view: view(document.as_ref(), asked_at), is_silent: document.is_none(), host }
        });
        !was_silent
    }

    /// Ends all looks.
    pub(super) async fn end(&self) {
        *self.running.lock().await = RunningLooks::default();
    }
}

impl RunningLooks {
    /// Waits for the end of a look; `None`: there is none.
    async fn next(&mut self) -> Option<SystemLook> {
        let ended = self.tasks.join_next().await?;
        Some(self.ended(ended))
    }

    /// Returns a look that has ended; `None`: there is none.
    fn next_ended(&mut self) -> Option<SystemLook> {
        let ended = self.tasks.try_join_next()?;
        Some(self.ended(ended))
    }

    fn ended(&mut self, ended: Result<SystemLook, JoinError>) -> SystemLook {
        let look = match ended.map_err(JoinError::try_into_panic) {
            Ok(look) => look,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(error)) => unreachable!("looks are aborted only with all others: {error}"),
        };
        self.hosts.remove(&look.host.key);
        if look.is_silent {
            self.silent.insert(look.host.key.clone());
        } else {
            self.silent.remove(&look.host.key);
        }
        look
    }
}
