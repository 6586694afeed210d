//! All Ironics: the one that a host belongs to, and the last listing of each.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    process::clock,
    settings::{HostOperationSettings, seconds},
};
use domain::{core::time::Timestamp, host::record::HostKey};
use futures_util::future::join_all;
use parking_lot::Mutex;

use ironic::{IronicBackend, PowerRequests, node::IronicNode, node_name};

use super::{enrolment::SiteSettings, view::view};
use crate::driver::{BackendListing, BackendOutage, HostTarget};

/// All Ironics.
pub(super) struct IronicFleet {
    backends: Vec<IronicBackend>,
    pub(super) site: SiteSettings,
    /// Time for the effect of a soft power-off.
    pub(super) soft_off: Duration,
    pub(super) power_requests: PowerRequests,
    memory: Mutex<FleetMemory>,
}

/// Knowledge that the next listings bring again.
#[derive(Default)]
struct FleetMemory {
    /// Place of the Ironic that knows a host.
    homes: HashMap<HostKey, usize>,
    /// Nodes as they were listed last, with the time at which the listing was asked for.
    listed: HashMap<HostKey, (Timestamp, Arc<IronicNode>)>,
    /// Time of the last operation at a host that may have changed its node.
    touched: HashMap<HostKey, Timestamp>,
    /// Listings of each Ironic.
    history: Vec<ListingHistory>,
}

/// Listings of one Ironic.
#[derive(Debug, Clone, Copy, Default)]
struct ListingHistory {
    /// Whether one has succeeded since the start, so that the nodes are known.
    has_succeeded: bool,
    /// Failures in a row.
    failures: u32,
}

/// Nodes of one Ironic, by id and by name.
#[derive(Default)]
struct ListedNodes {
    by_uuid: HashMap<String, Arc<IronicNode>>,
    by_name: HashMap<String, Arc<IronicNode>>,
}

