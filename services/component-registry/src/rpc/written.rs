//! Writes of single components by clients.

use chassis::{Fault, kinds::Interner};
use domain::{
    boot::component::{Component, ComponentPatch, validate, write},
    core::{id::ComponentId, invalid::Invalid, time::Timestamp},
};
use proto::component as wire;

use crate::{RegistryState, convert};

/// Write of one component.
pub(super) struct ComponentWrite {
    /// Id of the component.
    pub(super) id: ComponentId,
    /// Written members.
    pub(super) patch: ComponentPatch,
}

impl ComponentWrite {
    /// Returns the record that replaces `previous`.
    pub(super) fn put(
        self,
        previous: Option<&Component>,
        tokens: &convert::RequestTokens,
        now: Timestamp,
    ) -> Component {
        write::put(previous, self.id, self.patch, |token| tokens.get(token), now)
    }
}

impl RegistryState {
    /// Reads the writes of a request.
    pub(super) fn read_writes(&self, components: Vec<wire::Component>) -> Result<Vec<ComponentWrite>, Fault> {
        let mut interner = self.interner.lock();
        let read = components.into_iter().map(|component| {
            let id = ComponentId::parse(&component.id)?;
            Ok(ComponentWrite { id, patch: read_patch(component, &mut interner)? })
        });
        read.collect()
    }
}

/// Reads the members that a client may write.
pub(super) fn read_patch(patch: wire::Component, interner: &mut Interner) -> Result<ComponentPatch, Invalid> {
    let patch = chassis::kinds::component::patch_from_wire(patch, interner)?;
    validate(&patch)?;
    Ok(patch)
}

/// Returns the last write of every id, in the order of first appearance.
pub(super) fn last_of_each(writes: Vec<ComponentWrite>) -> Vec<ComponentWrite> {
    let mut places = std::collections::HashMap::new();
    let mut kept: Vec<ComponentWrite> = Vec::with_capacity(writes.len());
    for write in writes {
        match places.get(&write.id) {
            Some(&place) => kept[place] = write,
            None => {
                places.insert(write.id.clone(), kept.len());
                kept.push(write);
            }
        }
    }
    kept
}
