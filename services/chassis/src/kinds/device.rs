//! Edge devices, and the times at which their agents were last seen.
//!
//! A record in memory is the device as the rules read it, with shared texts; its form on the wire and in rows is the
//! message. [`record`], [`spec`], [`report`] and [`status`] convert its parts both ways.

pub mod record;
pub mod report;
pub mod selection;
pub mod sight;
pub mod spec;
pub mod status;
#[cfg(test)]
mod tests;
mod words;

use std::{borrow::Cow, sync::Arc, time::Duration};

use domain::{
    core::{invalid::Invalid, time::Timestamp},
    device::{
        evaluation::StatusEvidence,
        record::{Device, annotations::RestoreMark},
        selector::{DeviceField, SelectorField as _},
    },
};
use proto::device as wire;

use super::Interner;
use crate::{
    observe::mirror::MirroredKind,
    store::resource::{Facet, Resource, WireForm},
};

/// Facet of a label: `key=value`, and the key alone.
pub(crate) const LABEL: &str = "label";

/// Record of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceRecord {
    /// The device.
    pub device: Device,
    /// Labels as `key=value`, for the index.
    labels: Box<[Arc<str>]>,
    /// Revision of the last change.
    revision: u64,
    /// Revision of the latest change that has events; 0: there is none.
    last_event: u64,
}

impl DeviceRecord {
    /// Makes a record of `device`.
    pub fn of(device: Device, texts: &mut Interner) -> Self {
        let labels = device.meta.labels.iter().map(|(key, value)| texts.share(&format!("{key}={value}")));
        let labels = labels.collect();
        Self { device, labels, revision: 0, last_event: 0 }
    }

    /// Returns the record after a change of its device.
    #[must_use]
    pub fn changed(&self, device: Device, texts: &mut Interner) -> Self {
        if device.meta.labels != self.device.meta.labels {
            return Self { revision: self.revision, last_event: self.last_event, ..Self::of(device, texts) };
        }
        let (labels, revision, last_event) = (self.labels.clone(), self.revision, self.last_event);
        Self { device, labels, revision, last_event }
    }

    /// Labels as `key=value`, in order.
    pub fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }
}

/// Returns when the agent of a device was last seen, by its sight. A sight from before the creation is about an earlier
/// device of that name. An agent that is awaited after a restore was not seen since (device reference 2.7).
pub fn last_seen(device: &Device, sight: Option<Timestamp>) -> Option<Timestamp> {
    let is_awaited = device.meta.annotations.restore_mark == Some(RestoreMark::AwaitingReconnect);
    sight.filter(|seen| !is_awaited && *seen >= device.meta.created)
}

/// Returns the evidence about a device of which no fleet is known, by its sight.
pub fn evidence(
    device: &Device,
    sight: Option<Timestamp>,
    timeout: Duration,
    now: Timestamp,
) -> StatusEvidence<'static> {
    StatusEvidence { fleet: None, last_seen: last_seen(device, sight), timeout, now }
}

impl Resource for DeviceRecord {
    const KIND: &'static str = "device";

    fn key(&self) -> &str {
        self.device.meta.name.as_str()
    }

    fn shared_key(&self) -> Arc<str> {
        self.device.meta.name.shared()
    }

    fn share_key(&mut self, other: &Self) {
        self.device.meta.name = other.device.meta.name.clone();
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
    }

    fn weight(&self) -> usize {
        let applications = size_of_val(self.device.reported.applications.as_slice());
        size_of::<Self>()
            + self.device.spec.document.len()
            + self.device.reported.systemd.len()
            + applications
    }

    fn facets(&self) -> impl Iterator<Item = Facet<'_>> {
        let Device { meta, reported, status, .. } = &self.device;
        let labels = self.labels.iter().chain(meta.labels.keys()).map(|label| (LABEL, &**label));
        let owner = meta.owner.as_ref().map(|fleet| (DeviceField::Owner.key(), fleet.as_str()));
        let statuses = [
            (DeviceField::Summary.key(), status.summary.status.word()),
            (DeviceField::Updated.key(), status.updated.status.word()),
            (DeviceField::Applications.key(), status.applications.status.word()),
            (DeviceField::Lifecycle.key(), status.lifecycle.status.word()),
        ];
        let os_mode = reported.os_mode.map(|mode| (DeviceField::OsMode.key(), mode.word()));
        labels.chain(owner).chain(statuses).chain(os_mode)
    }
}

impl WireForm for DeviceRecord {
    type Message = wire::Device;
    type Pool = Interner;

    fn to_wire(&self) -> Cow<'_, wire::Device> {
        let message = record::to_wire(&self.device);
        Cow::Owned(wire::Device { revision: self.revision, last_event: self.last_event, ..message })
    }

    fn from_wire(message: wire::Device, pool: &mut Interner) -> Result<Self, Invalid> {
        let (revision, last_event) = (message.revision, message.last_event);
        let device = record::from_wire(message, pool)?;
        Ok(Self { revision, last_event, ..Self::of(device, pool) })
    }
}

impl MirroredKind for DeviceRecord {}
