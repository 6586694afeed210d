//! The committed state of one kind in memory, with all that is remembered beside its resources.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use uuid::Uuid;

use super::{
    bookkeeping::LedgerCommit,
    facets::{FacetIndex, OneOf, merged},
    incarnation::LedgerIncarnation,
};
use crate::store::{
    database::UnreadableRow,
    resource::{Batch, KeyedResource, Resource, ResourceDeletion},
};

/// Deletions that are remembered for watches that resume. Twice as many are kept before the older half goes.
/// (A simulation has fewer.)
pub(super) const DELETIONS: usize = 10_000;

/// Stored rows that cannot be read, by kind.
pub(super) const UNREADABLE: &str = "reveille_ledger_unreadable_rows";

/// The committed state, as the writer, readers and watches handle it.
pub(super) struct LedgerState<R> {
    pub(super) resources: BTreeSet<KeyedResource<R>>,
    pub(super) deletions: Vec<ResourceDeletion>,
    pub(super) revision: u64,
    pub(super) compacted: u64,
    pub(super) incarnation: LedgerIncarnation,
    /// Deletions that are remembered for watches that resume, see [`DELETIONS`].
    pub(super) remembers: usize,
    /// Rows that cannot be read, by key.
    pub(super) unreadable: BTreeMap<String, UnreadableRow>,
    /// Secondary index of the resources.
    pub(super) facets: FacetIndex,
}

/// All resources, and the unreadable rows.
pub(super) struct LoadedState<R> {
    pub(super) state: LedgerState<R>,
    pub(super) unreadable: Vec<UnreadableRow>,
    /// Last commit in the state.
    pub(super) last: LedgerCommit,
}

#[cfg(test)]
impl<R: Resource> LoadedState<R> {
    /// A state of these resources alone, as of revision 0.
    pub(super) fn of(resources: Vec<Arc<R>>) -> Self {
        let resources = resources.into_iter().map(KeyedResource).collect();
        let facets = FacetIndex::of(&resources);
        let state = LedgerState {
            resources,
            deletions: Vec::new(),
            revision: 0,
            compacted: 0,
            incarnation: LedgerIncarnation::of(Uuid::nil()),
            remembers: DELETIONS,
            unreadable: BTreeMap::new(),
            facets,
        };
        Self { state, unreadable: Vec::new(), last: LedgerCommit::to(0) }
    }
}

impl<R> LoadedState<R> {
    /// Makes this state begin the incarnation `id`, which continues that of the database.
    pub(super) fn is_continued_by(&mut self, id: Uuid) {
        let state = &mut self.state;
        state.incarnation = LedgerIncarnation { id, continues: Some((state.incarnation.id, state.revision)) };
    }
}

impl<R: Resource> LedgerState<R> {
    /// Leaves these rows aside, until a command overwrites or deletes them.
    pub(super) fn put_aside(&mut self, unreadable: Vec<UnreadableRow>) {
        for row in unreadable {
            let (kind, key, why) = (R::KIND, &row.key, &row.why);
            tracing::error!(kind, key, why, "a stored row cannot be read; it is left aside");
            self.unreadable.insert(row.key.clone(), row);
        }
        self.count_unreadable();
    }

    /// Readmits rows that were overwritten or deleted.
    pub(super) fn mended(&mut self, batch: &Batch<R>) {
        if self.unreadable.is_empty() {
            return;
        }
        let written = batch.changed.iter().map(|resource| resource.key());
        for key in written.chain(batch.deleted.iter().map(|deletion| &*deletion.key)) {
            self.unreadable.remove(key);
        }
        self.count_unreadable();
    }

    fn count_unreadable(&self) {
        // More than any database has, and exact as a float.
        let count = u32::try_from(self.unreadable.len()).unwrap_or(u32::MAX);
        metrics::gauge!(UNREADABLE, "kind" => R::KIND).set(count);
    }

    /// Resources after the key `after`, in the order of keys: at least all that meet all `conditions`.
    pub(super) fn candidates<'a>(
        &'a self,
        conditions: &[OneOf],
        after: &str,
    ) -> Box<dyn Iterator<Item = &'a Arc<R>> + 'a> {
        // A lookup takes longer than a step over a resource.
        match self.facets.fewest(conditions, self.resources.len() / 2) {
            Some(sets) => {
                Box::new(merged(&sets, after).filter_map(|key| Some(&self.resources.get(&**key)?.0)))
            }
            None => {
                let following = (Bound::Excluded(after), Bound::Unbounded);
                Box::new(self.resources.range::<str, _>(following).map(|held| &held.0))
            }
        }
    }

    /// Every resource, ordered by key.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<R>> {
        self.resources.iter().map(|held| &held.0)
    }

    pub(super) fn since(&self, resume: u64) -> Batch<R> {
        let mut changed: Vec<_> = self.all().filter(|one| one.revision() > resume).cloned().collect();
        changed.sort_unstable_by_key(|one| one.revision());
        let deleted = match resume {
            0 => Vec::new(),
            _ => self.deletions.iter().filter(|one| one.revision > resume).cloned().collect(),
        };
        Batch { changed, deleted, revision: self.revision, synced: false }
    }
}
