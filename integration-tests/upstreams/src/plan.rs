//! What machine to play, and how fast.

use std::{collections::BTreeMap, time::Duration};

use proto::inventory::{Group, Hardware};
use simulator::{Faults, hardware::Pace, topology};

use crate::images::Images;

/// What machine to play, and how fast.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything that the hardware inventory lists. What is not a node is listed and does nothing.
    pub hardware: Vec<Hardware>,
    /// Groups of the inventory.
    pub groups: Vec<Group>,
    /// Partitions of the inventory.
    pub partitions: Vec<Group>,
    /// Tenants and their nodes.
    pub tenants: BTreeMap<String, Vec<String>>,
    /// What the image store and the image management service hold.
    pub images: Images,
    /// Factor on all durations of hardware and of nodes' pauses: 1 is as slow as real ones, 0 has no delay.
    pub speed: f64,
    /// Durations that all nodes have alike, instead of those drawn at random.
    pub pace: Option<Pace>,
    /// Seed of durations, of faults, and of whom lists leave out.
    pub seed: u64,
    /// How many nodes have which hardware fault from the start.
    pub faults: Faults,
    /// Whether the nodes are up at the start.
    pub up: bool,
    /// Where nodes report what they booted; empty: they do not.
    pub gateway_url: String,
    /// How the power service works.
    pub power: PowerService,
}

/// How the power service works. [`Self::as_shipped`] is the normal one; whatever is faster says so by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerService {
    /// How long it waits before it first checks whether a transition has had its effect, and between checks.
    /// Reservations are held until a check finds that all nodes are done.
    pub confirm_period: Duration,
    /// How often it reads the power of the hardware: what it says is older than that at times. Zero: it knows at once.
    pub sampling_period: Duration,
    /// What counts as a minute of `taskDeadlineMinutes`.
    pub minute: Duration,
    /// Most nodes that it can take in one transition.
    pub most_nodes: usize,
    /// Whether a node's result shows as soon as its power is read, and not only when the service checks the
    /// transition. The real one is never so prompt.
    pub prompt_results: bool,
    /// How often a worker notes that it lives. A transition whose worker missed three notes is abandoned.
    pub keep_alive: Duration,
    /// How often the service looks for abandoned transitions, which it resumes, and for expired ones.
    pub reaper_period: Duration,
    /// How long a reservation lasts that nobody renews, because the worker that made it died.
    pub reservation_term: Duration,
    /// How long a transition is kept from its creation on. One that is still open then is aborted.
    pub kept_for: Duration,
    /// Most transitions that are kept once they have ended.
    pub most_ended: usize,
    /// Letters that are left of the texts of a transition that ended; none: all. The real service cuts them where it
    /// stores too much for its database, and to nothing where it has no database.
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

    /// As shipped, with all durations multiplied by `speed`: 0.05 plays it twenty times as fast. Without any duration it
    /// is [`Self::quick`].
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

    /// One that no machine has: it knows the power of the hardware at once, and shows and ends transitions at once. For
    /// tests that are not about the power service.
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

impl Plan {
    /// The made-up machine with so many nodes that are off and have nothing wrong with them, with hardware as slow as
    /// real ones and the power service as shipped. It has its two groups, no partition and no tenant; every image
    /// exists; nodes do not report.
    pub fn as_shipped(nodes: u32) -> Self {
        let hardware = topology::generate(nodes);
        Self {
            groups: topology::groups(&hardware),
            partitions: Vec::new(),
            tenants: BTreeMap::new(),
            images: Images::default(),
            hardware,
            speed: 1.0,
            pace: None,
            seed: 1,
            faults: Faults::Each(Vec::new()),
            up: false,
            gateway_url: String::new(),
            power: PowerService::as_shipped(),
        }
    }

    /// The same machine with hardware that has no delay and the power service that is [`PowerService::quick`].
    pub fn quick(nodes: u32) -> Self {
        Self::as_shipped(nodes).at_speed(0.0)
    }

    /// The same at another speed, the power service included.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self { speed, power: PowerService::at_speed(speed), ..self }
    }
}
