//! The parts of a mesh, and the replicas of each.

use std::collections::BTreeMap;

use rand::{Rng, rngs::SmallRng};

/// Most replicas of a part at a time.
pub const MOST_REPLICAS: u8 = 3;

/// Part of the mesh.
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

/// Parts that can die: the services.
pub const SERVICES: [Part; 5] =
    [Part::Registry, Part::Sessions, Part::Evaluator, Part::Power, Part::Configuration];

impl Part {
    /// Returns the name of the part, which is that of the host of its first replica.
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

    /// Returns the replica with that number, from 0.
    pub fn replica(self, number: u8) -> Replica {
        Replica { part: self, number }
    }
}

/// Replica of a part, on a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// Part of the replica.
    pub part: Part,
    /// Number of the replica, from 0.
    pub number: u8,
}

impl Replica {
    /// Returns the name of its host: that of the part, with a letter for all but the first one.
    pub fn name(self) -> String {
        match self.number {
            0 => self.part.name().to_owned(),
            number => format!("{}-{}", self.part.name(), char::from(b'a' + number)),
        }
    }

    /// Returns the number of its host, from 1.
    pub fn host(self) -> usize {
        usize::from(self.number) * PARTS.len() + self.part as usize + 1
    }

    /// Returns the replica of the host with that number.
    pub fn of_host(host: usize) -> Option<Self> {
        let index = host.checked_sub(1)?;
        let number = u8::try_from(index / PARTS.len()).ok()?;
        Some(PARTS.get(index % PARTS.len())?.replica(number))
    }
}

/// Number of replicas that each service has at first; `None` where each service has one, with a database of its own.
pub type Replicas = Option<BTreeMap<Part, u8>>;

/// Draws the number of replicas of each service.
pub fn draw(chance: &mut SmallRng) -> BTreeMap<Part, u8> {
    SERVICES.into_iter().map(|part| (part, chance.random_range(1..=MOST_REPLICAS))).collect()
}
