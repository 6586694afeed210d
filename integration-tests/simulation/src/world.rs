//! The mesh with its surroundings: the replicas, and the storage of each part.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use chassis::{
    Channel, Settings,
    simulation::SimulatedNetwork,
    store::{
        database::NO_DATABASE,
        disk::{CommitOutcome, DiskController, KeptCommit, SimulatedDisk},
    },
};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use crate::replica::{PARTS, Part, Replica, SERVICES};
use crate::{hosts::Running, journal::Journal, replica::Replicas, trouble::Trouble};

/// Deletions that ledgers remember: so few that watches of rarely deleted resources resume too late.
const REMEMBERED: usize = 1;

/// Host of people and their tools.
pub const OPERATOR: &str = "operator";

/// Mesh with its surroundings.
pub struct World {
    /// Network between the hosts.
    pub network: SimulatedNetwork,
    /// History of the run.
    pub journal: Arc<Journal>,
    /// Present faults.
    pub trouble: Arc<Trouble>,
    settings: Settings,
    is_shared: bool,
    pub(crate) disks: BTreeMap<Part, SimulatedDisk>,
    /// Replicas that should exist, with their processes.
    pub(crate) hosts: Mutex<BTreeMap<Replica, Option<Running>>>,
    /// Number of starts of each replica.
    pub(crate) starts: Mutex<BTreeMap<Replica, u32>>,
    /// Time of the last event of the hosts or the database of a part.
    stirred: Mutex<BTreeMap<Part, Instant>>,
    pub(crate) itself: Weak<World>,
}

impl World {
    /// Creates a world in which nothing runs yet.
    pub fn new(seed: u64, settings: Settings, trouble: Arc<Trouble>, replicas: &Replicas) -> Arc<Self> {
        let network = SimulatedNetwork::new(seed);
        network.enter();
        let is_shared = replicas.is_some();
        let wanted = PARTS.into_iter().flat_map(|part| {
            let most = replicas.as_ref().and_then(|replicas| replicas.get(&part).copied()).unwrap_or(1);
            (0..most).map(move |number| (part.replica(number), None))
        });
        Arc::new_cyclic(|itself: &Weak<World>| {
            let disk = |part| {
                let keeper = Keeper { world: Weak::clone(itself), trouble: Arc::clone(&trouble), part };
                let disk = if is_shared { SimulatedDisk::shared(keeper) } else { SimulatedDisk::new(keeper) };
                disk.remember(REMEMBERED);
                disk
            };
            // An evaluator that is alone has no database.
            let keeps = |part: &Part| is_shared || *part != Part::Evaluator;
            Self {
                network,
                journal: Arc::new(Journal::default()),
                trouble: Arc::clone(&trouble),
                settings,
                is_shared,
                disks: SERVICES.into_iter().filter(keeps).map(|part| (part, disk(part))).collect(),
                hosts: Mutex::new(wanted.collect()),
                starts: Mutex::default(),
                stirred: Mutex::default(),
                itself: Weak::clone(itself),
            }
        })
    }

    /// Returns the storage of a part.
    pub fn disk(&self, part: Part) -> Option<&SimulatedDisk> {
        self.disks.get(&part)
    }

    /// Returns the keys of a kind that a part has stored and cannot read.
    pub fn spoilt(&self, part: Part, kind: &str) -> Vec<String> {
        let spoilt = self.disk(part).map(|disk| disk.spoilt(kind)).unwrap_or_default();
        spoilt.iter().map(ToString::to_string).collect()
    }

    /// Returns a connection from the host of people.
    pub fn channel(&self, to: Part) -> anyhow::Result<Channel> {
        chassis::plain_channel(&SimulatedNetwork::url(OPERATOR, to.name()))
    }

    /// Returns every replica that should exist.
    pub fn replicas(&self) -> Vec<Replica> {
        self.hosts.lock().keys().copied().collect()
    }

    /// Returns whether the power service reports the outcome of transitions.
    pub fn tells_results(&self) -> bool {
        self.settings.simulator.results
    }

    /// Returns whether parts may have several replicas.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the replicas of a part that can act, by the number of the start by which its disk knows them.
    pub fn able(&self, part: Part) -> BTreeMap<u64, Replica> {
        let hosts = self.hosts.lock();
        let of_part = hosts.iter().filter(|(replica, _)| replica.part == part);
        let able = of_part.filter_map(|(replica, running)| {
            let running = running.as_ref().filter(|running| !running.paused && !running.leaves)?;
            Some((running.disk()?.start(), *replica))
        });
        able.collect()
    }

    /// Returns whether a replica of a part is paused. Its peers notice that late, because pings are slow here.
    pub fn has_paused(&self, part: Part) -> bool {
        let hosts = self.hosts.lock();
        let mut of_part = hosts.iter().filter(|(replica, _)| replica.part == part);
        of_part.any(|(_, running)| running.as_ref().is_some_and(|running| running.paused))
    }

    /// Returns the replica that holds the role of a part now.
    pub fn holder(&self, part: Part) -> Option<Replica> {
        let Some(disk) = self.disk(part).filter(|_| self.is_shared) else { return Some(part.replica(0)) };
        self.of_start(part, disk.holder()?)
    }

    fn of_start(&self, part: Part, start: u64) -> Option<Replica> {
        let hosts = self.hosts.lock();
        let is = |running: &Option<Running>| {
            running.as_ref().and_then(Running::disk).is_some_and(|disk| disk.start() == start)
        };
        let found = hosts.iter().find(|(replica, running)| replica.part == part && is(running));
        found.map(|(replica, _)| *replica)
    }

    /// Notes an event of the hosts or the database of a part.
    pub fn stir(&self, part: Part) {
        self.stirred.lock().insert(part, Instant::now());
    }

    /// Returns the time without events of the hosts and the database of a part.
    pub fn at_rest(&self, part: Part) -> Duration {
        self.stirred.lock().get(&part).map(Instant::elapsed).unwrap_or_default()
    }

    pub(crate) fn settings_of(&self, start: &str) -> Settings {
        let mut settings = self.settings.clone();
        let url = |part: Part| SimulatedNetwork::url(start, part.name());
        settings.component_registry.url = url(Part::Registry);
        settings.session_manager.url = url(Part::Sessions);
        settings.status_evaluator.url = url(Part::Evaluator);
        settings.power_controller.url = url(Part::Power);
        settings.config_coordinator.url = url(Part::Configuration);
        settings.simulator.url = url(Part::Machine);
        if self.is_shared {
            settings.status_evaluator.database_url = NO_DATABASE.to_owned();
        }
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

/// Draws the faults of the disk of a part.
struct Keeper {
    world: Weak<World>,
    trouble: Arc<Trouble>,
    part: Part,
}

impl DiskController for Keeper {
    fn outcome(&self, kind: &'static str) -> (Duration, CommitOutcome) {
        self.trouble.commit(self.part, kind)
    }

    fn kept(&self, commit: &KeptCommit<'_>) {
        if let Some(world) = self.world.upgrade() {
            world.journal.kept(self.part, commit);
        }
    }

    fn dies(&self, start: u64) {
        if let Some(world) = self.world.upgrade()
            && let Some(replica) = world.of_start(self.part, start)
        {
            world.crash(replica, self.trouble.downtime());
        }
    }

    fn pauses(&self, start: u64) {
        if let Some(world) = self.world.upgrade()
            && let Some(replica) = world.of_start(self.part, start)
        {
            world.pause(replica, self.trouble.pause());
        }
    }
}
