//! Hardware inventory of the site.
//!
//! - `hsm`, `file`, `hosts`, `simulated`: sources of the inventory
//! - `reader`: the task that reads the inventory; concurrent callers share one read
//! - `subscription`: notifications of changes

mod file;
pub(crate) mod hosts;
pub(crate) mod hsm;
mod reader;
mod simulated;
pub(crate) mod subscription;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use chassis::{
    Fault, Settings,
    settings::{InventoryDriver, InventorySettings},
};
use proto::inventory::{Group, Hardware, ListInventoryResponse};
use upstream::{FailureKind, machine::MachineFile};

pub(crate) use reader::{InventoryHandle, run};

use crate::{RegistryState, presence::LARGEST_QUERY};

/// Name of the inventory in texts.
const INVENTORY: &str = "inventory";

/// Hardware in one message of a list: some hundred kilobytes.
const HARDWARE: usize = 2_000;

/// Members of a group in one message of a list. A larger group is sent in several parts with the same label.
const MEMBERS: usize = 5_000;

/// Ids of the nodes that are locked against power operations; all other nodes are unlocked.
pub(crate) type LockedIds = HashSet<String>;

/// Snapshot of the whole inventory.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct InventorySnapshot {
    /// Content of the snapshot, cut into messages.
    pub(crate) parts: Vec<ListInventoryResponse>,
    /// Ids of locked nodes.
    pub(crate) locked: Arc<LockedIds>,
}

/// Source of the inventory.
pub(crate) enum InventorySource {
    /// The simulated fleet.
    Simulated(simulated::FleetClient),
    /// The hardware state manager.
    Hsm(hsm::HsmClient),
    /// The machine file.
    File(MachineFile),
    /// Bare-metal hosts, which are records of the registry.
    Hosts(hosts::HostNodes),
}

impl InventorySource {
    /// Creates the driver that the settings name.
    ///
    /// # Errors
    /// Names the key of a setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        check(&settings.inventory)?;
        Ok(match settings.inventory.driver {
            InventoryDriver::Simulated => {
                Self::Simulated(simulated::FleetClient::new(&settings.tls, &settings.simulator.url)?)
            }
            InventoryDriver::Hsm => Self::Hsm(hsm::HsmClient::new(&settings.inventory.hsm)?),
            InventoryDriver::File => {
                let path = &settings.machine_file;
                let needed = "machine_file: is needed by the inventory driver 'file'";
                ensure!(!path.as_os_str().is_empty(), needed);
                Self::File(MachineFile::open(path).context("machine_file")?)
            }
            InventoryDriver::Hosts => Self::Hosts(hosts::HostNodes::default()),
        })
    }

    /// Reads the whole inventory or fails: half an inventory would look like a smaller machine.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] with the name of the failing peer and its error.
    async fn snapshot(&self, registry: &RegistryState) -> Result<InventorySnapshot, Fault> {
        match self {
            Self::Simulated(fleet) => fleet.snapshot().await,
            Self::Hsm(hsm) => hsm.snapshot(registry.answer_within()).await.map_err(unavailable),
            // The last valid content of a broken file does not count here.
            Self::File(file) => file.newest().map(|machine| file::snapshot(&machine)).map_err(unavailable),
            Self::Hosts(nodes) => nodes.snapshot(&registry.hosts).await,
        }
    }

    /// Returns whether parts can be read by themselves: the locks, and whether nodes are listed. Otherwise only the
    /// whole inventory can be read.
    fn has_queries(&self) -> bool {
        match self {
            Self::Hsm(_) => true,
            Self::Simulated(_) | Self::File(_) | Self::Hosts(_) => false,
        }
    }

    /// Reads the ids of locked nodes, without the rest if the source [has queries](Self::has_queries).
    ///
    /// # Errors
    /// See [`Self::snapshot`].
    async fn locked(&self, registry: &RegistryState) -> Result<Arc<LockedIds>, Fault> {
        match self {
            Self::Hsm(hsm) => hsm.locked(registry.answer_within()).await.map(Arc::new).map_err(unavailable),
            Self::Simulated(_) | Self::File(_) | Self::Hosts(_) => Ok(self.snapshot(registry).await?.locked),
        }
    }

    /// Reads the subset of `ids` that is listed; `None`: the source can only return the whole inventory.
    ///
    /// # Errors
    /// See [`Self::snapshot`].
    async fn listed(
        &self,
        ids: &[Arc<str>],
        answer_within: Duration,
    ) -> Result<Option<HashSet<String>>, Fault> {
        match self {
            Self::Hsm(hsm) if ids.len() <= LARGEST_QUERY => match hsm.listed(ids, answer_within).await {
                Ok(listed) => Ok(Some(listed)),
                // The peer refuses one of the ids, and the others must not wait for that one. The whole inventory is
                // read without ids.
                Err(failure) if failure.kind == FailureKind::Refused => Ok(None),
                Err(failure) => Err(unavailable(failure)),
            },
            Self::Hsm(_) | Self::Simulated(_) | Self::File(_) | Self::Hosts(_) => Ok(None),
        }
    }
}

