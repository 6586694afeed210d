//! Injected faults: their kinds, their notation, and the choice of faulty nodes.

use std::str::FromStr;

use rand::{SeedableRng, rngs::SmallRng, seq::SliceRandom};

/// Kind of a node's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HardwareFault {
    /// The node never turns on.
    StuckOff,
    /// A soft power-off has no effect; a forced one works.
    IgnoresGracefulOff,
    /// The node boots but never reports.
    NeverReports,
    /// The configuration of the node always fails.
    ConfigurationFails,
}

impl HardwareFault {
    /// All kinds, in the order in which a fraction is spread over them.
    pub const ALL: [Self; 4] =
        [Self::StuckOff, Self::IgnoresGracefulOff, Self::NeverReports, Self::ConfigurationFails];

    /// Word in settings, flags and the simulation API.
    pub fn word(self) -> &'static str {
        match self {
            Self::StuckOff => "stuck-off",
            Self::IgnoresGracefulOff => "ignores-graceful-off",
            Self::NeverReports => "never-reports",
            Self::ConfigurationFails => "configuration-fails",
        }
    }

    /// Returns the kind with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.word() == word)
    }
}

/// Reason why faults cannot be injected.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FaultsError {
    /// An unknown kind of fault.
    #[error(
        "{0:?} is not a fault; the faults are {known}",
        known = HardwareFault::ALL.map(HardwareFault::word).join(", ")
    )]
    UnknownFault(String),
    /// Text that is neither a fraction nor `name=number`.
    #[error("{0:?} is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01")]
    NotAmount(String),
    /// Amount that is neither a count nor a fraction.
    #[error("{fault}={amount:?}: must be a count of nodes or a fraction such as 0.1")]
    BadAmount {
        /// Kind of the amount.
        fault: &'static str,
        /// Amount as it was written.
        amount: String,
    },
    /// More faults than nodes.
    #[error("{wanted} nodes are to have a fault and the fleet has {nodes}")]
    TooMany {
        /// Sum over all kinds.
        wanted: usize,
        /// Size of the fleet.
        nodes: usize,
    },
}

/// Amounts of faulty nodes by kind of fault.
///
/// The text form is a fraction of the fleet (`0.05`), spread evenly over all kinds, or a list of kinds with a count
/// or a fraction each (`stuck-off=2,never-reports=0.01`). In a list, a number with a point is a fraction.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetFaults {
    /// Fraction of the fleet, spread over all kinds in turn.
    Spread(f64),
    /// Amount for each kind.
    Each(Vec<(HardwareFault, FaultAmount)>),
}

/// Amount of faulty nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultAmount {
    /// Number of nodes.
    Count(usize),
    /// Fraction of the fleet from 0 to 1, rounded up: a fraction above zero always has an effect.
    Fraction(f64),
}

impl FaultAmount {
    fn of(self, nodes: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Fraction(fraction) => (fraction * nodes as f64).ceil() as usize,
        }
    }
}

impl FromStr for FleetFaults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::Each(Vec::new()));
        }
        match fraction(text) {
            Some(fraction) => Ok(Self::Spread(fraction)),
            None => text.split(',').map(one).collect::<Result<_, _>>().map(Self::Each),
        }
    }
}

fn one(item: &str) -> Result<(HardwareFault, FaultAmount), FaultsError> {
    let (name, amount) = item.split_once('=').ok_or_else(|| unknown_or_bare(item))?;
    let fault = HardwareFault::from_word(name.trim())
        .ok_or_else(|| FaultsError::UnknownFault(name.trim().to_owned()))?;
    let amount = amount.trim();
    let parsed = match amount.contains('.') {
        true => fraction(amount).map(FaultAmount::Fraction),
        false => amount.parse().ok().map(FaultAmount::Count),
    };
    let bad = || FaultsError::BadAmount { fault: fault.word(), amount: amount.to_owned() };
    parsed.map(|amount| (fault, amount)).ok_or_else(bad)
}

fn unknown_or_bare(item: &str) -> FaultsError {
    match HardwareFault::from_word(item.trim()) {
        Some(fault) => FaultsError::BadAmount { fault: fault.word(), amount: String::new() },
        None => FaultsError::NotAmount(item.trim().to_owned()),
    }
}

fn fraction(text: &str) -> Option<f64> {
    text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction))
}

