//! What the machine is made of, as the site's inventory tells it.
//!
//! - `hsm`, `file`, `simulated`: where it is told
//! - `reader`: the one task that asks, so that those who ask at the same time share one answer
//! - `subscription`: being told when to ask

mod file;
pub(crate) mod hsm;
mod reader;
mod simulated;
pub(crate) mod subscription;

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use chassis::{
    Fault, Settings,
    settings::{Inventory as InventorySettings, InventoryDriver},
};
use proto::inventory::{Group, Hardware, ListInventoryResponse};
use upstream::{FailureKind, machine::MachineFile};

pub(crate) use reader::{Inventory, run};

use crate::presence::BATCH;

/// What an inventory that cannot be asked is called.
const INVENTORY: &str = "inventory";

/// Hardware in one message of a list: some hundred kilobytes.
const HARDWARE: usize = 2_000;

/// Members of a group in one message of a list. A larger group is told in several parts of the same label.
const MEMBERS: usize = 5_000;

/// Ids of the nodes that are locked against power operations. All others are not.
pub(crate) type Locked = HashSet<String>;

/// Everything that the inventory lists at one time.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Picture {
    /// The whole, cut into messages.
    pub(crate) parts: Vec<ListInventoryResponse>,
    /// Which nodes are locked.
    pub(crate) locked: Arc<Locked>,
}

/// Where the inventory is told.
pub(crate) enum Driver {
    /// By the simulated fleet.
    Simulated(simulated::Fleet),
    /// By the hardware state manager.
    Hsm(hsm::Hsm),
    /// In the machine file.
    File(MachineFile),
}

impl Driver {
    /// The driver that the settings choose.
    ///
    /// # Errors
    /// Names the key of a setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        check(&settings.inventory)?;
        Ok(match settings.inventory.driver {
            InventoryDriver::Simulated => Self::Simulated(simulated::Fleet::new(&settings.simulator.url)?),
            InventoryDriver::Hsm => Self::Hsm(hsm::Hsm::new(&settings.inventory.hsm)?),
            InventoryDriver::File => {
                let path = &settings.machine_file;
                let needed = "machine_file: is needed by the inventory driver 'file'";
                ensure!(!path.as_os_str().is_empty(), needed);
                Self::File(MachineFile::open(path).context("machine_file")?)
            }
        })
    }

    /// Reads everything, or nothing: half an inventory would look like a smaller machine. An answer may take
    /// `answer_within` to begin.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] with who does not answer as it should, and how.
    async fn picture(&self, answer_within: Duration) -> Result<Picture, Fault> {
        match self {
            Self::Simulated(fleet) => fleet.picture().await,
            Self::Hsm(hsm) => hsm.picture(answer_within).await.map_err(unavailable),
            // What it said before it was broken is not believed any more.
            Self::File(file) => file.newest().map(|machine| file::picture(&machine)).map_err(unavailable),
        }
    }

    /// Reads which nodes are locked, without the rest where the inventory can tell it so.
    ///
    /// # Errors
    /// As [`Self::picture`].
    async fn locked(&self, answer_within: Duration) -> Result<Arc<Locked>, Fault> {
        match self {
            Self::Simulated(fleet) => Ok(fleet.picture().await?.locked),
            Self::Hsm(hsm) => hsm.locked(answer_within).await.map(Arc::new).map_err(unavailable),
            Self::File(_) => Ok(self.picture(answer_within).await?.locked),
        }
    }

    /// Reads which of `ids` are listed; `None`: the inventory tells that only with everything else.
    ///
    /// # Errors
    /// As [`Self::picture`].
    async fn listed(
        &self,
        ids: &[Arc<str>],
        answer_within: Duration,
    ) -> Result<Option<HashSet<String>>, Fault> {
        match self {
            Self::Hsm(hsm) if ids.len() < BATCH => match hsm.listed(ids, answer_within).await {
                Ok(listed) => Ok(Some(listed)),
                // It minds one of the ids, and the others must not wait for that one. A whole listing asks for none by id.
                Err(failure) if failure.kind == FailureKind::Refused => Ok(None),
                Err(failure) => Err(unavailable(failure)),
            },
            Self::Hsm(_) | Self::Simulated(_) | Self::File(_) => Ok(None),
        }
    }
}

impl Picture {
    /// The picture of an inventory that tells with each piece of hardware whether it is locked.
    fn new(hardware: Vec<Hardware>, groups: Vec<Group>, partitions: Vec<Group>) -> Self {
        let locked = hardware.iter().filter(|item| item.locked).map(|item| item.id.clone()).collect();
        Self { parts: parts(hardware, groups, partitions), locked: Arc::new(locked) }
    }

    /// The picture of an inventory that tells the locks apart from the hardware.
    fn with_locks(
        mut hardware: Vec<Hardware>,
        groups: Vec<Group>,
        partitions: Vec<Group>,
        locked: Locked,
    ) -> Self {
        hardware.iter_mut().for_each(|item| item.locked = locked.contains(&item.id));
        Self { parts: parts(hardware, groups, partitions), locked: Arc::new(locked) }
    }

    /// All hardware of every kind.
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

/// A group in parts that fit a message: at least one, because a group without members is a group too.
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

fn unavailable(reason: impl std::fmt::Display) -> Fault {
    Fault::unavailable(INVENTORY, reason)
}

/// Checks what no driver checks by itself.
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

/// More often than this every answer would be old when it is read.
const SHORTEST_POLL: f64 = 0.1;

/// Less often than this, a day, nobody could mean.
const LONGEST_POLL: f64 = 86_400.0;

#[cfg(test)]
mod tests;
