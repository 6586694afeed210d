//! The hosts of a mesh: how they are started, how they die, and what is left of them.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::Context as _;
use chassis::{
    Channel, Context, Listener, Settings,
    simulation::{Custodian, Disk, Fate, NO_DATABASE, Network},
};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::{host, journal::Journal, machine, trace, trouble::Trouble};

/// How long a part that stops in order may take.
const GRACE: Duration = Duration::from_secs(10);

/// After how long a process that ended is started again.
const RESTART: Duration = Duration::from_secs(1);

/// A part of the mesh, on a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The component registry.
    Registry,
    /// The session manager.
    Sessions,
    /// The status evaluator.
    Evaluator,
    /// The power controller.
    Power,
    /// The config coordinator.
    Configuration,
    /// The nodes and every upstream. It never dies.
    Machine,
}

/// Every part.
pub const PARTS: [Part; 6] =
    [Part::Registry, Part::Sessions, Part::Evaluator, Part::Power, Part::Configuration, Part::Machine];

/// Those that can die: the services.
pub const SERVICES: [Part; 5] =
    [Part::Registry, Part::Sessions, Part::Evaluator, Part::Power, Part::Configuration];

/// Where people and their tools are.
pub const OPERATOR: &str = "operator";

impl Part {
    /// The name of its host.
    pub fn name(self) -> &'static str {
        match self {
            Self::Registry => "component-registry",
            Self::Sessions => "session-manager",
            Self::Evaluator => "status-evaluator",
            Self::Power => "power-controller",
            Self::Configuration => "config-coordinator",
            Self::Machine => "machine",
        }
    }

    /// The number of its host.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    fn keeps(self) -> bool {
        !matches!(self, Self::Evaluator | Self::Machine)
    }
}

/// A mesh and everything around it.
pub struct World {
    /// What connects the hosts.
    pub network: Network,
    /// What happened so far.
    pub journal: Arc<Journal>,
    /// What goes wrong.
    pub trouble: Arc<Trouble>,
    settings: Settings,
    disks: BTreeMap<Part, Disk>,
    hosts: Mutex<BTreeMap<Part, Host>>,
    itself: Weak<World>,
}

#[derive(Default)]
struct Host {
    starts: u32,
    running: Option<Running>,
}

struct Running {
    start: String,
    context: Context,
    supervisor: AbortHandle,
}

impl World {
    /// A world in which nothing runs yet.
    pub fn new(seed: u64, settings: Settings, trouble: Arc<Trouble>) -> Arc<Self> {
        let network = Network::new(seed);
        network.enter();
        Arc::new_cyclic(|itself: &Weak<World>| {
            let disk =
                |part| Disk::new(Keeper { world: Weak::clone(itself), trouble: Arc::clone(&trouble), part });
            let disks =
                PARTS.into_iter().filter(|part| part.keeps()).map(|part| (part, disk(part))).collect();
            Self {
                network,
                journal: Arc::new(Journal::default()),
                trouble: Arc::clone(&trouble),
                settings,
                disks,
                hosts: Mutex::new(PARTS.into_iter().map(|part| (part, Host::default())).collect()),
                itself: Weak::clone(itself),
            }
        })
    }

    /// What a part keeps.
    pub fn disk(&self, part: Part) -> Option<&Disk> {
        self.disks.get(&part)
    }

    /// A connection from where people are.
    pub fn channel(&self, to: Part) -> anyhow::Result<Channel> {
        chassis::channel(&Network::url(OPERATOR, to.name()))
    }

    /// Whether a part runs.
    pub fn is_up(&self, part: Part) -> bool {
        self.hosts.lock().get(&part).is_some_and(|host| host.running.is_some())
    }

    /// Starts a part, if it does not run.
    pub fn start(&self, part: Part) {
        let mut hosts = self.hosts.lock();
        let host = hosts.entry(part).or_default();
        if host.running.is_some() {
            return;
        }
        host.starts += 1;
        host::forget_clock(part.number());
        let start = format!("{}-{}", part.name(), host.starts);
        trace::note(|| format!("start {start}"));
        let mut context = Context::new(self.settings_of(&start));
        context.disk = self.disks.get(&part).map(Disk::mount);
        let listener = Listener::Memory(self.network.listen(part.name(), &start));
        let running = run(part, context.clone(), listener, Weak::clone(&self.itself));
        let running = running.instrument(host::span(part.number()));
        let (world, name) = (Weak::clone(&self.itself), start.clone());
        let supervisor = tokio::spawn(async move {
            let ended = running.await;
            if let Some(world) = world.upgrade() {
                world.ended(part, &name, ended);
            }
        });
        host.running = Some(Running { start, context, supervisor: supervisor.abort_handle() });
    }

    /// Ends a part where it is, as a loss of power does.
    pub fn kill(&self, part: Part) {
        let Some(running) = self.hosts.lock().get_mut(&part).and_then(|host| host.running.take()) else {
            return;
        };
        trace::note(|| format!("kill {}", running.start));
        self.network.kill(&running.start);
        if let Some(disk) = self.disks.get(&part) {
            disk.unmount();
        }
        running.supervisor.abort();
        running.context.tasks.abort();
    }

    /// Kills a part and starts it again after a while.
    pub fn crash(&self, part: Part, down: Duration) {
        if !self.is_up(part) {
            return;
        }
        self.kill(part);
        self.start_after(part, down);
    }

    fn start_after(&self, part: Part, down: Duration) {
        let world = Weak::clone(&self.itself);
        tokio::spawn(async move {
            tokio::time::sleep(down).await;
            if let Some(world) = world.upgrade() {
                world.start(part);
            }
        });
    }

    /// A process has ended by itself. Whoever watches over it starts it again.
    fn ended(&self, part: Part, start: &str, ended: Result<(), Ended>) {
        match ended {
            Ok(()) => trace::note(|| format!("{start} has ended")),
            Err(Ended::Starting(error)) => trace::note(|| format!("{start} could not start: {error:#}")),
            Err(Ended::Running(error)) => {
                self.journal.violated("process", format!("{start} ended by itself: {error:#}"));
            }
        }
        self.crash(part, RESTART);
    }

    fn settings_of(&self, start: &str) -> Settings {
        let mut settings = self.settings.clone();
        let url = |part: Part| Network::url(start, part.name());
        settings.component_registry.url = url(Part::Registry);
        settings.session_manager.url = url(Part::Sessions);
        settings.status_evaluator.url = url(Part::Evaluator);
        settings.power_controller.url = url(Part::Power);
        settings.config_coordinator.url = url(Part::Configuration);
        settings.simulator.url = url(Part::Machine);
        for database in [
            &mut settings.component_registry.database_url,
            &mut settings.session_manager.database_url,
            &mut settings.power_controller.database_url,
            &mut settings.config_coordinator.database_url,
        ] {
            *database = NO_DATABASE.to_owned();
        }
        settings
    }
}

/// How a process ended.
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

/// Says what happens to the disk of a part.
struct Keeper {
    world: Weak<World>,
    trouble: Arc<Trouble>,
    part: Part,
}

impl Custodian for Keeper {
    fn fate(&self, kind: &'static str) -> (Duration, Fate) {
        self.trouble.commit(self.part, kind)
    }

    fn kept(&self, kind: &'static str, batch: &dyn Any) {
        if let Some(world) = self.world.upgrade() {
            world.journal.kept(self.part, kind, batch);
        }
    }

    fn dies(&self) {
        if let Some(world) = self.world.upgrade() {
            world.crash(self.part, self.trouble.downtime());
        }
    }
}
