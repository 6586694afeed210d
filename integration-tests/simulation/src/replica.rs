//! The parts of a mesh, and the replicas that do the work of each.

use std::collections::BTreeMap;

use rand::{Rng, rngs::SmallRng};

/// The most replicas that a part has at a time.
pub const MOST_REPLICAS: u8 = 3;

/// A part of the mesh.
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

impl Part {
    /// The name by which it is called, and that of the host of its first replica.
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

    /// Its replica of that number, from 0.
    pub fn replica(self, number: u8) -> Replica {
        Replica { part: self, number }
    }
}

/// One of those that do the work of a part, on a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    /// Whose work it does.
    pub part: Part,
    /// From 0.
    pub number: u8,
}

impl Replica {
    /// The name of its host: that of the part, and for all but the first one a letter.
    pub fn name(self) -> String {
        match self.number {
            0 => self.part.name().to_owned(),
            number => format!("{}-{}", self.part.name(), char::from(b'a' + number)),
        }
    }

    /// The number of its host, from 1.
    pub fn host(self) -> usize {
        usize::from(self.number) * PARTS.len() + self.part as usize + 1
    }

    /// Whose host has that number.
    pub fn of_host(host: usize) -> Option<Self> {
        let index = host.checked_sub(1)?;
        let number = u8::try_from(index / PARTS.len()).ok()?;
        Some(PARTS.get(index % PARTS.len())?.replica(number))
    }
}

/// How many replicas each service has at first; none where each is alone with a database that it shares with nobody.
pub type Replicas = Option<BTreeMap<Part, u8>>;

/// Draws how many replicas each service has.
pub fn draw(chance: &mut SmallRng) -> BTreeMap<Part, u8> {
    SERVICES.into_iter().map(|part| (part, chance.random_range(1..=MOST_REPLICAS))).collect()
}
