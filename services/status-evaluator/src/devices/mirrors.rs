//! Devices, when their agents were last seen, and the fleets that own them.

use std::{collections::HashSet, sync::Arc};

use chassis::{
    Context,
    kinds::{
        device::{DeviceRecord, sight::SightRecord},
        fleet::FleetRecord,
    },
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::resource::Resource as _,
};
use domain::core::time::Timestamp;

/// Mirrors of devices, sights and fleets. Clones share them.
#[derive(Clone)]
pub(super) struct DeviceMirrors {
    devices: Mirror<DeviceRecord>,
    sights: Mirror<SightRecord>,
    fleets: Mirror<FleetRecord>,
}

impl DeviceMirrors {
    /// Starts the mirrors; every change queues its device, and that of a fleet's version the devices of the fleet.
    pub(super) fn start(context: &Context, queue: &WorkQueue<Arc<str>>) -> anyhow::Result<Self> {
        let registry = context.channel(&context.settings.component_registry.url)?;
        let manager = context.channel(&context.settings.fleet_manager.url)?;
        let marked = queue.clone();
        let devices = Mirror::start(context, registry.clone(), move |changes: &[Change<DeviceRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|record| record.shared_key()));
        });
        let marked = queue.clone();
        let sights = Mirror::start(context, registry, move |changes: &[Change<SightRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|sight| sight.shared_key()));
        });
        let (marked, owned) = (queue.clone(), devices.clone());
        let fleets = Mirror::start(context, manager, move |changes: &[Change<FleetRecord>]| {
            let changed: HashSet<_> =
                changes.iter().filter(|one| has_other_version(one)).map(Change::key).collect();
            if !changed.is_empty() {
                marked.mark(devices_of(&owned, &changed));
            }
        });
        Ok(Self { devices, sights, fleets })
    }

    /// Waits until devices and sights are complete. Fleets are not waited for: without its fleet, a device keeps its updated
    /// status.
    pub(super) async fn reached(&self) {
        tokio::join!(self.devices.reached(1), self.sights.reached(1));
    }

    /// Waits until devices are known as of that revision.
    pub(super) async fn devices_reached(&self, revision: u64) {
        self.devices.reached(revision).await;
    }

    /// Every device.
    pub(super) fn devices(&self) -> Vec<Arc<DeviceRecord>> {
        self.devices.all()
    }

    /// The device of that name.
    pub(super) fn device(&self, name: &str) -> Option<Arc<DeviceRecord>> {
        self.devices.get(name)
    }

    /// The fleet that owns a device, if there is one and it is known.
    pub(super) fn fleet_of(&self, record: &DeviceRecord) -> Option<Arc<FleetRecord>> {
        self.fleets.get(record.device.meta.owner.as_ref()?.as_str())
    }

    /// The last sight of a device.
    pub(super) fn sight(&self, name: &str) -> Option<Timestamp> {
        self.sights.get(name).map(|sight| sight.seen_at)
    }
}

fn has_other_version(change: &Change<FleetRecord>) -> bool {
    let version = |record: &Option<Arc<FleetRecord>>| record.as_ref().map(|record| record.version().clone());
    version(&change.previous) != version(&change.current)
}

fn devices_of(devices: &Mirror<DeviceRecord>, fleets: &HashSet<&str>) -> Vec<Arc<str>> {
    let devices = devices.all().into_iter();
    let owned = devices.filter(|record| {
        record.device.meta.owner.as_ref().is_some_and(|owner| fleets.contains(owner.as_str()))
    });
    owned.map(|record| record.shared_key()).collect()
}
