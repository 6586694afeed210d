//! Changes before their commit: the caller's command, the state that it is computed on, and the revisions that it gets.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::core::event::EventContent;

use super::{
    events::{ChangeOrigin, EventRecorder, RecordedEvents},
    facets::OneOf,
    view::LedgerView,
};
use crate::{
    Fault,
    store::{
        fence::Fence,
        resource::{Batch, Resource, ResourceDeletion},
    },
};

/// A change that a caller asks for.
pub(super) struct WriteCommand<R> {
    /// The lease under which it was decided.
    pub(super) fence: Option<Fence>,
    /// Author and request, for the events of the change.
    pub(super) origin: ChangeOrigin,
    /// Makes the change, or takes note why it cannot be made.
    pub(super) run: Run<R>,
}

pub(super) type Run<R> = Box<dyn FnOnce(Result<&mut Draft<'_, R>, Fault>) -> DraftOutcome + Send>;

/// Reports the revision of the commit to a caller, or the fault.
pub(super) type Reply = Box<dyn FnOnce(Result<u64, Fault>) + Send>;

/// Outcome of a command's draft. Either way the caller is answered after the commit: a refusal may rest on changes of
/// an earlier command in the same transaction, which is true only once they are durable.
pub(super) enum DraftOutcome {
    /// Make it durable.
    Keep(Reply),
    /// Forget it.
    Discard(Reply),
}

/// Changes by key: the new state, or `None` for a deletion.
pub(super) type DraftChanges<R> = BTreeMap<Arc<str>, Option<Arc<R>>>;

/// The newest state as one caller sees it, with its own changes on top.
pub struct Draft<'a, R> {
    pub(super) view: &'a LedgerView<R>,
    /// Changes of earlier commands in the same transaction.
    pub(super) earlier: &'a DraftChanges<R>,
    pub(super) own: DraftChanges<R>,
    /// Events of the own changes.
    pub(super) events: EventRecorder<R>,
}

impl<R: Resource> Draft<'_, R> {
    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        match self.own.get(key).or_else(|| self.earlier.get(key)) {
            Some(changed) => changed.clone(),
            None => self.view.get(key),
        }
    }

    /// Revision of the last commit before this draft. Revisions only grow, also over deletions and restarts.
    pub fn base_revision(&self) -> u64 {
        self.view.revision()
    }

    /// Returns how long ago another incarnation began; `None`: the store has lost nothing since it was opened.
    pub fn since_loss(&self) -> Option<Duration> {
        self.view.since_loss()
    }

    /// Creates or overwrites a resource. Until its commit its revision reads as 0: a later command of the same
    /// transaction that expects an older revision has to see the change.
    pub fn put(&mut self, resource: R) {
        self.put_because(resource, "");
    }

    /// As [`Self::put`]; `reason` is the word for the rule that decided, for the events of the change.
    pub fn put_because(&mut self, resource: R, reason: &str) {
        self.put_with(resource, reason, Vec::new());
    }

    /// As [`Self::put_because`], with further events of the change beside those of the rule.
    pub fn put_with(&mut self, mut resource: R, reason: &str, further: Vec<EventContent>) {
        #[cfg(feature = "simulation")]
        if resource.is_forgotten() {
            return;
        }
        let key = resource.shared_key();
        resource.set_revision(0);
        if self.events.is_on() {
            let before = self.get(&key);
            let previous = before.as_ref().map_or(0, |before| before.last_event());
            resource.set_last_event(previous);
            self.events.record(&key, (before.as_deref(), Some(&resource)), previous, (reason, further));
        }
        self.own.insert(key, Some(Arc::new(resource)));
    }

    /// Returns whether an unreadable row of that key is stored. Readers do not see it. Overwriting or deleting the row
    /// repairs it; unrequested writes, such as a record for a node that seems to be new, should wait.
    pub fn is_unreadable(&self, key: &str) -> bool {
        !self.own.contains_key(key)
            && !self.earlier.contains_key(key)
            && self.view.read(|state| state.unreadable.contains_key(key))
    }

    /// Returns whether there is a row to delete: a resource, or a stored row that cannot be read.
    pub fn has_row(&self, key: &str) -> bool {
        self.get(key).is_some() || self.is_unreadable(key)
    }

    /// Deletes a resource. Deleting an absent key changes nothing.
    pub fn delete(&mut self, key: &str) {
        if self.has_row(key) {
            let shared: Arc<str> = key.into();
            if let Some(before) = self.get(key).filter(|_| self.events.is_on()) {
                self.events.record(&shared, (Some(&before), None), before.last_event(), ("", Vec::new()));
            }
            self.own.insert(shared, None);
        }
    }

    /// Every resource that `wanted` picks, ordered by key.
    pub fn select(&self, wanted: impl Fn(&R) -> bool) -> Vec<Arc<R>> {
        self.select_among(&[], wanted)
    }

    /// Selects among the resources that meet all of these conditions, so that not every resource has to be examined.
    pub fn select_among(&self, conditions: &[OneOf], wanted: impl Fn(&R) -> bool) -> Vec<Arc<R>> {
        let mut found: BTreeMap<Arc<str>, Arc<R>> = self.view.read(|state| {
            let picked = state.candidates(conditions, "").filter(|resource| wanted(resource));
            picked.map(|resource| (resource.shared_key(), Arc::clone(resource))).collect()
        });
        for (key, changed) in self.earlier.iter().chain(&self.own) {
            match changed {
                Some(resource) if wanted(resource) => found.insert(Arc::clone(key), Arc::clone(resource)),
                Some(_) | None => found.remove(key),
            };
        }
        found.into_values().collect()
    }
}

/// Assigns a revision to every change, and to the events that were `recorded` of it.
pub(super) fn number<R: Resource>(
    changes: DraftChanges<R>,
    recorded: &mut [RecordedEvents],
    from: u64,
) -> Batch<R> {
    let mut batch = Batch {
        changed: Vec::with_capacity(changes.len()),
        deleted: Vec::new(),
        revision: from,
        synced: false,
    };
    // Stable: several changes of one resource stay in their order.
    recorded.sort_by(|one, other| one.key.cmp(&other.key));
    let mut recorded = recorded.iter_mut().peekable();
    for (key, change) in changes {
        batch.revision += 1;
        let mut has_events = false;
        while let Some(events) = recorded.next_if(|events| events.key == key) {
            events.revision = batch.revision;
            has_events = true;
        }
        match change {
            Some(mut resource) => {
                // Usually the only reference, so nothing is copied.
                let numbered = Arc::make_mut(&mut resource);
                numbered.set_revision(batch.revision);
                if has_events {
                    numbered.set_last_event(batch.revision);
                }
                batch.changed.push(resource);
            }
            None => batch.deleted.push(ResourceDeletion { key, revision: batch.revision }),
        }
    }
    batch
}
