//! Agents that poll for a rendered spec, or wait for one.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::device::DeviceRecord,
    process::clock,
    store::resource::{Batch, Resource as _},
};
use domain::device::{
    poll::{PollAnswer, answer},
    record::{annotations::RestoreMark, version::RenderedVersion},
    restore::reconnect,
};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    ledgers::{DeviceLedgers, locked},
    waits::PollWait,
};

/// Period in which a device whose agent is connected by a stream counts as seen again: well below any timeout.
const SIGN: Duration = Duration::from_secs(30);

/// Answer to a poll at one moment.
enum PollTurn {
    Deliver(Arc<DeviceRecord>),
    Wait(Arc<DeviceRecord>),
    NothingRendered,
}

/// Party that polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DevicePoller {
    /// The agent, whose device counts as seen.
    Agent,
    /// A person, whose polls leave the device as it is.
    Onlooker,
}

impl DeviceLedgers {
    /// Returns the device with its rendered spec, as soon as the poller has another version; `None`: the wait is over, or too
    /// many polls wait. `known` is the version that the poller has, in its words; `None`: it wants the spec in any case.
    pub(super) async fn poll(
        &self,
        poller: DevicePoller,
        name: &str,
        known: Option<&str>,
        longest_wait: Duration,
    ) -> Result<Option<Arc<DeviceRecord>>, Fault> {
        let end = Instant::now() + longest_wait;
        let shutdown = self.tasks.shutdown();
        // Before the first look, so that no change after it is missed.
        let mut changes = self.waiting.enter_place(name);
        loop {
            let turn = match poller {
                DevicePoller::Agent => self.turn(name, known).await?,
                DevicePoller::Onlooker => turn_of(self.read(name).await?, known),
            };
            let record = match turn {
                PollTurn::Deliver(record) => return Ok(Some(record)),
                PollTurn::NothingRendered => return Err(locked(name, "nothing was rendered for it yet")),
                PollTurn::Wait(record) => record,
            };
            let Some(changes) = &mut changes else { return Ok(None) };
            tokio::select! {
                () = changes.changed() => {}
                () = sleep_until(end) => {
                    if poller == DevicePoller::Agent {
                        self.liveness.note(record.shared_key(), clock::now());
                    }
                    return Ok(None);
                }
                () = shutdown.cancelled() => {
                    return Err(Fault::unavailable("device", "the service is stopping"));
                }
            }
        }
    }

    /// Returns the answer to a poll of the agent as of now. The device counts as seen.
    async fn turn(&self, name: &str, known: Option<&str>) -> Result<PollTurn, Fault> {
        let record = self.seen(name).await?;
        if record.device.meta.annotations.restore_mark == Some(RestoreMark::AwaitingReconnect) {
            return self.reconnect(name, known.unwrap_or_default()).await.map(PollTurn::Deliver);
        }
        if answer(&record.device, known) == PollAnswer::Wait {
            return Ok(PollTurn::Wait(record));
        }
        // Another replica may have rendered a first version, or the version that the agent has.
        Ok(turn_of(self.read(name).await?, known))
    }

    /// Returns the device of an agent that was seen just now.
    pub(super) async fn seen(&self, name: &str) -> Result<Arc<DeviceRecord>, Fault> {
        let record = match self.devices.view().get(name) {
            Some(record) => record,
            // An agent that is told that its device is gone forgets everything.
            None => self.read(name).await?,
        };
        self.liveness.note(record.shared_key(), clock::now());
        Ok(record)
    }

    /// Compares versions with an agent that polls for the first time after a restore.
    async fn reconnect(&self, name: &str, reported: &str) -> Result<Arc<DeviceRecord>, Fault> {
        let reported = reported.to_owned();
        let rule = move |device: &_| Ok(reconnect(device, &reported).unwrap_or_else(|| Clone::clone(device)));
        self.change(name.to_owned(), 0, rule).await
    }

    /// Wakes the polls of devices that change, and forgets when devices that are gone were seen, for ever.
    pub(super) async fn follow(self) -> anyhow::Result<Infallible> {
        self.forget_orphans().await;
        let mut batches = pin!(self.devices.follow());
        while let Some(batch) = batches.next().await {
            self.wake(&batch);
        }
        // The stream never ends.
        std::future::pending().await
    }

    fn wake(&self, batch: &Batch<DeviceRecord>) {
        batch.changed.iter().for_each(|record| self.waiting.wake(record.key()));
        for gone in &batch.deleted {
            self.waiting.wake(&gone.key);
            self.forget_if_gone(Arc::clone(&gone.key));
        }
    }

    /// Forgets the sights of devices that were deleted while their sights could not be.
    async fn forget_orphans(&self) {
        let sights = self.liveness.sights.view().all();
        // A device is older than its sights.
        self.devices.catch_up().await;
        sights.iter().for_each(|sight| self.forget_if_gone(sight.shared_key()));
    }

    fn forget_if_gone(&self, name: Arc<str>) {
        if self.devices.view().get(&name).is_none() {
            self.liveness.forget(name);
        }
    }
}

fn turn_of(record: Arc<DeviceRecord>, known: Option<&str>) -> PollTurn {
    match answer(&record.device, known) {
        PollAnswer::Deliver => PollTurn::Deliver(record),
        PollAnswer::Wait => PollTurn::Wait(record),
        PollAnswer::NothingRendered => PollTurn::NothingRendered,
    }
}

/// Agent that gets each rendered spec of its device that it does not have.
pub(super) struct RenderedStream {
    ledgers: DeviceLedgers,
    changes: PollWait,
    name: String,
    known: String,
}

impl RenderedStream {
    pub(super) fn new(ledgers: DeviceLedgers, name: String, known: String) -> Self {
        let changes = ledgers.waiting.enter(&name, None);
        Self { ledgers, changes, name, known }
    }

    /// Waits for the next spec.
    pub(super) async fn next(&mut self) -> Result<Arc<DeviceRecord>, Fault> {
        loop {
            if let PollTurn::Deliver(record) = self.ledgers.turn(&self.name, Some(&self.known)).await? {
                let version = record.device.meta.annotations.rendered_version;
                self.known = version.unwrap_or(RenderedVersion::NONE).to_string();
                return Ok(record);
            }
            // Either way the device is looked at again, and counts as seen.
            let _woken = timeout(SIGN, self.changes.changed()).await;
        }
    }
}
