//! Writes to devices, and reads of selected ones.

use std::{sync::Arc, time::Duration};

use chassis::{
    Context, Fault, Tasks,
    kinds::{
        Interner,
        device::{DeviceRecord, evidence, report::document_from_wire, selection::DeviceSelection},
    },
    process::clock,
    store::{
        ledger::{Draft, EventHistories, Ledger, Selection},
        resource::Resource as _,
    },
};
use domain::{
    core::{event::Actor, time::Timestamp},
    device::{
        evaluation::evaluate,
        record::Device,
        report::{StatusDocument, merge},
        write::{WriteConflict, WriteRefusal, check_status_patch},
    },
};
use parking_lot::Mutex;
use proto::device as wire;
use sea_orm::DatabaseConnection;

use super::{liveness::DeviceLiveness, waits::PollWaits};
use crate::store::DeviceTable;

/// Kind of resource in faults.
pub(super) const DEVICE: &str = DeviceRecord::KIND;

/// Devices that are read at a time.
const PAGE: usize = 1_000;

/// Devices in one write.
const BATCH: usize = 2_000;

/// Ledgers of devices and of the times at which agents were last seen. Clones share them.
#[derive(Clone)]
pub(crate) struct DeviceLedgers {
    pub(super) devices: Ledger<DeviceTable>,
    pub(super) liveness: Arc<DeviceLiveness>,
    pub(super) waiting: PollWaits,
    pub(super) writer: DeviceWriter,
    pub(super) tasks: Tasks,
}

/// Status document of an agent, or of a person in its place, that is to be merged into a device.
pub(super) struct StatusWrite {
    pub(super) name: String,
    pub(super) document: StatusDocument,
    /// Revision that the device has to have; 0: any.
    pub(super) expected_revision: u64,
    /// Whether the document is a patched one, which a device that is being decommissioned does not take.
    pub(super) is_patch: bool,
}

/// Evaluates devices that are written. Clones share it.
#[derive(Clone)]
pub(super) struct DeviceWriter {
    liveness: Arc<DeviceLiveness>,
    pub(super) texts: Arc<Mutex<Interner>>,
    timeout: Duration,
}

impl DeviceWriter {
    /// Stores a device with the statuses that follow from it, unless that changes nothing.
    pub(super) fn put(
        &self,
        draft: &mut Draft<'_, DeviceRecord>,
        known: Option<&DeviceRecord>,
        mut device: Device,
    ) {
        let seen = self.liveness.seen(device.meta.name.as_str());
        device.status = evaluate(&device, &evidence(&device, seen, self.timeout, clock::now())).status;
        self.put_as_decided(draft, known, device);
    }

    /// Stores a device whose statuses are decided, unless that changes nothing.
    pub(super) fn put_as_decided(
        &self,
        draft: &mut Draft<'_, DeviceRecord>,
        known: Option<&DeviceRecord>,
        device: Device,
    ) {
        let mut texts = self.texts.lock();
        match known {
            Some(known) if known.device == device => {}
            Some(known) => draft.put(known.changed(device, &mut texts)),
            None => draft.put(DeviceRecord::of(device, &mut texts)),
        }
    }

    /// Returns whether a device counts as connected by the last sign of its agent.
    pub(super) fn is_connected_now(&self, device: &Device) -> bool {
        self.is_connected(device, self.liveness.seen(device.meta.name.as_str()))
    }

    /// Returns whether a device counts as connected by that sight.
    pub(super) fn is_connected(&self, device: &Device, sight: Option<Timestamp>) -> bool {
        evaluate(device, &evidence(device, sight, self.timeout, clock::now())).until.is_some()
    }
}

impl DeviceLedgers {
    /// Opens the ledgers.
    ///
    /// # Errors
    /// A table cannot be read.
    pub(super) async fn open(context: &Context, database: DatabaseConnection) -> anyhow::Result<Self> {
        let devices = Ledger::open(context, database.clone()).await?;
        let liveness = Arc::new(DeviceLiveness::new(Ledger::open(context, database).await?));
        let writer = DeviceWriter {
            liveness: Arc::clone(&liveness),
            texts: Arc::default(),
            timeout: context.settings.devices.disconnect_timeout(),
        };
        let waiting = PollWaits::new(&context.settings.limits);
        Ok(Self { devices, liveness, waiting, writer, tasks: context.tasks.clone() })
    }

    /// Adds the events of devices.
    pub(crate) fn with_events(&self, histories: EventHistories) -> EventHistories {
        histories.with(&self.devices)
    }

    /// Returns the device of that name, with every write that was acknowledged before.
    pub(super) async fn read(&self, name: &str) -> Result<Arc<DeviceRecord>, Fault> {
        self.devices.fresh().await?;
        self.devices.view().get(name).ok_or_else(|| Fault::not_found(DEVICE, name))
    }

