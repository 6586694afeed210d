//! Times at which agents were last seen, which are no part of the records of devices: they change far more often.

use std::{borrow::Cow, sync::Arc};

use domain::core::{invalid::Invalid, time::Timestamp};
use proto::device::DeviceSight;

use crate::{
    mesh::time,
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

/// Time at which the agent of a device was last seen. [`last_seen`](super::last_seen) says what it means for the device.
#[derive(Debug, Clone, PartialEq)]
pub struct SightRecord {
    /// Name of the device.
    pub name: Arc<str>,
    /// Time of the last sign of the agent.
    pub seen_at: Timestamp,
    /// Revision of the last change.
    pub revision: u64,
}

impl Resource for SightRecord {
    const KIND: &'static str = "device_sight";

    fn key(&self) -> &str {
        &self.name
    }

    fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn share_key(&mut self, other: &Self) {
        self.name = Arc::clone(&other.name);
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

impl WireForm for SightRecord {
    type Message = DeviceSight;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, DeviceSight> {
        let seen_at = Some(time::to_wire(self.seen_at));
        Cow::Owned(DeviceSight { name: self.name.to_string(), seen_at, revision: self.revision })
    }

    fn from_wire(message: DeviceSight, (): &mut ()) -> Result<Self, Invalid> {
        let seen_at = message.seen_at.map_or(Timestamp(0), time::from_wire);
        Ok(Self { name: message.name.into(), seen_at, revision: message.revision })
    }
}

impl MirroredKind for SightRecord {}
