//! Duties of enrolments: devices to create, certificates to revoke, requests to forget.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Channel, Context, Fault,
    kinds::{device::DeviceRecord, enrolment::EnrolmentRecord},
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::{ledger::Draft, resource::Resource as _},
};
use domain::device::{
    enrolment::{EnrolmentDuty, duty},
    record::{Device, status::LifecycleStatus},
};
use futures_util::StreamExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::EnrolmentManager;

/// Pause after a duty that failed: the registry or the database is away.
const PAUSE: Duration = Duration::from_secs(2);

/// Duties that are taken up at a time.
const BATCH: usize = 100;

/// Period in which ended requests are forgotten.
const PRUNING: Duration = Duration::from_secs(60 * 60);

/// Enrolments and the devices that make their duties due.
pub(crate) struct EnrolmentUpkeep {
    enrolments: EnrolmentManager,
    devices: Mirror<DeviceRecord>,
    queue: WorkQueue<Arc<str>>,
}

impl EnrolmentUpkeep {
    /// Begins to mirror the devices of the registry.
    pub(crate) fn start(context: &Context, registry: Channel, enrolments: EnrolmentManager) -> Self {
        let queue = WorkQueue::default();
        let concerned = queue.clone();
        let devices = Mirror::start(context, registry, move |changes: &[Change<DeviceRecord>]| {
            concerned.mark(changes.iter().filter(|change| is_end(change)).map(|change| change.key().into()));
        });
        Self { enrolments, devices, queue }
    }

    /// Carries out duties, for ever.
    pub(crate) async fn run(self) -> anyhow::Result<Infallible> {
        // A device that is not mirrored yet would look like a deleted one.
        self.devices.reached(1).await;
        tokio::select! {
            never = self.follow_requests() => never,
            never = self.carry_out() => never,
            never = self.prune() => never,
        }
    }

    async fn follow_requests(&self) -> anyhow::Result<Infallible> {
        let mut batches = pin!(self.enrolments.requests.follow());
        while let Some(batch) = batches.next().await {
            self.queue.mark(batch.changed.iter().map(|record| record.shared_key()));
        }
        // The stream never ends.
        std::future::pending().await
    }

    async fn carry_out(&self) -> anyhow::Result<Infallible> {
        loop {
            for name in self.queue.next(BATCH).await {
                if let Err(fault) = self.settle(&name).await {
                    tracing::warn!(device = %name, %fault, "duty of an enrolment not carried out");
                    self.queue.mark_at(name, Instant::now() + PAUSE);
                }
            }
        }
    }

    async fn prune(&self) -> anyhow::Result<Infallible> {
        let mut ticks = interval(PRUNING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(fault) = self.enrolments.prune().await {
                tracing::warn!(%fault, "ended certificates not forgotten");
            }
        }
    }

    /// Carries out the duty of an enrolment, if it has one.
    async fn settle(&self, name: &str) -> Result<(), Fault> {
        let Some(record) = self.enrolments.requests.view().get(name) else { return Ok(()) };
        let mirrored = self.devices.get(name);
        if self.enrolments.duty(&record, mirrored.as_ref().map(|record| &record.device)).is_none() {
            return Ok(());
        }
        // The copy may be older than the request.
        let device = self.enrolments.registry.get(name).await?;
        match self.enrolments.duty(&record, device.as_ref()) {
            None => Ok(()),
            Some(due) => self.enrolments.fulfil(&record, due).await,
        }
    }
}

impl EnrolmentManager {
    fn duty(&self, record: &EnrolmentRecord, device: Option<&Device>) -> Option<EnrolmentDuty> {
        duty(&record.request, device, self.revocation(record.key()).as_ref())
    }

    async fn fulfil(&self, record: &EnrolmentRecord, due: EnrolmentDuty) -> Result<(), Fault> {
        if let Some(reason) = due.revocation() {
            self.revoke(&record.request, reason).await?;
        }
        match due {
            EnrolmentDuty::CreateDevice => self.create_device(record).await,
            EnrolmentDuty::Revoke => Ok(()),
            EnrolmentDuty::Forget => self.forget(record).await,
        }
    }

    /// Deletes a request, unless it has changed since.
    async fn forget(&self, record: &EnrolmentRecord) -> Result<(), Fault> {
        let (name, revision) = (record.shared_key(), record.revision());
        let forget = move |draft: &mut Draft<'_, EnrolmentRecord>| {
            if draft.get(&name).is_some_and(|known| known.revision() == revision) {
                draft.delete(&name);
            }
            Ok(())
        };
        self.requests.write(forget).await.map(|((), _revision)| ())
    }
}

/// Returns whether a device is gone or has ended its life.
fn is_end(change: &Change<DeviceRecord>) -> bool {
    change
        .current
        .as_ref()
        .is_none_or(|record| record.device.status.lifecycle.status == LifecycleStatus::Decommissioned)
}
