//! Devices, and when their agents were last seen.

use std::sync::Arc;

use chassis::{
    Context,
    kinds::device::{DeviceRecord, sight::SightRecord},
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::resource::Resource as _,
};
use domain::core::time::Timestamp;

/// Mirrors of devices and sights. Clones share them.
#[derive(Clone)]
pub(super) struct DeviceMirrors {
    devices: Mirror<DeviceRecord>,
    sights: Mirror<SightRecord>,
}

impl DeviceMirrors {
    /// Starts the mirrors; every change queues its device.
    pub(super) fn start(context: &Context, queue: &WorkQueue<Arc<str>>) -> anyhow::Result<Self> {
        let registry = chassis::channel(&context.settings.component_registry.url)?;
        let marked = queue.clone();
        let devices = Mirror::start(context, registry.clone(), move |changes: &[Change<DeviceRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|record| record.shared_key()));
        });
        let marked = queue.clone();
        let sights = Mirror::start(context, registry, move |changes: &[Change<SightRecord>]| {
            marked.mark(changes.iter().filter_map(|one| one.newest()).map(|sight| sight.shared_key()));
        });
        Ok(Self { devices, sights })
    }

    /// Waits until both are complete.
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

    /// The last sight of a device.
    pub(super) fn sight(&self, name: &str) -> Option<Timestamp> {
        self.sights.get(name).map(|sight| sight.seen_at)
    }
}
