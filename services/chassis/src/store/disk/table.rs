//! The storage of one kind on a disk.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use crate::store::{
    database::{self, UnreadableRow},
    resource::{Resource, ResourceDeletion},
};

/// Longest time by which a disk can be set back.
const REMEMBERED: Duration = Duration::from_secs(60);

/// All rows of one kind.
pub(crate) struct DiskTable<R> {
    pub(crate) resources: BTreeMap<Arc<str>, Arc<R>>,
    /// Keys of the unreadable rows.
    spoilt: BTreeSet<Arc<str>>,
    pub(crate) deletions: Vec<ResourceDeletion>,
    pub(crate) revision: u64,
    pub(crate) compacted: u64,
    /// Id of the commit that led to the revision.
    pub(crate) last_commit: Uuid,
    /// Incarnation of the kind.
    pub(crate) incarnation: Uuid,
    /// Whether the table was set back, without a commit since.
    pub(crate) is_another_copy: bool,
    earlier: EarlierStates<Box<DiskTable<R>>>,
}

/// Shelf of any kind.
pub(super) trait AnyDiskTable: Any + Send {
    fn revision(&self) -> u64;

    fn keys(&self) -> Vec<Arc<str>>;

    /// Makes the row with that key unreadable.
    fn spoil(&mut self, key: Arc<str>);

    fn spoilt(&self) -> &BTreeSet<Arc<str>>;

    /// Loses the commits after `to`.
    fn set_back(&mut self, to: Instant);
}

impl<R: Resource> AnyDiskTable for DiskTable<R> {
    fn revision(&self) -> u64 {
        self.revision
    }

    fn keys(&self) -> Vec<Arc<str>> {
        self.resources.keys().cloned().collect()
    }

    fn spoil(&mut self, key: Arc<str>) {
        self.spoilt.insert(key);
    }

    fn spoilt(&self) -> &BTreeSet<Arc<str>> {
        &self.spoilt
    }

    fn set_back(&mut self, to: Instant) {
        let mut earlier = std::mem::take(&mut self.earlier);
        if let Some(before) = earlier.take_back(to) {
            *self = *before;
        }
        self.is_another_copy = true;
        self.earlier = earlier;
    }
}

impl<R> Default for DiskTable<R> {
    fn default() -> Self {
        Self {
            resources: BTreeMap::new(),
            spoilt: BTreeSet::new(),
            deletions: Vec::new(),
            revision: 0,
            compacted: 0,
            last_commit: Uuid::nil(),
            incarnation: Uuid::now_v7(),
            is_another_copy: false,
            earlier: EarlierStates::default(),
        }
    }
}

impl<R: Resource> DiskTable<R> {
    /// Returns the readable rows, ordered by key.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Arc<R>> {
        self.resources.values().filter(|one| !self.spoilt.contains(one.key()))
    }

    /// Returns the unreadable rows that changed after a revision.
    pub(crate) fn unreadable(&self, after: u64) -> Vec<UnreadableRow> {
        let rows = self.spoilt.iter().filter_map(|key| self.resources.get(key));
        let rows = rows.filter(|row| row.revision() > after);
        rows.map(|row| database::unreadable(R::KIND, row.key(), "the row is spoilt")).collect()
    }

    /// Writes a resource, replacing any row of its key.
    pub(crate) fn put(&mut self, resource: &Arc<R>) {
        self.spoilt.remove(resource.key());
        self.resources.insert(resource.key().into(), Arc::clone(resource));
    }

    /// Deletes a resource, readable or not.
    pub(crate) fn delete(&mut self, deletion: &ResourceDeletion) {
        self.spoilt.remove(&deletion.key);
        self.resources.remove(&deletion.key);
        self.deletions.push(deletion.clone());
    }
}

impl<R> DiskTable<R> {
    pub(super) fn copy(&self) -> Self {
        Self {
            resources: self.resources.clone(),
            spoilt: self.spoilt.clone(),
            deletions: self.deletions.clone(),
            revision: self.revision,
            compacted: self.compacted,
            last_commit: self.last_commit,
            incarnation: self.incarnation,
            is_another_copy: self.is_another_copy,
            earlier: EarlierStates::default(),
        }
    }

    /// Remembers the state before the commit that was made now.
    pub(super) fn remember(&mut self, before: Self) {
        self.earlier.remember(Box::new(before));
    }
}

/// Earlier states, each with the time of the commit that replaced it.
pub(super) struct EarlierStates<S>(VecDeque<(Instant, S)>);

impl<S> Default for EarlierStates<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<S> EarlierStates<S> {
    /// Remembers a state that is replaced now, as long as a disk may be set back to it.
    pub(super) fn remember(&mut self, before: S) {
        let now = Instant::now();
        self.0.push_back((now, before));
        while self.0.front().is_some_and(|(at, _)| *at + REMEMBERED < now) {
            self.0.pop_front();
        }
    }

    /// Returns the state at `to`, if it was replaced since. Later states are forgotten.
    pub(super) fn take_back(&mut self, to: Instant) -> Option<S> {
        let mut state = None;
        while let Some((_, before)) = self.0.pop_back_if(|(at, _)| *at > to) {
            state = Some(before);
        }
        state
    }
}