impl InventorySnapshot {
    /// Builds a snapshot from hardware whose entries include the locks.
    fn new(hardware: Vec<Hardware>, groups: Vec<Group>, partitions: Vec<Group>) -> Self {
        let locked = hardware.iter().filter(|item| item.locked).map(|item| item.id.clone()).collect();
        Self { parts: parts(hardware, groups, partitions), locked: Arc::new(locked) }
    }

    /// Builds a snapshot from hardware and a separate list of locks.
    fn with_locks(
        mut hardware: Vec<Hardware>,
        groups: Vec<Group>,
        partitions: Vec<Group>,
        locked: LockedIds,
    ) -> Self {
        hardware.iter_mut().for_each(|item| item.locked = locked.contains(&item.id));
        Self { parts: parts(hardware, groups, partitions), locked: Arc::new(locked) }
    }

    /// Returns the hardware of every kind.
    pub(crate) fn hardware(&self) -> impl Iterator<Item = &Hardware> {
        self.parts.iter().flat_map(|part| &part.hardware)
    }
}

/// Cuts an inventory into messages.
fn parts(hardware: Vec<Hardware>, groups: Vec<Group>, partitions: Vec<Group>) -> Vec<ListInventoryResponse> {
    let hardware = chunks(hardware, HARDWARE)
        .map(|hardware| ListInventoryResponse { hardware, ..ListInventoryResponse::default() });
    let groups = groups
        .into_iter()
        .flat_map(slices)
        .map(|group| ListInventoryResponse { groups: vec![group], ..ListInventoryResponse::default() });
    let partitions = partitions.into_iter().flat_map(slices).map(|partition| ListInventoryResponse {
        partitions: vec![partition],
        ..ListInventoryResponse::default()
    });
    hardware.chain(groups).chain(partitions).collect()
}

/// Cuts a group into parts that fit a message: at least one, because a group without members is a group too.
fn slices(Group { label, ids }: Group) -> Vec<Group> {
    if ids.is_empty() {
        return vec![Group { label, ids }];
    }
    chunks(ids, MEMBERS).map(|ids| Group { label: label.clone(), ids }).collect()
}

fn chunks<T>(items: Vec<T>, most: usize) -> impl Iterator<Item = Vec<T>> {
    let mut rest = items.into_iter();
    std::iter::from_fn(move || {
        let chunk: Vec<T> = rest.by_ref().take(most).collect();
        (!chunk.is_empty()).then_some(chunk)
    })
}

fn labelled(sets: BTreeMap<&str, Vec<String>>) -> Vec<Group> {
    sets.into_iter().map(|(label, ids)| Group { label: label.to_owned(), ids }).collect()
}

fn unavailable(reason: impl std::fmt::Display) -> Fault {
    Fault::unavailable(INVENTORY, reason)
}

/// Checks the settings that no driver checks.
fn check(settings: &InventorySettings) -> anyhow::Result<()> {
    let seconds = settings.lock_poll_seconds;
    ensure!(
        (SHORTEST_POLL..=LONGEST_POLL).contains(&seconds),
        "inventory.lock_poll_seconds: {seconds} is not between {SHORTEST_POLL} and {LONGEST_POLL}"
    );
    let notifications = &settings.notifications;
    if !notifications.subscribe {
        return Ok(());
    }
    ensure!(
        settings.driver == InventoryDriver::Hsm,
        "inventory.notifications.subscribe: only the inventory driver 'hsm' can notify"
    );
    ensure!(!notifications.subscriber.is_empty(), "inventory.notifications.subscriber: is empty");
    let url = &notifications.webhook_url;
    ensure!(
        url.starts_with("http://") || url.starts_with("https://"),
        "inventory.notifications.webhook_url: '{url}' is not an http:// or https:// address"
    );
    Ok(())
}

/// Shortest period: with a shorter one every answer would be outdated when it is read.
const SHORTEST_POLL: f64 = 0.1;

/// Longest period, a day: a longer one is a mistake.
const LONGEST_POLL: f64 = 86_400.0;

#[cfg(test)]
mod tests;
