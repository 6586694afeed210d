//! The machine in real time: answers requests, lets time pass in one task, and sends reports and notices.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use simulator::reporter::NodeReport;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    bss,
    call::{SystemAnswer, SystemCall},
    cfs,
    command::PowerEvent,
    counters::CallCounters,
    crossing::AnswerCrossing,
    hsm::{self, NoticeDelivery},
    ims, pcs, s3,
    service::Service,
    state::MachineState,
    tapms,
    trouble::{ServiceTrouble, TroubleEffect, TroubleList},
};

/// Things that are done under one lock when much is due at once, so that requests get their turn in between.
const MOST_AT_ONCE: usize = 4096;

/// Everything there is, shared by the requests.
pub(crate) struct LiveMachine {
    started: Instant,
    state: Mutex<MachineState>,
    rescheduled: Notify,
    pub(crate) troubles: Mutex<TroubleList>,
    pub(crate) crossing: AnswerCrossing,
    pub(crate) counters: Mutex<CallCounters>,
    reports: mpsc::UnboundedSender<NodeReport>,
    deliveries: mpsc::Sender<NoticeDelivery>,
    pub(crate) seed: u64,
    pub(crate) shutdown: CancellationToken,
}

impl LiveMachine {
    /// The machine at the beginning of its time. Nodes' reports go to `reports`, at most one for each boot; notices go
    /// to `deliveries`.
    pub(crate) fn new(
        state: MachineState,
        seed: u64,
        reports: mpsc::UnboundedSender<NodeReport>,
        deliveries: mpsc::Sender<NoticeDelivery>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            state: Mutex::new(state),
            rescheduled: Notify::new(),
            troubles: Mutex::default(),
            crossing: AnswerCrossing::default(),
            counters: Mutex::default(),
            reports,
            deliveries,
            seed,
            shutdown,
        })
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lets time pass until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = self.pass().map(|due| self.started + due);
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = self.rescheduled.notified() => {}
                () = sleep_until(next.unwrap_or(self.started)), if next.is_some() => {}
            }
        }
    }

    /// Runs the steps that are due and returns the time of the next step.
    fn pass(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        let next = state.advance(self.elapsed(), MOST_AT_ONCE);
        self.send(&mut state);
        next
    }

    /// Reads or changes the state as it is now.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut MachineState) -> T) -> T {
        let mut state = self.state.lock();
        state.advance(self.elapsed(), MOST_AT_ONCE);
        let result = act(&mut state);
        self.send(&mut state);
        self.rescheduled.notify_one();
        result
    }

    /// Sends reports and notices, with the lock held, so that they keep their order. Reports of nodes without a gateway
    /// are dropped; a slow subscriber misses some, as with the real inventory.
    fn send(&self, state: &mut MachineState) {
        for report in state.outbox.reports.drain(..) {
            let _ = self.reports.send(report);
        }
        for delivery in state.outbox.deliveries.drain(..) {
            if self.deliveries.try_send(delivery).is_err() {
                tracing::warn!("a notification was lost: the subscribers are too slow");
            }
        }
    }

    /// Adds trouble and returns its number.
    pub(crate) fn trouble(&self, trouble: ServiceTrouble) -> u64 {
        self.troubles.lock().add(trouble, self.elapsed())
    }

    /// Ends all trouble of a system, or of all systems.
    pub(crate) fn clear_troubles(&self, service: Option<Service>) {
        self.troubles.lock().clear_all(service);
        self.crossing.forget();
    }

    /// Makes the power service suffer this event. While it is down, connections to it are cut.
    pub(crate) fn power_service(&self, event: PowerEvent) {
        if let PowerEvent::Restart { seconds } = event {
            self.trouble(ServiceTrouble {
                seconds: Some(seconds),
                ..ServiceTrouble::new(Service::Pcs, TroubleEffect::Drop)
            });
        }
        self.with(|state| state.power_service(event));
    }

    /// Returns the system's answer to the call.
    pub(crate) fn answer(&self, service: Service, call: &SystemCall) -> SystemAnswer {
        self.with(|state| match service {
            Service::Hsm => hsm::answer(state, call),
            Service::Pcs => pcs::answer(state, call),
            Service::Bss => bss::answer(state, call),
            Service::Cfs => cfs::answer(state, call),
            Service::Ims => ims::answer(state, call),
            Service::S3 => s3::answer(state, call),
            Service::Tapms => tapms::answer(state, call),
        })
    }
}
