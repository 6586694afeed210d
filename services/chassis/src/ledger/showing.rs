//! What was committed becomes visible to readers and watchers.

use std::sync::Arc;

use super::{
    facets::same_facets,
    store::{Since, withdrawn},
    view::{State, View},
};
use crate::resource::{Batch, Resource};

/// Shows readers and watchers what the database has.
pub(super) fn show_since<R: Resource>(view: &View<R>, since: Since<R>) {
    match since {
        Since::Changes { mut batch, compacted, unreadable, last: _ } => {
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
        Since::Anew(everything) => view.start_over(everything),
    }
}

/// Makes what was committed the newest state.
pub(super) fn show<R: Resource>(state: &mut State<R>, batch: &Batch<R>) {
    state.mended(batch);
    if let Some(up_to) = state.to_compact() {
        state.deletions.retain(|deletion| deletion.revision > up_to);
        state.compacted = up_to;
    }
    for deletion in &batch.deleted {
        if let Some(gone) = state.resources.remove(&deletion.key) {
            state.facets.change(&deletion.key, Some(&*gone), None);
        }
        state.deletions.push(deletion.clone());
    }
    for resource in &batch.changed {
        put(state, resource);
    }
}

fn put<R: Resource>(state: &mut State<R>, resource: &Arc<R>) {
    let Some(held) = state.resources.get_mut(resource.key()) else {
        let key = resource.key().into();
        state.facets.change(&key, None, Some(&**resource));
        state.resources.insert(key, Arc::clone(resource));
        return;
    };
    let before = std::mem::replace(held, Arc::clone(resource));
    if same_facets(&*before, resource) {
        return;
    }
    if let Some((key, _)) = state.resources.get_key_value(resource.key()) {
        state.facets.change(key, Some(&*before), Some(&**resource));
    }
}

impl<R> State<R> {
    /// Revision up to which deletions should be forgotten now, if any.
    pub(super) fn to_compact(&self) -> Option<u64> {
        (self.deletions.len() >= 2 * self.remembers).then(|| self.deletions[self.remembers].revision)
    }
}
