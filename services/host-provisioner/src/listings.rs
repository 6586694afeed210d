//! Listings of the backend: one for all of its hosts, at rest and soon after each call.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::host::{HostRecord, SightRecord},
    store::{ledger::Draft, resource::Resource as _},
};
use domain::host::{
    dispatch::{counts_as_not_ready, is_news, listing_pause, looks_count_from},
    evidence::DriverSight,
    record::HostKey,
};
use futures_util::future::join_all;
use host_calls::{CallJournal as _, HostIdentity, HostTarget, progress};
use redfish::LoginName;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    convert,
    driver::{BackendListing, BackendOutage},
    engine::HostEngine,
};

/// Logins that are read from the registry at the same time. Each is read once.
const LOGINS_AT_ONCE: usize = 64;

/// Sights in one transaction.
const BATCH: usize = 1000;

/// Host that a listing is about.
struct ListedHost {
    identity: HostIdentity,
    target: Arc<HostTarget>,
    is_registered: bool,
}

/// Look at one host.
struct HostLook {
    host: HostIdentity,
    sight: DriverSight,
    is_registered: bool,
}

impl HostEngine {
    /// Lists the backend without end.
    pub(crate) async fn keep_listing(&self) {
        let period = self.sources.listing_period;
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let hosts = self.hosts_to_list().await;
            let targets: Vec<_> = hosts.iter().map(|host| Arc::clone(&host.target)).collect();
            let listed = self.sources.driver.list(&targets).await;
            failures = note_outage(failures, &listed);
            let looks = looks(hosts, &listed, failures);
            if let Err(fault) = self.record_news(looks).await {
                tracing::debug!(%fault, "listing not recorded, the next one will be");
            }
            let took = began.elapsed();
            let soonest = Instant::now() + listing_pause(period, took, true, failures);
            tokio::select! {
                () = sleep(listing_pause(period, took, false, failures)) => {}
                () = self.sources.listing_wanted.notified() => sleep_until(soonest).await,
            }
        }
    }

    /// Returns the hosts that the driver is to care for, with their logins where the driver lists by BMC.
    async fn hosts_to_list(&self) -> Vec<ListedHost> {
        let records = self.sources.hosts.all();
        let mut hosts = Vec::with_capacity(records.len());
        for some in records.chunks(LOGINS_AT_ONCE) {
            hosts.extend(join_all(some.iter().map(|record| self.host_to_list(record))).await);
        }
        hosts
    }

    async fn host_to_list(&self, record: &HostRecord) -> ListedHost {
        let host = record.message();
        let identity = HostIdentity::of(record.shared_key(), &host);
        let is_read = self.sources.driver.lists_by_login();
        let login = match LoginName::of(&host).filter(|_| is_read) {
            // A host whose login cannot be read is not looked at; its calls say why.
            Some(name) => self.sources.logins.read(&identity.key, name).await.ok().flatten(),
            None => None,
        };
        let target = Arc::new(HostTarget::of(&identity, &host, login));
        ListedHost { target, is_registered: convert::is_registered(&host), identity }
    }

    /// Records the looks that are news.
    async fn record_news(&self, looks: Vec<HostLook>) -> Result<(), Fault> {
        let mut news: Vec<_> = looks.into_iter().filter(|look| self.is_new(look)).collect();
        while !news.is_empty() {
            let batch = news.split_off(news.len().saturating_sub(BATCH));
            let write = move |draft: &mut Draft<'_, SightRecord>| {
                batch.into_iter().for_each(|look| put(draft, look));
                Ok(())
            };
            self.sources.sights.write_fenced(self.term.fence(), write).await?;
        }
        Ok(())
    }

    fn is_new(&self, HostLook { host, sight, is_registered }: &HostLook) -> bool {
        let known = self.sources.sights.view().get(&host.key);
        let recorded = convert::sight(known.as_deref(), &host.uid);
        let report = known.and_then(|known| known.calls(&host.uid).report);
        let record = self.sources.hosts.get(&host.key);
        let progress = record.and_then(|record| progress(&record.message()).ok().flatten());
        let from = looks_count_from(progress.as_ref(), report.as_ref());
        is_news(sight, &recorded, from, *is_registered)
    }
}

fn put(draft: &mut Draft<'_, SightRecord>, look: HostLook) {
    let record = convert::with_sight(draft.get(&look.host.key).as_deref(), &look.host, look.sight);
    draft.put(record);
}

/// Returns the number of failed listings in a row, and logs where an outage begins or ends.
fn note_outage(failures: u32, listed: &Result<BackendListing, BackendOutage>) -> u32 {
    match listed {
        Ok(_) if counts_as_not_ready(failures) => {
            tracing::info!("the backend of hosts answers again");
            0
        }
        Ok(_) => 0,
        Err(outage) => {
            let failures = failures.saturating_add(1);
            if counts_as_not_ready(failures) && !counts_as_not_ready(failures - 1) {
                tracing::warn!(%outage, "the backend of hosts is not ready");
            }
            failures
        }
    }
}

/// Returns the looks of a listing. A backend that failed once has no news yet.
fn looks(
    hosts: Vec<ListedHost>,
    listed: &Result<BackendListing, BackendOutage>,
    failures: u32,
) -> Vec<HostLook> {
    let silent = |failures: u32| counts_as_not_ready(failures).then_some(DriverSight::NotReady);
    let sight = |key: &HostKey| {
        let Ok(listing) = listed else { return silent(failures) };
        match (listing.hosts.get(key), listing.outages.get(key)) {
            (Some(view), _) => Some(DriverSight::Known(*view)),
            (None, Some(failures)) => silent(*failures),
            (None, None) => Some(DriverSight::Absent { asked_at: listing.asked_at }),
        }
    };
    let look = |ListedHost { identity, target, is_registered }: ListedHost| {
        Some(HostLook { sight: sight(&target.key)?, host: identity, is_registered })
    };
    hosts.into_iter().filter_map(look).collect()
}
