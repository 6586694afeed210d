//! Makes commits visible to readers and watchers.

use std::sync::Arc;

use super::{
    facets::same_facets,
    state::LedgerState,
    store::{CommitsSince, withdrawn},
    view::LedgerView,
};
use crate::store::resource::{Batch, KeyedResource, Resource};

/// Shows the database's state to readers and watchers.
pub(super) fn show_since<R: Resource>(view: &LedgerView<R>, since: CommitsSince<R>) {
    match since {
        CommitsSince::Changes { mut batch, compacted, unreadable, last: _ } => {
            let withdrawn = view.read(|state| withdrawn(&unreadable, state, batch.revision));
            batch.deleted.extend(withdrawn);
            let shown = batch.clone();
            view.publish(batch, |state| {
                show(state, &shown);
                state.compacted = state.compacted.max(compacted);
                state.deletions.retain(|deletion| deletion.revision > compacted);
                state.put_aside(unreadable);
            });
        }
        CommitsSince::Anew(everything) => view.start_over(everything),
    }
}

/// Applies a commit to the visible state.
pub(super) fn show<R: Resource>(state: &mut LedgerState<R>, batch: &Batch<R>) {
    state.mended(batch);
    if let Some(up_to) = state.to_compact() {
        state.deletions.retain(|deletion| deletion.revision > up_to);
        state.compacted = up_to;
    }
    for deletion in &batch.deleted {
        if let Some(gone) = state.resources.take(&*deletion.key) {
            state.facets.change(Some(&*gone.0), None);
        }
        state.deletions.push(deletion.clone());
    }
    for resource in &batch.changed {
        put(state, resource);
    }
}

fn put<R: Resource>(state: &mut LedgerState<R>, resource: &Arc<R>) {
    let before = state.resources.replace(KeyedResource(Arc::clone(resource)));
    let before = before.as_ref().map(|before| &*before.0);
    if !before.is_some_and(|before| same_facets(before, resource)) {
        state.facets.change(before, Some(&**resource));
    }
}

impl<R> LedgerState<R> {
    /// Revision up to which deletions should be forgotten now, if any.
    pub(super) fn to_compact(&self) -> Option<u64> {
        (self.deletions.len() >= 2 * self.remembers).then(|| self.deletions[self.remembers].revision)
    }
}
