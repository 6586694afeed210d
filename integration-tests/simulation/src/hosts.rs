//! Start, stop and crash of replicas.

use std::{sync::Weak, time::Duration};

use anyhow::Context as _;
use chassis::{Context, Listener, store::disk::SimulatedDisk};
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::{
    host, machine,
    replica::{MOST_REPLICAS, Part, Replica},
    trace,
    world::World,
};

/// Time for a part to stop in order.
const GRACE: Duration = Duration::from_secs(10);

/// Time until a process that ended is started again.
const RESTART: Duration = Duration::from_secs(1);

/// The process of a replica.
pub(crate) struct Running {
    start: String,
    context: Context,
    supervisor: AbortHandle,
    /// Whether the process is to end in order, and not to return.
    pub(crate) leaves: bool,
    pub(crate) paused: bool,
}

impl Running {
    pub(crate) fn disk(&self) -> Option<SimulatedDisk> {
        SimulatedDisk::attached_to(&self.context)
    }
}

impl World {
    /// Starts a replica, if it should exist and does not run.
    pub fn start(&self, replica: Replica) {
        let part = replica.part;
        let mut hosts = self.hosts.lock();
        let Some(host) = hosts.get_mut(&replica).filter(|running| running.is_none()) else { return };
        self.stir(part);
        host::forget_clock(replica.host());
        let start = format!("{}-{}", replica.name(), self.count_start(replica));
        trace::note(|| format!("start {start}"));
        let context = Context::new(self.settings_of(&start));
        if let Some(disk) = self.disks.get(&part) {
            disk.mount().attach(&context);
        }
        let listener = Listener::Memory(self.network.listen(part.name(), &replica.name(), &start));
        let running = run(part, context.clone(), listener, Weak::clone(&self.itself));
        let running = running.instrument(host::span(replica.host()));
        let (world, name) = (Weak::clone(&self.itself), start.clone());
        let supervisor = tokio::spawn(async move {
            let ended = running.await;
            if let Some(world) = world.upgrade() {
                world.ended(replica, &name, ended);
            }
        });
        let supervisor = supervisor.abort_handle();
        *host = Some(Running { start, context, supervisor, leaves: false, paused: false });
    }

    /// Ends a replica at once, as a loss of power does.
    pub fn kill(&self, replica: Replica) {
        let Some(running) = self.hosts.lock().get_mut(&replica).and_then(Option::take) else {
            return;
        };
        trace::note(|| format!("kill {}", running.start));
        self.stir(replica.part);
        self.network.kill(&running.start);
        if let Some(disk) = running.disk() {
            disk.unmount();
        }
        running.supervisor.abort();
        running.context.tasks.abort();
    }

    /// Kills a replica and starts it again after a while.
    pub fn crash(&self, replica: Replica, down: Duration) {
        if !self.hosts.lock().get(&replica).is_some_and(Option::is_some) {
            return;
        }
        self.kill(replica);
        self.later(down, move |world| world.start(replica));
    }

    /// Starts one more replica of a part, unless it has the most. Returns the replica.
    pub fn add(&self, part: Part) -> Option<Replica> {
        let replica = {
            let mut hosts = self.hosts.lock();
            let mut all = (0..MOST_REPLICAS).map(|number| part.replica(number));
            let replica = all.find(|replica| !hosts.contains_key(replica))?;
            hosts.insert(replica, None);
            replica
        };
        self.start(replica);
        Some(replica)
    }

    /// Removes a replica, in order or not. The last one of its part stays.
    pub fn remove(&self, replica: Replica, in_order: bool) -> bool {
        let mut hosts = self.hosts.lock();
        if hosts.keys().filter(|other| other.part == replica.part).count() < 2 {
            return false;
        }
        let running = hosts.get_mut(&replica).and_then(Option::as_mut);
        // A paused process cannot end in order.
        match running.filter(|running| in_order && !running.paused && !running.leaves) {
            Some(running) => {
                trace::note(|| format!("stop {}", running.start));
                running.leaves = true;
                running.context.tasks.shutdown().cancel();
                drop(hosts);
                self.stir(replica.part);
            }
            None => {
                drop(hosts);
                self.kill(replica);
                self.hosts.lock().remove(&replica);
            }
        }
        true
    }

    /// Pauses a replica for a while: it neither runs nor receives nor sends, and does not notice.
    pub fn pause(&self, replica: Replica, lasts: Duration) {
        let start = {
            let mut hosts = self.hosts.lock();
            let running = hosts.get_mut(&replica).and_then(Option::as_mut);
            let Some(running) = running.filter(|running| !running.paused && !running.leaves) else { return };
            trace::note(|| format!("{} is stopped for {lasts:?}", running.start));
            running.paused = true;
            running.context.tasks.pause();
            if let Some(disk) = running.disk() {
                disk.pause();
            }
            self.network.pause(&running.start);
            running.start.clone()
        };
        self.stir(replica.part);
        self.later(lasts, move |world| world.go_on(replica, &start));
    }

    fn go_on(&self, replica: Replica, start: &str) {
        let mut hosts = self.hosts.lock();
        let running = hosts.get_mut(&replica).and_then(Option::as_mut);
        let Some(running) = running.filter(|running| running.start == start) else { return };
        trace::note(|| format!("{start} goes on"));
        running.paused = false;
        if let Some(disk) = running.disk() {
            disk.go_on();
        }
        self.network.go_on(start);
        running.context.tasks.go_on();
        drop(hosts);
        self.stir(replica.part);
    }

    /// Calls a function after a while.
    pub fn later(&self, after: Duration, what: impl FnOnce(&World) + Send + 'static) {
        let world = Weak::clone(&self.itself);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(world) = world.upgrade() {
                what(&world);
            }
        });
    }

    /// Handles a process that has ended by itself. Its supervisor starts it again, unless it was to end.
    fn ended(&self, replica: Replica, start: &str, ended: Result<(), Ended>) {
        let leaves = {
            let hosts = self.hosts.lock();
            hosts.get(&replica).and_then(Option::as_ref).is_some_and(|running| running.leaves)
        };
        match ended {
            Ok(()) => trace::note(|| format!("{start} has ended")),
            Err(Ended::Starting(error)) => trace::note(|| format!("{start} could not start: {error:#}")),
            Err(Ended::Running(error)) => {
                self.journal.violated("process", format!("{start} ended by itself: {error:#}"));
            }
        }
        match leaves {
            true => {
                self.kill(replica);
                self.hosts.lock().remove(&replica);
            }
            false => self.crash(replica, RESTART),
        }
    }

    fn count_start(&self, replica: Replica) -> u32 {
        let mut starts = self.starts.lock();
        let count = starts.entry(replica).or_insert(0);
        *count += 1;
        *count
    }
}

/// Cause of the end of a process.
enum Ended {
    Starting(anyhow::Error),
    Running(anyhow::Error),
}

async fn run(part: Part, context: Context, listener: Listener, world: Weak<World>) -> Result<(), Ended> {
    let tasks = context.tasks.clone();
    let started = match part {
        Part::Registry => component_registry::start(context, listener).await,
        Part::Sessions => session_manager::start(context, listener).await,
        Part::Evaluator => status_evaluator::start(context, listener).await,
        Part::Power => power_controller::start(context, listener).await,
        Part::Configuration => config_coordinator::start(context, listener).await,
        Part::Machine => match world.upgrade().context("the world is gone") {
            Ok(world) => machine::start(context, listener, world).await,
            Err(gone) => Err(gone),
        },
    };
    started.map_err(Ended::Starting)?;
    tasks.finished(GRACE).await.map_err(Ended::Running)
}