    /// Changes a device by a rule, and returns it as stored. `expected` is the revision that it has to have; 0: any.
    pub(super) async fn change(
        &self,
        name: String,
        expected: u64,
        rule: impl FnOnce(&Device) -> Result<Device, WriteRefusal> + Send + 'static,
    ) -> Result<Arc<DeviceRecord>, Fault> {
        let (key, writer) = (name.clone(), self.writer.clone());
        let change = move |draft: &mut Draft<'_, DeviceRecord>| {
            let known = draft.get(&key).ok_or_else(|| Fault::not_found(DEVICE, &key))?;
            if expected != 0 && known.revision() != expected {
                return Err(Fault::Conflict { kind: DEVICE.to_owned(), name: key });
            }
            let device = rule(&known.device).map_err(|refusal| refused(&key, refusal))?;
            writer.put(draft, Some(&known), device);
            Ok(())
        };
        self.devices.write_by(Actor::Client, change).await?;
        self.stored(&name)
    }

    /// Reads a status document.
    ///
    /// # Errors
    /// Names the member that no document can have.
    pub(super) fn status_document(
        &self,
        document: Option<wire::StatusDocument>,
    ) -> Result<StatusDocument, Fault> {
        Ok(document_from_wire(document.unwrap_or_default(), &mut self.writer.texts.lock())?)
    }

    /// Merges a status document into a device, and returns the device as stored.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub(super) async fn write_status(&self, write: StatusWrite) -> Result<Arc<DeviceRecord>, Fault> {
        let StatusWrite { name, document, expected_revision, is_patch } = write;
        let rule = move |device: &Device| {
            if is_patch {
                check_status_patch(device).map_err(conflict)?;
            }
            Ok(merge(device, document))
        };
        self.change(name, expected_revision, rule).await
    }

    /// Returns the device of that name after a write to it.
    pub(super) fn stored(&self, name: &str) -> Result<Arc<DeviceRecord>, Fault> {
        // A later write may have deleted it.
        self.devices.view().get(name).ok_or_else(|| Fault::not_found(DEVICE, name))
    }

    /// Returns the selected devices, page by page.
    pub(super) fn selected(
        &self,
        wanted: DeviceSelection,
    ) -> impl Iterator<Item = Arc<DeviceRecord>> + Send + use<> {
        self.devices.pages(selection(wanted, String::new(), 0), PAGE).flatten()
    }

    /// Changes the selected devices that a rule changes; returns their number.
    pub(super) async fn change_selected(
        &self,
        wanted: DeviceSelection,
        rule: fn(&Device) -> Option<Device>,
    ) -> Result<u64, Fault> {
        self.devices.fresh().await?;
        let concerned = self.selected(wanted.clone()).filter(|record| rule(&record.device).is_some());
        let names: Vec<_> = concerned.map(|record| record.shared_key()).collect();
        let mut count = 0;
        for names in names.chunks(BATCH) {
            let (names, wanted, writer) = (names.to_vec(), wanted.clone(), self.writer.clone());
            let change = move |draft: &mut Draft<'_, DeviceRecord>| {
                let mut changed = 0;
                for known in names.iter().filter_map(|name| draft.get(name)).collect::<Vec<_>>() {
                    if let Some(device) = rule(&known.device).filter(|_| wanted.matches(&known)) {
                        writer.put(draft, Some(&known), device);
                        changed += 1;
                    }
                }
                Ok(changed)
            };
            count += self.devices.write_by(Actor::Client, change).await?.0;
        }
        Ok(count)
    }
}

/// Returns the selection of a list; `most` 0: all devices.
pub(super) fn selection(wanted: DeviceSelection, after: String, most: u32) -> Selection<DeviceRecord> {
    Selection {
        keys: wanted.names(),
        after,
        most: if most == 0 { usize::MAX } else { most as usize },
        conditions: wanted.conditions(),
        wanted: Box::new(move |record| wanted.matches(record)),
    }
}

/// Returns the fault of a refused write.
fn refused(name: &str, refusal: WriteRefusal) -> Fault {
    match refusal {
        WriteRefusal::Invalid(invalid) => Fault::Invalid(invalid),
        WriteRefusal::Conflict(conflict) => locked(name, conflict),
    }
}

/// Returns the fault of a device whose state forbids a call.
pub(super) fn locked(name: &str, reason: impl ToString) -> Fault {
    Fault::Locked { kind: DEVICE.to_owned(), name: name.to_owned(), reason: reason.to_string() }
}

/// Makes the state of a device the refusal of a write.
pub(super) fn conflict(conflict: WriteConflict) -> WriteRefusal {
    WriteRefusal::Conflict(conflict)
}
