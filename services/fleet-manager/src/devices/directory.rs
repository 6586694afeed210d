//! Fleets as decisions about devices look them up.

use std::{collections::HashMap, sync::Arc};

use chassis::{
    kinds::{device::DeviceRecord, fleet::FleetRecord},
    store::resource::Resource as _,
};
use domain::device::fleet::{management::FleetEvidence, record::Fleet};

/// Fleets by their names, and by one of the labels that each selects.
#[derive(Default)]
pub(super) struct FleetDirectory {
    fleets: HashMap<String, Arc<FleetRecord>>,
    /// Fleets by the first label of their selectors, as `key=value`. A fleet that selects nothing is not here.
    by_label: HashMap<String, Vec<Arc<FleetRecord>>>,
}

impl FleetDirectory {
    pub(super) fn of(records: impl IntoIterator<Item = Arc<FleetRecord>>) -> Self {
        let mut directory = Self::default();
        for record in records {
            if let Some((key, value)) = record.fleet.spec.selector.match_labels.first_key_value() {
                let label = format!("{key}={value}");
                directory.by_label.entry(label).or_default().push(Arc::clone(&record));
            }
            directory.fleets.insert(record.key().to_owned(), record);
        }
        directory
    }

    /// Returns the fleets that a decision about a device rests on.
    pub(super) fn evidence(&self, record: &DeviceRecord) -> FleetEvidence<'_> {
        let owner = record.device.meta.owner.as_ref();
        FleetEvidence {
            candidates: self.candidates(record).collect(),
            owner: owner.and_then(|owner| self.fleets.get(owner.as_str())).map(|record| &record.fleet),
        }
    }

    /// Returns whether one of the fleets owns or selects a device.
    pub(super) fn concerns(&self, record: &DeviceRecord) -> bool {
        let meta = &record.device.meta;
        meta.owner.as_ref().is_some_and(|owner| self.fleets.contains_key(owner.as_str()))
            || self.candidates(record).any(|fleet| fleet.spec.selector.matches(&meta.labels))
    }

    /// Returns the names of the fleets.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.fleets.keys().map(|name| name.as_str().into()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fleets.is_empty()
    }

    /// Returns the fleets that are not the same in `other`. Labels of fleets themselves do not count.
    pub(super) fn without_those_of(&self, other: &Self) -> Self {
        let is_same = |record: &FleetRecord| {
            other.fleets.get(record.key()).is_some_and(|known| {
                let (one, other) = (&record.fleet, &known.fleet);
                one.spec == other.spec && one.version() == other.version() && one.created == other.created
            })
        };
        Self::of(self.fleets.values().filter(|record| !is_same(record)).cloned())
    }

    fn candidates<'a>(&'a self, record: &DeviceRecord) -> impl Iterator<Item = &'a Fleet> {
        let listed = record.labels().iter().filter_map(|label| self.by_label.get(&**label));
        listed.flatten().map(|record| &record.fleet)
    }
}
