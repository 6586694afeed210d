//! Hardware state manager as an inventory (BOS reference 6.2).
//!
//! The hardware for sessions is read as a whole. Only the presence of enabled nodes is queried by their ids.

mod answers;

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::settings;
use parking_lot::Mutex;
use serde_json::json;
use upstream::{CredentialUse, Failure, Peer, Request};

use super::{InventorySnapshot, LockedIds};
use answers::{HsmComponents, HsmGroup, HsmLocks, HsmPartition, InvalidEntries};

/// Name in texts and metrics.
const NAME: &str = "HSM";

/// Ids that select everything in a query by ids (BOS reference 6.2).
const EVERYTHING: [&str; 2] = ["all", "s0"];

/// The hardware state manager.
pub(crate) struct HsmClient {
    peer: Peer,
    /// Invalid entries in the last snapshot, so that each change of them is logged once.
    invalid: Mutex<InvalidEntries>,
}

impl HsmClient {
    /// Creates the client that the settings name.
    ///
    /// # Errors
    /// Names the key of a setting that cannot be used.
    pub(super) fn new(settings: &settings::Peer) -> anyhow::Result<Self> {
        let peer = Peer::new(NAME, settings).map_err(|error| anyhow::anyhow!("inventory.hsm.{error}"))?;
        peer.check_credentials("inventory.hsm", CredentialUse::Header);
        Ok(Self { peer, invalid: Mutex::default() })
    }

    /// Client of the hardware state manager.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(super) async fn snapshot(&self, answer_within: Duration) -> Result<InventorySnapshot, Failure> {
        let (components, groups, partitions, locked) = tokio::try_join!(
            self.peer.json::<HsmComponents>(read("components", "/State/Components", answer_within)),
            self.peer.json::<Vec<HsmGroup>>(read("groups", "/groups", answer_within)),
            self.peer.json::<Vec<HsmPartition>>(read("partitions", "/partitions", answer_within)),
            self.locked(answer_within),
        )?;
        let mut invalid = InvalidEntries::default();
        let hardware = components.usable(&mut invalid);
        let groups = groups.into_iter().map(|group| group.usable(&mut invalid)).collect();
        let partitions = partitions.into_iter().map(|partition| partition.usable(&mut invalid)).collect();
        self.log_invalid(invalid);
        Ok(InventorySnapshot::with_locks(hardware, groups, partitions, locked))
    }

    pub(super) async fn locked(&self, answer_within: Duration) -> Result<LockedIds, Failure> {
        let locks = Request::get("locks", "/locks/status").query("type", "Node").query("locked", "True");
        Ok(self.peer.json::<HsmLocks>(locks.answer_within(answer_within)).await?.ids())
    }

    /// Returns the subset of `ids` that is listed. Ids that select everything are left out of the query.
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
        let answer = self.peer.json::<HsmComponents>(query).await?;
        Ok(answer.usable(&mut InvalidEntries::default()).into_iter().map(|item| item.id).collect())
    }

    fn log_invalid(&self, invalid: InvalidEntries) {
        let before = std::mem::replace(&mut *self.invalid.lock(), invalid.clone());
        if !invalid.is_empty() && invalid != before {
            let InvalidEntries { unreadable, impossible_ids, repeated } = invalid;
            tracing::warn!(
                peer = NAME,
                unreadable,
                impossible_ids,
                repeated,
                "invalid inventory entries skipped"
            );
        }
    }
}

fn read(operation: &'static str, path: &str, answer_within: Duration) -> Request {
    Request::get(operation, path).answer_within(answer_within)
}

#[cfg(test)]
mod tests;
