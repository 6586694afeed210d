//! Hosts, their companions and secrets.

use std::{borrow::Cow, sync::Arc};

use chassis::{
    kinds::host::{DocumentRecord, HostRecord, SecretRecord},
    store::{
        ledger::{Column, EventRule, StoredRow, Table},
        resource::{Facet, Resource, WireForm},
    },
};
use domain::core::{
    event::{Actor, EventContent},
    invalid::Invalid,
};
use proto::host::{Host, HostSecret, ObjectMeta};

/// Author of writes that name none.
const OWNER: Actor = Actor::Service("component-registry");

/// Column of the sealed values of a secret.
const SEALED: &str = "sealed";

/// The table of hosts.
pub struct HostTable;

impl Table for HostTable {
    type Kind = HostRecord;
    type Pool = ();
    const NAME: &'static str = "hosts";
    const COLUMNS: &'static [Column<HostRecord>] = &[Column::record()];
    const EVENTS: Option<EventRule<HostRecord>> = Some(|before, after, _, reason| {
        let message = |record: Option<&HostRecord>| record.map(HostRecord::message);
        host_events(message(before).as_ref(), message(after).as_ref(), reason)
    });
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<HostRecord> {
        row.record(pool)
    }
}

/// The table of companions and namespaces.
pub struct DocumentTable;

impl Table for DocumentTable {
    type Kind = DocumentRecord;
    type Pool = ();
    const NAME: &'static str = "host_documents";
    const COLUMNS: &'static [Column<DocumentRecord>] = &[Column::record()];
    const EVENTS: Option<EventRule<DocumentRecord>> = Some(|before, after, _, reason| {
        let meta = |record: &DocumentRecord| record.message().meta.unwrap_or_default();
        object_events(before.map(meta).as_ref(), after.map(meta).as_ref(), reason)
    });
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<DocumentRecord> {
        row.record(pool)
    }
}

/// The table of secrets. Their values are sealed in a column of their own.
pub struct SecretTable;

/// A secret with its values, which are sealed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSecret {
    /// The secret without its values.
    pub record: SecretRecord,
    /// The sealed values.
    pub sealed: Vec<u8>,
}

impl Table for SecretTable {
    type Kind = StoredSecret;
    type Pool = ();
    const NAME: &'static str = "host_secrets";
    const COLUMNS: &'static [Column<StoredSecret>] =
        &[Column::record(), Column::bytes(SEALED, |secret, ()| secret.sealed.clone())];
    const EVENTS: Option<EventRule<StoredSecret>> = Some(|before, after, _, reason| {
        let meta = |secret: &StoredSecret| secret.record.message.meta.clone().unwrap_or_default();
        object_events(before.map(meta).as_ref(), after.map(meta).as_ref(), reason)
    });
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<StoredSecret> {
        let secret: StoredSecret = row.record(pool)?;
        Ok(StoredSecret { sealed: row.get(SEALED)?, ..secret })
    }
}

impl Resource for StoredSecret {
    const KIND: &'static str = SecretRecord::KIND;

    fn key(&self) -> &str {
        self.record.key()
    }

    fn shared_key(&self) -> Arc<str> {
        self.record.shared_key()
    }

    fn revision(&self) -> u64 {
        self.record.revision()
    }

    fn set_revision(&mut self, revision: u64) {
        self.record.set_revision(revision);
    }

    fn last_event(&self) -> u64 {
        self.record.last_event()
    }

    fn set_last_event(&mut self, revision: u64) {
        self.record.set_last_event(revision);
    }

    fn weight(&self) -> usize {
        self.record.weight() + self.sealed.len()
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        self.record.facets()
    }
}

impl WireForm for StoredSecret {
    type Message = HostSecret;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, HostSecret> {
        Cow::Borrowed(&self.record.message)
    }

    fn from_wire(message: HostSecret, (): &mut ()) -> Result<Self, Invalid> {
        Ok(Self { record: SecretRecord::of(message), sealed: Vec::new() })
    }
}

/// Returns the events of a change of any record.
fn object_events(before: Option<&ObjectMeta>, after: Option<&ObjectMeta>, reason: &str) -> Vec<EventContent> {
    let event = |kind| vec![EventContent::of(kind).because(reason.to_owned())];
    match (before, after) {
        (None, Some(_)) => event("created"),
        (Some(_), None) => event("deleted"),
        (Some(before), Some(after)) if before.deleted_at.is_none() && after.deleted_at.is_some() => {
            event("deletion_requested")
        }
        (Some(before), Some(after)) if before.generation != after.generation => event("spec_changed"),
        (Some(_), Some(_)) if !reason.is_empty() => event("requested"),
        (Some(_), Some(_)) | (None, None) => Vec::new(),
    }
}

/// Returns the events of a change of a host.
fn host_events(before: Option<&Host>, after: Option<&Host>, reason: &str) -> Vec<EventContent> {
    let meta = |host: Option<&Host>| host.and_then(|host| host.meta.clone());
    let mut events = object_events(meta(before).as_ref(), meta(after).as_ref(), reason);
    let (Some(from), Some(to)) = (before.map(state), after.map(state)) else { return events };
    if from != to {
        events.push(EventContent::of("state_changed").because(to).with("from", from));
    }
    events
}

fn state(host: &Host) -> String {
    let status = host.status.as_ref().and_then(|status| status.provisioning.as_ref());
    status.map_or_else(String::new, |provisioning| provisioning.state.clone())
}

#[cfg(test)]
mod tests {
    use chassis::kinds::history::{HOST_WORDS, OBJECT_WORDS};

    use super::*;

    /// Every word that a rule gives can be asked for.
    #[test]
    fn kinds_of_events_are_known() {
        let meta = |generation| ObjectMeta { generation, ..ObjectMeta::default() };
        let ended = ObjectMeta { deleted_at: Some(Default::default()), ..meta(1) };
        let changes = [
            (None, Some(meta(1)), ""),
            (Some(meta(1)), None, ""),
            (Some(meta(1)), Some(ended), ""),
            (Some(meta(1)), Some(meta(2)), ""),
            (Some(meta(1)), Some(meta(1)), "wish"),
        ];
        let mut seen = Vec::new();
        for (before, after, reason) in changes {
            seen.extend(
                object_events(before.as_ref(), after.as_ref(), reason).iter().map(|event| event.kind),
            );
        }
        seen.sort_unstable();
        assert_eq!(seen, OBJECT_WORDS);
        assert!(OBJECT_WORDS.iter().all(|word| HOST_WORDS.contains(word)));
    }
}
