//! Polls of agents that wait for a change of their device.

use std::{collections::HashMap, sync::Arc};

use chassis::settings::LimitSettings;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Polls that wait for a change of their device. Clones share them.
#[derive(Clone)]
pub(super) struct PollWaits {
    devices: Arc<Mutex<HashMap<Arc<str>, watch::Sender<()>>>>,
    places: Arc<Semaphore>,
}

/// Wait for changes of one device.
pub(super) struct PollWait {
    name: Arc<str>,
    devices: Arc<Mutex<HashMap<Arc<str>, watch::Sender<()>>>>,
    changed: watch::Receiver<()>,
    _place: Option<OwnedSemaphorePermit>,
}

impl PollWaits {
    /// Polls that wait take at most half of the places of their class, so that reports always find one.
    pub(super) fn new(limits: &LimitSettings) -> Self {
        let places = Semaphore::new((limits.reports as usize / 2).min(Semaphore::MAX_PERMITS));
        Self { devices: Arc::default(), places: Arc::new(places) }
    }

    /// Waits for changes from now on, at a place for polls; `None`: too many wait.
    pub(super) fn enter_place(&self, name: &str) -> Option<PollWait> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(self.enter(name, Some(place)))
    }

    /// Waits for changes from now on, at a place of the caller's.
    pub(super) fn enter(&self, name: &str, place: Option<OwnedSemaphorePermit>) -> PollWait {
        let name: Arc<str> = name.into();
        let changed = self.devices.lock().entry(Arc::clone(&name)).or_default().subscribe();
        PollWait { name, devices: Arc::clone(&self.devices), changed, _place: place }
    }

    /// Wakes those that wait for changes of a device.
    pub(super) fn wake(&self, name: &str) {
        if let Some(device) = self.devices.lock().get(name) {
            device.send_replace(());
        }
    }
}

impl PollWait {
    /// Waits for the next change.
    pub(super) async fn changed(&mut self) {
        // The sender lives as long as this receiver.
        let _changed = self.changed.changed().await;
    }
}

impl Drop for PollWait {
    fn drop(&mut self) {
        let mut devices = self.devices.lock();
        // The receiver of this wait is dropped after this.
        if devices.get(&self.name).is_some_and(|device| device.receiver_count() <= 1) {
            devices.remove(&self.name);
        }
    }
}
