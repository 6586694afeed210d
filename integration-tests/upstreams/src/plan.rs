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

/// How the power service works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerService {
    /// How often it looks whether a transition has had its effect. Reservations are held until such a look finds that
    /// all nodes are done.
    pub confirm_period: Duration,
    /// How often it reads the power of the hardware: what it says is older than that at times. Zero: it knows at once.
    pub sampling_period: Duration,
    /// What counts as a minute of `taskDeadlineMinutes`.
    pub minute: Duration,
    /// Most nodes that it can take in one transition.
    pub most_nodes: usize,
    /// Whether a node's result shows as soon as its power is read, and not only when the service looks at the
    /// transition.
    pub prompt_results: bool,
}

impl PowerService {
    /// The real one, with its durations multiplied by `speed`, but never so short that it does nothing else than look.
    pub fn at_speed(speed: f64) -> Self {
        Self {
            confirm_period: Duration::from_secs(15).mul_f64(speed).max(Duration::from_millis(20)),
            sampling_period: Duration::ZERO,
            minute: Duration::from_secs(60).mul_f64(speed).max(Duration::from_secs(2)),
            most_nodes: 2500,
            prompt_results: true,
        }
    }
}

impl Plan {
    /// The made-up machine with so many nodes that are off and have nothing wrong with them, without any delay. It has
    /// its two groups, no partition and no tenant; every image exists; nodes do not report.
    pub fn generated(nodes: u32) -> Self {
        let hardware = topology::generate(nodes);
        Self {
            groups: topology::groups(&hardware),
            partitions: Vec::new(),
            tenants: BTreeMap::new(),
            images: Images::default(),
            hardware,
            speed: 0.0,
            pace: None,
            seed: 1,
            faults: Faults::Each(Vec::new()),
            up: false,
            gateway_url: String::new(),
            power: PowerService::at_speed(0.0),
        }
    }

    /// The same at another speed, the power service included.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self { speed, power: PowerService::at_speed(speed), ..self }
    }
}
