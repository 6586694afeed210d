//! The hardware state manager as an inventory (BOS reference 6.2).
//!
//! Everything is asked for as a whole: no list of ids is ever sent, because in one the ids `all` and `s0` stand
//! for everything.

mod answers;

use std::time::Duration;

use chassis::settings;
use parking_lot::Mutex;
use upstream::{Failure, Peer, Request};

use super::{Locked, Picture};
use answers::{Components, Group, Locks, Partition, Unusable};

/// What it is called in texts and metrics.
const NAME: &str = "HSM";

/// The hardware state manager.
pub(crate) struct Hsm {
    peer: Peer,
    /// What could not be used of the last picture, so that it is told once.
    unusable: Mutex<Unusable>,
}

impl Hsm {
    /// The one that the settings name.
    ///
    /// # Errors
    /// Names the key of a setting that cannot be used.
    pub(super) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = Peer::new(NAME, settings).map_err(|error| anyhow::anyhow!("inventory.hsm.{error}"))?;
        peer.check_credentials("inventory.hsm");
        Ok(Self { peer, unusable: Mutex::default() })
    }

    /// How it is called.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(super) async fn picture(&self, answer_within: Duration) -> Result<Picture, Failure> {
        let get = |operation, path: &str| Request::get(operation, path).answer_within(answer_within);
        let (components, groups, partitions, locked) = tokio::try_join!(
            self.peer.json::<Components>(get("components", "/State/Components")),
            self.peer.json::<Vec<Group>>(get("groups", "/groups")),
            self.peer.json::<Vec<Partition>>(get("partitions", "/partitions")),
            self.locked(answer_within),
        )?;
        let mut unusable = Unusable::default();
        let hardware = components.usable(&mut unusable);
        let groups = groups.into_iter().map(|group| group.usable(&mut unusable)).collect();
        let partitions = partitions.into_iter().map(|partition| partition.usable(&mut unusable)).collect();
        self.tell(unusable);
        Ok(Picture::with_locks(hardware, groups, partitions, locked))
    }

    pub(super) async fn locked(&self, answer_within: Duration) -> Result<Locked, Failure> {
        let locks = Request::get("locks", "/locks/status").query("type", "Node").query("locked", "True");
        Ok(self.peer.json::<Locks>(locks.answer_within(answer_within)).await?.ids())
    }

    fn tell(&self, unusable: Unusable) {
        let before = std::mem::replace(&mut *self.unusable.lock(), unusable.clone());
        if !unusable.is_nothing() && unusable != before {
            let Unusable { unreadable, impossible_ids, repeated } = unusable;
            tracing::warn!(
                peer = NAME,
                unreadable,
                impossible_ids,
                repeated,
                "parts of the inventory cannot be used and are left out"
            );
        }
    }
}

#[cfg(test)]
mod tests;
