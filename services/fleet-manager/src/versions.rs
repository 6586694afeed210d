//! Versions of templates, which follow from the fleets.
//!
//! A fleet has its present template itself, and devices are given that one. The version is stored after the fleet: by the
//! call that changed the fleet, before it answers, or else by the engine, which looks at each changed fleet.

use std::sync::Arc;

use chassis::{
    Fault,
    kinds::fleet::version::{FLEET, TemplateVersionRecord},
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::device::fleet::version::settle;

use crate::store::FleetLedgers;

impl FleetLedgers {
    /// Stores the present versions of the templates of fleets, and deletes those that are not kept.
    ///
    /// # Errors
    /// The write failed, or its outcome is unknown.
    pub(crate) async fn settle_versions(&self, fleets: Vec<Arc<str>>) -> Result<(), Fault> {
        let ledgers = self.clone();
        let settle_all = move |draft: &mut Draft<'_, TemplateVersionRecord>| {
            fleets.iter().for_each(|fleet| ledgers.settle_versions_of(fleet, draft));
            Ok(())
        };
        self.versions.write(settle_all).await.map(|((), _revision)| ())
    }

    fn settle_versions_of(&self, fleet: &Arc<str>, draft: &mut Draft<'_, TemplateVersionRecord>) {
        let is_of_fleet = vec![(FLEET, fleet.to_string())];
        let records = draft.select_among(&[is_of_fleet], |record| record.version.fleet.as_str() == &**fleet);
        let known: Vec<_> = records.iter().map(|record| &record.version).collect();
        let present = self.fleets.view().get(fleet);
        let changes = settle(present.as_ref().map(|record| &record.fleet), &known, clock::now());
        if let Some(version) = changes.stored {
            draft.put(TemplateVersionRecord::of(version));
        }
        changes.deleted.into_iter().for_each(|at| draft.delete(records[at].key()));
    }
}
