//! Rounds of decisions about queued devices, and reports of those that change them.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Channel,
    kinds::{
        device::{evidence, status},
        fleet::FleetRecord,
    },
    lease::Term,
    mesh::time,
    observe::work::WorkQueue,
    process::{clock, pause},
    store::resource::Resource as _,
    within,
};
use domain::{
    core::time::Timestamp,
    device::evaluation::{StatusEvidence, evaluate},
};
use proto::device::{
    DeviceStatusDecision, ReportDeviceStatusesRequest, ReportDeviceStatusesResponse,
    device_report_service_client::DeviceReportServiceClient,
};
use tokio::time::Instant;
use tonic::Status;

use super::mirrors::DeviceMirrors;

/// Devices in one report.
const BATCH: usize = 2_000;

/// Deadline of a report. A batch commits within a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// Everything that decisions about devices need. Clones share it.
#[derive(Clone)]
pub(super) struct DeviceRounds {
    pub(super) mirrors: DeviceMirrors,
    pub(super) queue: WorkQueue<Arc<str>>,
    pub(super) registry: DeviceReportServiceClient<Channel>,
    /// Time without a sign of its agent after which a device counts as disconnected.
    pub(super) timeout: Duration,
}

impl DeviceRounds {
    /// Decides about all devices, and about each again when its evidence changes or its deadline passes, until it is
    /// dropped.
    pub(super) async fn decide_all(self, term: Term) -> anyhow::Result<Infallible> {
        let _open = self.queue.open();
        self.queue.mark(self.mirrors.devices().iter().map(|device| device.shared_key()));
        let mut failures = 0;
        loop {
            let names = self.queue.next(BATCH).await;
            // A mirror that is being replaced by another incarnation may contradict the other.
            self.mirrors.reached().await;
            let _turn = term.turn("evaluate-devices");
            let now = clock::now();
            let decisions: Vec<_> = names.iter().filter_map(|name| self.decide(name, now)).collect();
            if !decisions.is_empty() {
                failures = self.report(names, decisions, failures).await;
            }
        }
    }

    /// Decides about one device, schedules the next decision, and returns this one if it changes the device.
    fn decide(&self, name: &Arc<str>, now: Timestamp) -> Option<DeviceStatusDecision> {
        let Some(record) = self.mirrors.device(name) else {
            self.queue.unmark(name);
            return None;
        };
        let fleet = self.mirrors.fleet_of(&record);
        let known = evidence(&record.device, self.mirrors.sight(name), self.timeout, now);
        let evidence = StatusEvidence { fleet: fleet.as_deref().map(FleetRecord::version), ..known };
        let decision = evaluate(&record.device, &evidence);
        match decision.until {
            Some(until) => self.queue.mark_at(Arc::clone(name), Instant::now() + until.since(now)),
            None => self.queue.unmark(name),
        }
        let is_news = decision.status != record.device.status;
        is_news.then(|| DeviceStatusDecision {
            name: name.to_string(),
            revision: record.revision(),
            status: Some(status::to_wire(&decision.status)),
            last_seen: evidence.last_seen.map(time::to_wire),
        })
    }

    /// Reports decisions, and waits until the mirror shows them, so that no device is decided about on an old record. A
    /// device of a stale decision has changed, or its agent was seen: the news arrives at a mirror and queues it again.
    /// Returns the number of reports in a row that failed.
    async fn report(&self, names: Vec<Arc<str>>, decisions: Vec<DeviceStatusDecision>, failures: u32) -> u32 {
        let count = decisions.len();
        match self.send(decisions).await {
            Ok(answer) => {
                tracing::debug!(
                    devices = count,
                    stale = answer.stale_names.len(),
                    "reported device statuses"
                );
                // A registry that has lost commits may never show this revision. Decisions about older records come back
                // as stale.
                let shown = self.mirrors.devices_reached(answer.revision);
                let _is_shown = tokio::time::timeout(DEADLINE, shown).await;
                0
            }
            Err(status) => {
                let failures = failures + 1;
                tracing::warn!(%status, failures, devices = count, "cannot report device statuses");
                let at = Instant::now() + pause::after(failures);
                names.into_iter().for_each(|name| self.queue.mark_at(name, at));
                failures
            }
        }
    }

    async fn send(
        &self,
        decisions: Vec<DeviceStatusDecision>,
    ) -> Result<ReportDeviceStatusesResponse, Status> {
        let mut registry = self.registry.clone();
        let call = registry.report_device_statuses(ReportDeviceStatusesRequest { decisions });
        Ok(within(DEADLINE, call).await?.into_inner())
    }
}
