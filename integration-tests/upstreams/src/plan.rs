//! Size, contents and speed of the machine to play.

use std::{collections::BTreeMap, time::Duration};

use proto::inventory::{Group, Hardware};
use simulator::{FleetFaults, hardware::NodePace, topology};

use crate::images::ImageStock;

/// Size, contents and speed of the machine to play.
#[derive(Clone, Debug)]
pub struct MachinePlan {
    /// All hardware of the inventory. Hardware other than nodes is listed and inert.
    pub hardware: Vec<Hardware>,
    /// Groups of the inventory.
    pub groups: Vec<Group>,
    /// Partitions of the inventory.
    pub partitions: Vec<Group>,
    /// Tenants and their nodes.
    pub tenants: BTreeMap<String, Vec<String>>,
    /// Content of the image store and of the image management service.
    pub images: ImageStock,
    /// Factor on all durations of hardware and of nodes' pauses: 1 is as slow as real ones, 0 has no delay.
    pub speed: f64,
    /// Durations that all nodes have alike, instead of those drawn at random.
    pub pace: Option<NodePace>,
    /// Seed of durations, of faults, and of the members that lists leave out.
    pub seed: u64,
    /// Number of nodes with each hardware fault from the start.
    pub faults: FleetFaults,
    /// Whether the nodes are up at the start.
    pub up: bool,
    /// Gateway that nodes report their boots to; empty: nodes do not report.
    pub gateway_url: String,
    /// Behaviour of the power service.
    pub power: PowerService,
}

/// Timing of the power service. [`Self::as_shipped`] is the normal one; faster ones have names of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerService {
    /// Time until the service first checks whether a transition has had its effect, and between checks. Reservations
    /// are held until a check finds that all nodes are done.
    pub confirm_period: Duration,
    /// Period of the power readings, and so the greatest age of a power state. Zero: readings are immediate.
    pub sampling_period: Duration,
    /// Length of a minute of `taskDeadlineMinutes`.
    pub minute: Duration,
    /// Most nodes that it can take in one transition.
    pub most_nodes: usize,
    /// Whether a node's result shows as soon as its power is read, and not only when the service checks the
    /// transition. The real one is never so prompt.
    pub prompt_results: bool,
    /// Heartbeat period of a worker. A transition whose worker missed three heartbeats is abandoned.
    pub keep_alive: Duration,
    /// Period of the reaper, which resumes abandoned transitions and ends expired ones.
    pub reaper_period: Duration,
    /// Term of a reservation that is not renewed, because the worker that made it died.
    pub reservation_term: Duration,
    /// Time for which a transition is kept after its creation. An open one is aborted then.
    pub kept_for: Duration,
    /// Most transitions that are kept once they have ended.
    pub most_ended: usize,
    /// Number of letters that are kept of the texts of an ended transition; `None`: all. The real service cuts them
    /// where it stores too much for its database, and to nothing where it has no database.
    pub longest_text: Option<usize>,
}

impl PowerService {
    /// The power control service as it is shipped.
    pub fn as_shipped() -> Self {
        let second = Duration::from_secs;
        Self {
            confirm_period: second(15),
            sampling_period: second(30),
            minute: second(60),
            most_nodes: 2500,
            prompt_results: false,
            keep_alive: second(10),
            reaper_period: second(60),
            reservation_term: second(60),
            kept_for: second(24 * 60 * 60),
            most_ended: 20_000,
            longest_text: None,
        }
    }

    /// Returns the service as shipped, with all durations multiplied by `speed`: 0.05 is twenty times as fast. Without
    /// any duration it is [`Self::quick`].
    pub fn at_speed(speed: f64) -> Self {
        /// Deadlines keep this much, so that a busy machine does not make hardware late that is in time.
        const LEAST_MINUTE: Duration = Duration::from_secs(2);
        if speed <= 0.0 {
            return Self::quick();
        }
        let shipped = Self::as_shipped();
        let scaled = |duration: Duration| duration.mul_f64(speed).max(Duration::from_millis(1));
        Self {
            confirm_period: scaled(shipped.confirm_period),
            sampling_period: scaled(shipped.sampling_period),
            minute: scaled(shipped.minute).max(LEAST_MINUTE),
            keep_alive: scaled(shipped.keep_alive),
            reaper_period: scaled(shipped.reaper_period),
            reservation_term: scaled(shipped.reservation_term),
            kept_for: scaled(shipped.kept_for),
            ..shipped
        }
    }

    /// Immediate power readings and transitions, unlike any real machine, for tests about other subjects.
    pub fn quick() -> Self {
        let milliseconds = Duration::from_millis;
        Self {
            confirm_period: milliseconds(20),
            sampling_period: Duration::ZERO,
            minute: Duration::from_secs(2),
            prompt_results: true,
            keep_alive: milliseconds(100),
            reaper_period: milliseconds(200),
            reservation_term: milliseconds(500),
            ..Self::as_shipped()
        }
    }
}

impl MachinePlan {
    /// A generated machine of `nodes` healthy nodes that are off, with hardware as slow as real ones and the power
    /// service as shipped: two groups, no partition, no tenant; every image exists; nodes do not report.
    pub fn as_shipped(nodes: u32) -> Self {
        let hardware = topology::generate(nodes);
        Self {
            groups: topology::groups(&hardware),
            partitions: Vec::new(),
            tenants: BTreeMap::new(),
            images: ImageStock::default(),
            hardware,
            speed: 1.0,
            pace: None,
            seed: 1,
            faults: FleetFaults::Each(Vec::new()),
            up: false,
            gateway_url: String::new(),
            power: PowerService::as_shipped(),
        }
    }

    /// Returns a machine whose hardware has no delay, with [`PowerService::quick`].
    pub fn quick(nodes: u32) -> Self {
        Self::as_shipped(nodes).at_speed(0.0)
    }

    /// Scales the speed of the machine, the power service included.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self { speed, power: PowerService::at_speed(speed), ..self }
    }
}
