//! Filter of events, and the events of a row that pass it.

use std::collections::BTreeSet;

use domain::core::{invalid::Invalid, time::Timestamp};
use proto::event::{Event, EventBody, EventFilter};

use crate::{
    Fault,
    mesh::time,
    process::clock,
    store::ledger::events::{ANY_TIME, KEPT_FOR, StoredChange, StoredRow, author_kind},
};

/// Most keys of a filter: the story of each is read by itself.
pub(super) const MOST_KEYS: usize = 100;

/// Filter of a request.
pub(super) struct WantedEvents {
    pub(super) keys: BTreeSet<String>,
    /// Beginning of the keys.
    pub(super) key_prefix: String,
    kinds: BTreeSet<String>,
    reasons: BTreeSet<String>,
    actors: BTreeSet<String>,
    /// Name and tenant of the session; `None`: any event.
    session: Option<(String, String)>,
    pub(super) since: Timestamp,
    /// Time before which events are wanted.
    pub(super) until: Timestamp,
}

impl WantedEvents {
    /// Reads a filter.
    ///
    /// # Errors
    /// The filter has too many keys.
    pub(super) fn read(filter: EventFilter) -> Result<Self, Fault> {
        if filter.keys.len() > MOST_KEYS {
            return Err(Invalid::new("filter.keys", format!("has more than {MOST_KEYS} keys")).into());
        }
        let age = i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let earliest = Timestamp(clock::now().0.saturating_sub(age));
        Ok(Self {
            keys: filter.keys.into_iter().collect(),
            key_prefix: filter.key_prefix,
            kinds: filter.kinds.into_iter().collect(),
            reasons: filter.reasons.into_iter().collect(),
            actors: filter.actors.into_iter().collect(),
            session: Some((filter.session, filter.session_tenant)).filter(|(name, _)| !name.is_empty()),
            until: filter.until.map_or(ANY_TIME.end, time::from_wire),
            since: filter.since.map_or(earliest, |since| time::from_wire(since).max(earliest)),
        })
    }

    /// Whether a resource is wanted.
    pub(super) fn is_about(&self, key: &str) -> bool {
        (self.keys.is_empty() || self.keys.contains(key)) && key.starts_with(&self.key_prefix)
    }

    /// Returns the wanted events of a row that are about resources outside `told`.
    pub(super) fn of_row(&self, row: &StoredRow, kind: &str, told: &BTreeSet<String>) -> Vec<Event> {
        if row.time < self.since {
            return Vec::new();
        }
        let changes = row.changes(|change| self.is_about(&change.key) && !told.contains(&change.key));
        self.of_changes(&changes, row, kind)
    }

    /// Returns the wanted events of changes of a row, which are in the order of their revisions.
    pub(super) fn of_changes(&self, changes: &[StoredChange<'_>], row: &StoredRow, kind: &str) -> Vec<Event> {
        let mut events = Vec::new();
        if row.time >= self.until {
            return events;
        }
        let mut revision = 0;
        let mut index = 0;
        for one in changes {
            // Several commands of one transaction may change a resource.
            if one.change.revision != revision {
                revision = one.change.revision;
                index = 0;
            }
            for body in &one.events.events {
                if self.takes(body, &one.events.actor) {
                    events.push(event(one, body, index, row.time, kind));
                }
                index += 1;
            }
        }
        events
    }

    /// Returns whether an author is wanted, by name or by its kind.
    fn wants_author(&self, author: &str) -> bool {
        self.actors.contains(author) || self.actors.contains(author_kind(author))
    }

    fn takes(&self, body: &EventBody, actor: &str) -> bool {
        let session = self.session.as_ref();
        (self.kinds.is_empty() || self.kinds.contains(&body.kind))
            && (self.reasons.is_empty() || self.reasons.contains(&body.reason))
            && (self.actors.is_empty() || self.wants_author(actor))
            && session.is_none_or(|(name, tenant)| body.session == *name && body.session_tenant == *tenant)
    }
}

fn event(one: &StoredChange<'_>, body: &EventBody, index: u32, time: Timestamp, kind: &str) -> Event {
    Event {
        key: one.change.key.clone(),
        resource: kind.to_owned(),
        revision: one.change.revision,
        time: Some(time::to_wire(time)),
        actor: one.events.actor.clone(),
        request_id: one.events.request_id.clone(),
        body: Some(body.clone()),
        index,
    }
}