impl IronicFleet {
    pub(super) fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        let backends = ironic::backends(settings)?;
        let ironic = &settings.ironic;
        let agent = [
            ("deploy_kernel", &ironic.deploy_kernel),
            ("deploy_ramdisk", &ironic.deploy_ramdisk),
            ("deploy_iso", &ironic.deploy_iso),
        ];
        let agent = agent.into_iter().filter(|(_, url)| !url.is_empty());
        let site = SiteSettings {
            hardware: Some(ironic.hardware.clone()).filter(|hardware| !hardware.is_empty()),
            agent: agent.map(|(name, url)| (name, url.clone())).collect(),
        };
        let soft_off = seconds("host_operations.soft_off_seconds", settings.soft_off_seconds)?;
        let history = vec![ListingHistory::default(); backends.len()];
        let memory = FleetMemory { history, ..FleetMemory::default() };
        Ok(Self {
            backends,
            site,
            soft_off,
            power_requests: PowerRequests::default(),
            memory: Mutex::new(memory),
        })
    }

    /// Lists every Ironic at the same time. One in trouble stops none of the others.
    pub(super) async fn list(&self, hosts: &[Arc<HostTarget>]) -> Result<BackendListing, BackendOutage> {
        let asked_at = clock::now();
        let listed = join_all(self.backends.iter().map(IronicBackend::list)).await;
        let outages: Vec<_> = listed.iter().filter_map(|listed| Some(&listed.as_ref().err()?.text)).collect();
        let is_out = outages.len() == self.backends.len();
        let outage = BackendOutage(outages.into_iter().cloned().collect::<Vec<_>>().join("; "));
        let listed: Vec<_> = listed.into_iter().map(|nodes| nodes.ok().map(ListedNodes::of)).collect();
        let mut memory = self.memory.lock();
        memory.count_failures(&listed);
        if is_out {
            return Err(outage);
        }
        if !outage.0.is_empty() {
            tracing::debug!(%outage, "an Ironic does not answer");
        }
        let mut listing = BackendListing { asked_at, ..BackendListing::default() };
        for host in hosts {
            self.look(&mut memory, &mut listing, host, &listed);
        }
        let present: HashSet<_> = hosts.iter().map(|host| &host.key).collect();
        memory.keep_only(&present);
        self.power_requests.keep_only(&present);
        Ok(listing)
    }

    /// Adds the look at a host to the listing.
    fn look(
        &self,
        memory: &mut FleetMemory,
        listing: &mut BackendListing,
        host: &HostTarget,
        listed: &[Option<ListedNodes>],
    ) {
        let found =
            listed.iter().enumerate().find_map(|(place, nodes)| Some((place, nodes.as_ref()?.find(host)?)));
        if let Some((place, node)) = found {
            listing.hosts.insert(host.key.clone(), view(&node, listing.asked_at));
            memory.homes.insert(host.key.clone(), place);
            memory.listed.insert(host.key.clone(), (listing.asked_at, node));
            return;
        }
        memory.listed.remove(&host.key);
        match self.place(memory, host) {
            Some(place) if listed[place].is_some() => {
                memory.homes.remove(&host.key);
            }
            Some(place) => {
                listing.outages.insert(host.key.clone(), memory.history[place].failures);
            }
            None => {
                let failures = memory.history.iter().map(|one| one.failures).max();
                listing.outages.insert(host.key.clone(), failures.unwrap_or(0));
            }
        }
    }

    /// Returns the Ironic of a host; `None`: not known before every Ironic was listed, because one that was not may know
    /// the host.
    pub(super) fn home(&self, host: &HostTarget) -> Option<(usize, &IronicBackend)> {
        let place = self.place(&self.memory.lock(), host)?;
        Some((place, self.backends.get(place)?))
    }

    fn place(&self, memory: &FleetMemory, host: &HostTarget) -> Option<usize> {
        if let Some(place) = memory.homes.get(&host.key) {
            return Some(*place);
        }
        let is_registered = !host.driver_id.is_empty();
        let is_everything_listed = memory.history.iter().all(|one| one.has_succeeded);
        if is_registered && self.backends.len() > 1 && !is_everything_listed {
            return None;
        }
        let key = format!("{}/{}", host.key.namespace, host.key.name);
        ironic::choose(self.backends.iter().map(|backend| backend.name.as_str()), &key)
    }

    /// Notes that a host has a node at an Ironic, before a listing shows it.
    pub(super) fn note_home(&self, host: &HostKey, place: usize) {
        self.memory.lock().homes.insert(host.clone(), place);
    }

    /// Notes that an operation may change the node of a host from now on, so that earlier listings count no more.
    pub(super) fn touch(&self, host: &HostKey) {
        self.memory.lock().touched.insert(host.clone(), clock::now());
    }

    /// Returns the node of a host from the last listing, if no operation may have changed it since.
    pub(super) fn listed(&self, host: &HostKey) -> Option<Arc<IronicNode>> {
        let memory = self.memory.lock();
        let (asked_at, node) = memory.listed.get(host)?;
        let touched = memory.touched.get(host);
        touched.is_none_or(|touched| asked_at > touched).then(|| Arc::clone(node))
    }
}

impl FleetMemory {
    fn count_failures(&mut self, listed: &[Option<ListedNodes>]) {
        for (history, nodes) in self.history.iter_mut().zip(listed) {
            history.has_succeeded |= nodes.is_some();
            history.failures = if nodes.is_some() { 0 } else { history.failures.saturating_add(1) };
        }
    }

    /// Forgets hosts that are gone.
    fn keep_only(&mut self, present: &HashSet<&HostKey>) {
        self.homes.retain(|host, _| present.contains(host));
        self.listed.retain(|host, _| present.contains(host));
        self.touched.retain(|host, _| present.contains(host));
    }
}

impl ListedNodes {
    fn of(nodes: Vec<IronicNode>) -> Self {
        let mut index = Self::default();
        for node in nodes.into_iter().map(Arc::new) {
            index.by_uuid.insert(node.uuid.clone(), Arc::clone(&node));
            if !node.name.is_empty() {
                index.by_name.insert(node.name.clone(), node);
            }
        }
        index
    }

    /// Returns the node of a host. A registered host is known by its id alone: a node that was made anew after a loss counts
    /// only once its registration is over.
    fn find(&self, host: &HostTarget) -> Option<Arc<IronicNode>> {
        let found = match &*host.driver_id {
            "" => self.by_name.get(&node_name(host)),
            id => self.by_uuid.get(id),
        };
        found.map(Arc::clone)
    }
}
