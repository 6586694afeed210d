//! Template versions: which of them a fleet keeps.

use crate::{
    core::time::Timestamp,
    device::fleet::record::{Fleet, TemplateVersion},
};

/// Versions of one template that are kept, the present one included. Older ones are of interest to nobody who could
/// still act on them, and a script may replace a template every minute.
pub const MOST_VERSIONS: usize = 100;

/// Changes of the versions of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionChanges {
    /// Version to store.
    pub stored: Option<TemplateVersion>,
    /// Versions to delete, by their places among those that are known.
    pub deleted: Vec<usize>,
}

/// Decides which versions a fleet keeps, of those that are `known`, the oldest first. `None`: the fleet is gone.
///
/// A version from before the creation of the fleet is of an earlier fleet of that name. A stored version with another
/// template is one whose fleet lost its latest commits, and then took another way.
pub fn settle(fleet: Option<&Fleet>, known: &[&TemplateVersion], now: Timestamp) -> VersionChanges {
    let Some(fleet) = fleet else {
        return VersionChanges { stored: None, deleted: (0..known.len()).collect() };
    };
    let mut changes = VersionChanges { stored: Some(present(fleet, now)), deleted: Vec::new() };
    let mut kept = 1;
    for (at, version) in known.iter().enumerate().rev() {
        let is_foreign = version.created < fleet.created;
        if version.name == fleet.template_version {
            changes.stored.take_if(|_| !is_foreign && version.template == fleet.spec.template);
        } else if is_foreign || kept == MOST_VERSIONS {
            changes.deleted.push(at);
        } else {
            kept += 1;
        }
    }
    changes
}

fn present(fleet: &Fleet, now: Timestamp) -> TemplateVersion {
    TemplateVersion {
        fleet: fleet.name.clone(),
        name: fleet.template_version.clone(),
        template: fleet.spec.template.clone(),
        created: now.max(fleet.created),
    }
}
