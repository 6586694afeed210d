//! The machine in real time: requests go in, one task lets its time pass, and whoever is to be told of something is.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use simulator::reporter::Report;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    bss,
    call::{Answer, Call},
    cfs,
    command::PowerEvent,
    counters::Counters,
    crossing::Crossing,
    hsm::{self, Delivery},
    ims, pcs, s3,
    service::Service,
    state::State,
    tapms,
    trouble::{Effect, Trouble, Troubles},
};

/// Things that are done under one lock when much is due at once, so that requests get their turn in between.
const MOST_AT_ONCE: usize = 4096;

/// Everything there is, shared by the requests.
pub(crate) struct World {
    started: Instant,
    state: Mutex<State>,
    rescheduled: Notify,
    pub(crate) troubles: Mutex<Troubles>,
    pub(crate) crossing: Crossing,
    pub(crate) counters: Mutex<Counters>,
    reports: mpsc::UnboundedSender<Report>,
    deliveries: mpsc::Sender<Delivery>,
    pub(crate) seed: u64,
    pub(crate) shutdown: CancellationToken,
}

impl World {
    /// The machine at the beginning of its time. What nodes report goes to `reports`, at most one for each boot; what
    /// subscribers are told goes to `deliveries`.
    pub(crate) fn new(
        state: State,
        seed: u64,
        reports: mpsc::UnboundedSender<Report>,
        deliveries: mpsc::Sender<Delivery>,
        shutdown: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            state: Mutex::new(state),
            rescheduled: Notify::new(),
            troubles: Mutex::default(),
            crossing: Crossing::default(),
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

    /// Does what is due and gives the time at which there is more to do.
    fn pass(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        let next = state.advance(self.elapsed(), MOST_AT_ONCE);
        self.send(&mut state);
        next
    }

    /// Reads or changes the state as it is now.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        state.advance(self.elapsed(), MOST_AT_ONCE);
        let result = act(&mut state);
        self.send(&mut state);
        self.rescheduled.notify_one();
        result
    }

    /// Sends what others are to be told, with the lock held, or news could overtake each other. Reports of nodes that
    /// have no gateway go nowhere; a subscriber that is too slow misses some, as with the real inventory.
    fn send(&self, state: &mut State) {
        for report in state.outbox.reports.drain(..) {
            let _ = self.reports.send(report);
        }
        for delivery in state.outbox.deliveries.drain(..) {
            if self.deliveries.try_send(delivery).is_err() {
                tracing::warn!("a notification was lost: the subscribers are too slow");
            }
        }
    }

    /// Adds trouble and gives its number.
    pub(crate) fn trouble(&self, trouble: Trouble) -> u64 {
        self.troubles.lock().add(trouble, self.elapsed())
    }

    /// Ends all trouble of a system, or of all systems.
    pub(crate) fn clear_troubles(&self, service: Option<Service>) {
        self.troubles.lock().clear_all(service);
        self.crossing.forget();
    }

    /// Has something happen to the power service. While it is down, connections to it are cut.
    pub(crate) fn power_service(&self, event: PowerEvent) {
        if let PowerEvent::Restart { seconds } = event {
            self.trouble(Trouble { seconds: Some(seconds), ..Trouble::new(Service::Pcs, Effect::Drop) });
        }
        self.with(|state| state.power_service(event));
    }

    /// What a system answers.
    pub(crate) fn answer(&self, service: Service, call: &Call) -> Answer {
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
