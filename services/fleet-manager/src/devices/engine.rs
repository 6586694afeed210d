//! The engine of one term: decides about queued devices, and reports their changes.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::device::DeviceRecord,
    lease::Term,
    process::{clock, pause},
    store::resource::Resource as _,
    within,
};
use domain::{core::time::Timestamp, device::fleet::management::manage};
use futures_util::StreamExt as _;
use proto::{
    Message as _,
    device::{DeviceFleetDecision, ReportDeviceFleetDecisionsRequest, ReportDeviceFleetDecisionsResponse},
};
use tokio::time::Instant;
use tonic::Status;

use super::{DeviceSources, convert, directory::FleetDirectory, rendering::SpecRenderer};

/// Most devices in one report.
const BATCH: usize = 2_000;

/// Bytes of one report, unless a single device needs more.
const BATCH_BYTES: usize = 16 << 20;

/// Deadline of a report. A batch commits within a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// Time until a device is looked at again whose decision the registry has taken and the mirror does not show. The registry
/// may lose that commit before the mirror has seen it.
const CONFIRMATION: Duration = Duration::from_secs(5);

/// Engine of one term.
pub(super) struct FleetEngine {
    sources: DeviceSources,
    term: Term,
    directory: FleetDirectory,
    renderer: SpecRenderer,
    /// Reports in a row that failed.
    failures: u32,
}

impl FleetEngine {
    pub(super) fn new(sources: DeviceSources, term: Term) -> Self {
        let (directory, renderer) = (FleetDirectory::default(), SpecRenderer::default());
        Self { sources, term, directory, renderer, failures: 0 }
    }

    /// Decides about all devices, and about each again when it or one of its fleets changes, until it is dropped.
    pub(super) async fn run(mut self) -> anyhow::Result<Infallible> {
        let DeviceSources { devices, ledgers, queue, .. } = self.sources.clone();
        // A fleet that an earlier holder has stored must not look like a deleted one.
        ledgers.fleets.catch_up().await;
        ledgers.versions.catch_up().await;
        devices.catch_up().await;
        self.term.took_over();
        let _open = queue.open();
        self.settle_all_versions().await;
        self.directory = self.present_fleets();
        queue.mark(devices.all().iter().map(|device| device.shared_key()));
        let mut fleet_changes = pin!(ledgers.fleets.follow());
        loop {
            tokio::select! {
                Some(_) = fleet_changes.next() => self.take_fleets().await,
                names = queue.next(BATCH) => self.decide_about(names).await,
            }
        }
    }

    /// Takes the present fleets, and queues the devices that those which changed own or select, or did so before.
    async fn take_fleets(&mut self) {
        let present = self.present_fleets();
        let gone = self.directory.without_those_of(&present);
        let come = present.without_those_of(&self.directory);
        self.directory = present;
        if gone.is_empty() && come.is_empty() {
            return;
        }
        self.settle_versions([gone.names(), come.names()].concat()).await;
        let devices = self.sources.devices.all();
        let concerned = devices.iter().filter(|device| gone.concerns(device) || come.concerns(device));
        self.sources.queue.mark(concerned.map(|device| device.shared_key()));
    }

    fn present_fleets(&self) -> FleetDirectory {
        FleetDirectory::of(self.sources.ledgers.fleets.view().all())
    }

    /// Settles the versions of all fleets that there are, or were when their versions were stored.
    async fn settle_all_versions(&self) {
        let ledgers = &self.sources.ledgers;
        let fleets = ledgers.fleets.view().all().into_iter().map(|record| record.shared_key());
        let versions = ledgers.versions.view().all().into_iter();
        let mut names: Vec<Arc<str>> = fleets.collect();
        names.extend(versions.map(|record| record.version.fleet.as_str().into()));
        names.sort_unstable();
        names.dedup();
        self.settle_versions(names).await;
    }

    async fn settle_versions(&self, fleets: Vec<Arc<str>>) {
        let note = |fault: Fault, failures| {
            self.term.make_progress();
            tracing::warn!(%fault, failures, "cannot store template versions, trying again");
        };
        pause::until_done(|| self.sources.ledgers.settle_versions(fleets.clone()), note).await;
    }

    /// Decides about devices and reports the decisions in batches.
    async fn decide_about(&mut self, names: Vec<Arc<str>>) {
        let term = self.term.clone();
        let _turn = term.turn("manage-devices");
        let now = clock::now();
        let decisions: Vec<_> = names.iter().filter_map(|name| self.decide(name, now)).collect();
        for batch in batches(decisions) {
            if self.term.is_current() {
                self.report(batch).await;
            }
        }
    }

    /// Decides about one device; `None`: nothing changes, and no decision has to be confirmed.
    fn decide(&mut self, name: &Arc<str>, now: Timestamp) -> Option<DeviceFleetDecision> {
        let record: Option<Arc<DeviceRecord>> = self.sources.devices.get(name);
        let decision = record.and_then(|record| {
            let evidence = self.directory.evidence(&record);
            let renderer = &mut self.renderer;
            let managed = manage(&record.device, &evidence, |spec| renderer.render(spec), now)?;
            Some(convert::decision(&record.device, record.revision(), &managed))
        });
        if decision.is_none() {
            self.sources.queue.unmark(name);
        }
        decision
    }

    /// Reports decisions. A device of a stale one has changed, and is decided about again once the mirror shows it.
    async fn report(&mut self, decisions: Vec<DeviceFleetDecision>) {
        let names: Vec<Arc<str>> = decisions.iter().map(|decision| decision.name.as_str().into()).collect();
        match self.send(decisions).await {
            Ok(answer) => {
                self.failures = 0;
                let stale = answer.stale_names.len();
                tracing::debug!(devices = names.len(), stale, "reported decisions about devices");
                if stale > 0 {
                    // A registry that has lost commits may never show this revision.
                    let shown = self.sources.devices.reached(answer.revision);
                    let _is_shown = tokio::time::timeout(DEADLINE, shown).await;
                }
                let at = Instant::now() + CONFIRMATION;
                names.into_iter().for_each(|name| self.sources.queue.mark_at(name, at));
                self.sources.queue.mark(answer.stale_names.into_iter().map(Arc::from));
            }
            Err(status) => {
                self.failures += 1;
                let failures = self.failures;
                tracing::warn!(%status, failures, devices = names.len(), "cannot report decisions about devices");
                let at = Instant::now() + pause::after(failures);
                names.into_iter().for_each(|name| self.sources.queue.mark_at(name, at));
            }
        }
    }

    async fn send(
        &self,
        decisions: Vec<DeviceFleetDecision>,
    ) -> Result<ReportDeviceFleetDecisionsResponse, Status> {
        let mut registry = self.sources.registry.clone();
        let request = ReportDeviceFleetDecisionsRequest { decisions };
        let call = registry.report_device_fleet_decisions(request);
        Ok(within(DEADLINE, call).await?.into_inner())
    }
}

/// Splits decisions into reports that are not too large.
fn batches(decisions: Vec<DeviceFleetDecision>) -> Vec<Vec<DeviceFleetDecision>> {
    let mut batches: Vec<Vec<_>> = Vec::new();
    let mut bytes = usize::MAX;
    for decision in decisions {
        let size = decision.encoded_len();
        match batches.last_mut().filter(|_| bytes.saturating_add(size) <= BATCH_BYTES) {
            Some(batch) => {
                bytes += size;
                batch.push(decision);
            }
            None => {
                bytes = size;
                batches.push(vec![decision]);
            }
        }
    }
    batches
}