impl FleetFaults {
    /// Returns the fault of every node of a fleet, by position. The same seed picks the same nodes, and no node gets
    /// two faults.
    pub fn assign(&self, nodes: usize, seed: u64) -> Result<Vec<Option<HardwareFault>>, FaultsError> {
        let wanted = self.count(nodes);
        if wanted > nodes {
            return Err(FaultsError::TooMany { wanted, nodes });
        }
        let faults = self.list(nodes);
        let mut order: Vec<usize> = (0..nodes).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(seed));
        let mut assigned = vec![None; nodes];
        for (index, fault) in order.into_iter().zip(faults) {
            assigned[index] = Some(fault);
        }
        Ok(assigned)
    }

    /// Returns the number of faulty nodes in a fleet of that size.
    fn count(&self, nodes: usize) -> usize {
        match self {
            Self::Spread(fraction) => FaultAmount::Fraction(*fraction).of(nodes),
            Self::Each(kinds) => {
                kinds.iter().fold(0, |count, (_, amount)| count.saturating_add(amount.of(nodes)))
            }
        }
    }

    /// Returns the kinds of all faults, one for each faulty node.
    fn list(&self, nodes: usize) -> Vec<HardwareFault> {
        match self {
            Self::Spread(_) => HardwareFault::ALL.into_iter().cycle().take(self.count(nodes)).collect(),
            Self::Each(kinds) => kinds
                .iter()
                .flat_map(|(fault, amount)| std::iter::repeat_n(*fault, amount.of(nodes)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;

    #[test]
    fn takes_a_fraction_or_a_list() {
        let texts = [
            "",
            "0",
            "0.05",
            "1",
            "stuck-off=2,ignores-graceful-off=3,never-reports=1,configuration-fails=2",
            "stuck-off=0.1, never-reports = 4",
            "1.5",
            "-0.1",
            "NaN",
            "stuck-on=2",
            "stuck-off=2,reports-never=1",
            "stuck-off",
            "lots",
            "stuck-off=few",
            "stuck-off=-1",
            "stuck-off=1.5",
            "stuck-off=1,,",
        ];
        let seen: String = texts
            .map(|text| match text.parse::<FleetFaults>() {
                Ok(faults) => format!("{text:?}: {faults:?}\n"),
                Err(error) => format!("{text:?}: error: {error}\n"),
            })
            .concat();
        expect![[r#"
            "": Each([])
            "0": Spread(0.0)
            "0.05": Spread(0.05)
            "1": Spread(1.0)
            "stuck-off=2,ignores-graceful-off=3,never-reports=1,configuration-fails=2": Each([(StuckOff, Count(2)), (IgnoresGracefulOff, Count(3)), (NeverReports, Count(1)), (ConfigurationFails, Count(2))])
            "stuck-off=0.1, never-reports = 4": Each([(StuckOff, Fraction(0.1)), (NeverReports, Count(4))])
            "1.5": error: "1.5" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
            "-0.1": error: "-0.1" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
            "NaN": error: "NaN" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
            "stuck-on=2": error: "stuck-on" is not a fault; the faults are stuck-off, ignores-graceful-off, never-reports, configuration-fails
            "stuck-off=2,reports-never=1": error: "reports-never" is not a fault; the faults are stuck-off, ignores-graceful-off, never-reports, configuration-fails
            "stuck-off": error: stuck-off="": must be a count of nodes or a fraction such as 0.1
            "lots": error: "lots" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
            "stuck-off=few": error: stuck-off="few": must be a count of nodes or a fraction such as 0.1
            "stuck-off=-1": error: stuck-off="-1": must be a count of nodes or a fraction such as 0.1
            "stuck-off=1.5": error: stuck-off="1.5": must be a count of nodes or a fraction such as 0.1
            "stuck-off=1,,": error: "" is neither a fraction from 0 to 1 nor a list such as stuck-off=2,never-reports=0.01
        "#]].assert_eq(&seen);
    }

    fn counts(text: &str, nodes: usize) -> String {
        let faults: FleetFaults = text.parse().expect("the test's own text");
        match faults.assign(nodes, 1) {
            Ok(assigned) => {
                let mut counts = BTreeMap::new();
                assigned.iter().flatten().for_each(|fault| *counts.entry(fault.word()).or_insert(0) += 1);
                format!("{text} of {nodes}: {counts:?}\n")
            }
            Err(error) => format!("{text} of {nodes}: error: {error}\n"),
        }
    }

    #[test]
    fn assigns_the_requested_number_of_faults() {
        let rows = [
            ("0", 96),
            ("0.05", 96),
            ("0.05", 10_000),
            ("0.001", 96),
            ("1", 8),
            ("stuck-off=2,never-reports=0.1", 96),
            ("stuck-off=5,never-reports=4", 8),
            ("stuck-off=18446744073709551615", 8),
        ];
        expect![[r#"
            0 of 96: {}
            0.05 of 96: {"configuration-fails": 1, "ignores-graceful-off": 1, "never-reports": 1, "stuck-off": 2}
            0.05 of 10000: {"configuration-fails": 125, "ignores-graceful-off": 125, "never-reports": 125, "stuck-off": 125}
            0.001 of 96: {"stuck-off": 1}
            1 of 8: {"configuration-fails": 2, "ignores-graceful-off": 2, "never-reports": 2, "stuck-off": 2}
            stuck-off=2,never-reports=0.1 of 96: {"never-reports": 10, "stuck-off": 2}
            stuck-off=5,never-reports=4 of 8: error: 9 nodes are to have a fault and the fleet has 8
            stuck-off=18446744073709551615 of 8: error: 18446744073709551615 nodes are to have a fault and the fleet has 8
        "#]].assert_eq(&rows.map(|(text, nodes)| counts(text, nodes)).concat());
    }

    #[test]
    fn the_seed_decides_which_nodes_get_them() {
        let faults: FleetFaults = "0.05".parse().expect("a fraction");
        let of = |seed| faults.assign(96, seed).expect("the fleet is large enough");
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
