//! Decisions about devices: their owners, their templates, their rendered specs.
//!
//! [`domain::device::fleet::management`] decides. Devices are mirrored, and one is decided about when its labels, its
//! spec or its annotations change, or when a fleet changes that owns it or selects it. Nothing is scanned at rest. A
//! changed template is decided about and reported for all devices of its fleet in one pass, in batches; a rollout in
//! steps would choose here which devices a pass takes.
//!
//! One replica decides at a time. A decision names the revision of the device, so one that a lost term still reports is
//! stale, or what the next holder decides as well.

mod convert;
mod directory;
mod engine;
mod rendering;

use std::sync::Arc;

use chassis::{
    Channel, Context, Ready,
    kinds::device::DeviceRecord,
    lease::Role,
    mesh::channel::LARGEST_MESSAGE,
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
};
use proto::device::device_report_service_client::DeviceReportServiceClient;

use self::engine::FleetEngine;
use crate::store::FleetLedgers;

/// Everything that decisions about devices need. Clones share it.
#[derive(Clone)]
struct DeviceSources {
    devices: Mirror<DeviceRecord>,
    ledgers: FleetLedgers,
    registry: DeviceReportServiceClient<Channel>,
    /// Names of devices that need a decision.
    queue: WorkQueue<Arc<str>>,
}

/// Starts to decide about devices, while this replica has the role. The part is ready once devices are known.
pub(crate) fn start(context: &Context, registry: Channel, ledgers: FleetLedgers, role: Role, ready: Ready) {
    let queue = WorkQueue::closed();
    let marked = queue.clone();
    let devices = Mirror::start(context, registry.clone(), move |changes: &[Change<DeviceRecord>]| {
        marked.mark(changes.iter().filter_map(concerned));
    });
    let registry = DeviceReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
    let sources = DeviceSources { devices, ledgers, registry, queue };
    context.tasks.spawn_until_shutdown("fleet-engine", async move {
        sources.devices.reached(1).await;
        ready.now();
        role.while_held(|term| FleetEngine::new(sources.clone(), term).run()).await
    });
}

/// Returns the name of a device whose change may have a consequence. Reports and statuses have none.
fn concerned(change: &Change<DeviceRecord>) -> Option<Arc<str>> {
    let device = &change.current.as_ref()?.device;
    let is_same = change.previous.as_ref().is_some_and(|previous| {
        let before = &previous.device;
        before.meta == device.meta && before.spec == device.spec && before.conditions == device.conditions
    });
    (!is_same).then(|| device.meta.name.shared())
}
