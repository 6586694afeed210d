//! The hardware state manager as an inventory (BOS reference 6.2).
//!
//! The hardware of sessions is asked for as a whole. Only the presence of nodes that are to be acted on is asked for by
//! their ids.

mod answers;

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::settings;
use parking_lot::Mutex;
use serde_json::json;
use upstream::{Failure, Peer, Request};

use super::{Locked, Picture};
use answers::{Components, Group, Locks, Partition, Unusable};

/// What it is called in texts and metrics.
const NAME: &str = "HSM";

/// Ids that stand for everything in a query by ids (BOS reference 6.2).
const EVERYTHING: [&str; 2] = ["all", "s0"];

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

    /// Which of `ids` are listed. The ids that stand for everything in a query are left out of it.
    pub(super) async fn listed(
        &self,
        ids: &[Arc<str>],
        answer_within: Duration,
    ) -> Result<HashSet<String>, Failure> {
        let ids: Vec<&str> = ids.iter().map(|id| &**id).filter(|id| !EVERYTHING.contains(id)).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let query = Request::post("presence", "/State/Components/Query")
            .json(&json!({"ComponentIDs": ids}))
            .items(ids.len())
            .answer_within(answer_within);
        let answer = self.peer.json::<Components>(query).await?;
        Ok(answer.usable(&mut Unusable::default()).into_iter().map(|item| item.id).collect())
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
