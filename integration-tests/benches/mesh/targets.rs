//! Rows, their goals, and the figures of the original.

use upstreams::MachinePlan;

use crate::samples::median;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetterDirection {
    /// Times, memory, calls.
    Lower,
    /// Rates, and shares of something good.
    Higher,
}

/// The power service that a row is measured with. Figures that wait for one can be compared only where its timing was the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerSource {
    /// No power changes.
    None,
    /// The simulator, without any protocol of a power service.
    Simulated,
    /// PCS with the timing that it is shipped with, played or real.
    AsShipped,
    /// PCS as shipped, ten times as fast.
    TenTimes,
    /// PCS with immediate readings and results, unlike any real one.
    Quick,
    /// BMCs that are driven directly, without any power service.
    Redfish,
}

impl PowerSource {
    /// Name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Simulated => "simulated",
            Self::AsShipped => "played PCS, as shipped",
            Self::TenTimes => "played PCS, as shipped x 10",
            Self::Quick => "played PCS, quick",
            Self::Redfish => "emulated BMCs",
        }
    }

    /// The systems around so many nodes, with hardware and a power service of this speed.
    ///
    /// # Panics
    /// When the row has no played power service.
    pub fn plan(self, nodes: u32) -> MachinePlan {
        match self {
            Self::AsShipped => MachinePlan::as_shipped(nodes),
            Self::TenTimes => MachinePlan::as_shipped(nodes).at_speed(0.1),
            Self::Quick => MachinePlan::quick(nodes),
            Self::None | Self::Simulated | Self::Redfish => panic!("nobody plays {}", self.word()),
        }
    }
}

/// The figure of a row that stands for all its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypicalFigure {
    /// The middle value.
    Median,
    /// The mean, for values that fall into a few groups, such as multiples of a period.
    Mean,
}

impl TypicalFigure {
    /// Returns the name of the figure.
    pub fn word(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
        }
    }
}

/// The original's best and worst runs, and their power service.
#[derive(Clone, Copy, Debug)]
pub struct OriginalFigure {
    /// The best of its runs.
    pub best: f64,
    /// The worst.
    pub worst: f64,
    /// The power service of its runs.
    pub power: PowerSource,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct RowTarget {
    /// Name. The part after the dot distinguishes figures of the same measurement.
    pub id: &'static str,
    /// Subject of the measurement.
    pub what: &'static str,
    /// Unit of every figure of the row.
    pub unit: &'static str,
    /// Which way is better.
    pub better: BetterDirection,
    /// Limit that holds on any machine, if there is one.
    pub floor: Option<f64>,
    /// Goal for a release.
    pub goal: f64,
    /// Power service of the measurement.
    pub power: PowerSource,
    /// Which figure is compared with floor and goal.
    pub typical: TypicalFigure,
    /// Figures of BOS 2.50.0 with its default periods, complete and on two busy cores; where a period of 1 s was
    /// better, the best is of that. Of hosts: what Metal3 has published, on larger machines.
    original: Option<OriginalFigure>,
}

impl RowTarget {
    /// Returns whether `words` pick the row: one of them is its id, or the beginning of its id up to a dot. An empty
    /// list picks every row.
    pub fn is_picked(&self, words: &[String]) -> bool {
        let names = |word: &String| {
            let rest = self.id.strip_prefix(word.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        words.is_empty() || words.iter().any(names)
    }

    /// Figures of the original with the same power service; others cannot be compared.
    pub fn original(&self) -> Option<OriginalFigure> {
        self.original.filter(|original| original.power == self.power)
    }

    /// The figure that stands for `values`.
    pub fn typical(&self, values: &[f64]) -> f64 {
        match self.typical {
            TypicalFigure::Median => median(values),
            TypicalFigure::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
        }
    }

    /// Returns the factor by which a value is worse than `bar`; below 1 it is better.
    pub fn distance(&self, value: f64, bar: f64) -> f64 {
        match self.better {
            BetterDirection::Lower => value / bar,
            BetterDirection::Higher => bar / value,
        }
    }

    /// Returns whether `value` is at least as good as `bar`.
    pub fn meets(&self, value: f64, bar: f64) -> bool {
        match self.better {
            BetterDirection::Lower => value <= bar,
            BetterDirection::Higher => value >= bar,
        }
    }
}

/// Returns the row with that id.
///
/// # Panics
/// When there is none, which a test of the measurements would find at once.
pub fn target(id: &str) -> &'static RowTarget {
    TARGETS.iter().find(|target| target.id == id).unwrap_or_else(|| panic!("{id} is no target"))
}

const fn lower(id: &'static str, what: &'static str, unit: &'static str, goal: f64) -> RowTarget {
    let (better, power, typical) = (BetterDirection::Lower, PowerSource::None, TypicalFigure::Median);
    RowTarget { id, what, unit, better, floor: None, goal, power, typical, original: None }
}

const fn higher(id: &'static str, what: &'static str, unit: &'static str, goal: f64) -> RowTarget {
    RowTarget { better: BetterDirection::Higher, ..lower(id, what, unit, goal) }
}

impl RowTarget {
    const fn floor(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    const fn with(self, power: PowerSource) -> Self {
        Self { power, ..self }
    }

    const fn mean(self) -> Self {
        Self { typical: TypicalFigure::Mean, ..self }
    }

    /// Adds the figures of the original, with the power service that it was measured with.
    const fn originally(self, best: f64, worst: f64, power: PowerSource) -> Self {
        Self { original: Some(OriginalFigure { best, worst, power }), ..self }
    }
}

/// Rows `T` and, of bare-metal hosts, `H` are Reveille's promises; rows `O` repeat measurements of the original. A list, filter, call or footprint
/// has to be ten times better than its figure, a bulk patch, which is durable here, twice, and a boot has to take no
/// longer than its hardware.
pub const TARGETS: &[RowTarget] = &[
    lower("T1", "reboot of 10,000 without hardware delay, created to complete", "s", 10.0)
        .with(PowerSource::Simulated)
        .floor(20.0),
    lower("T1.scale", "CPU of a reboot per node, 10,000 nodes over 2,500", "x", 1.3)
        .with(PowerSource::Simulated)
        .floor(1.3),
    lower("T2", "reboot of 100,000 without hardware delay, created to complete", "s", 100.0)
        .with(PowerSource::Simulated)
        .floor(240.0),
    lower("T3.p50", "added to the hardware's time, per node of a realistic reboot", "s", 0.2)
        .with(PowerSource::Simulated),
    lower("T3.p99", "the same, 99th percentile", "s", 1.0).with(PowerSource::Simulated).floor(2.0),
    lower("T3.max", "the same, slowest node", "s", 5.0).with(PowerSource::Simulated),
    lower("T4.p50", "from a node seen off to the call that switches it on, 200 nodes/s", "ms", 25.0)
        .with(PowerSource::Simulated),
    lower("T4.p99", "the same, 99th percentile", "ms", 150.0).with(PowerSource::Simulated).floor(500.0),
    lower("T4b.p99", "the same, 10,000 nodes at once, 99th percentile", "s", 2.0)
        .with(PowerSource::Simulated)
        .floor(5.0),
    higher("T5", "bulk patches, durable, until a watcher has seen them", "/s", 30_000.0).floor(10_000.0),
    higher("T6", "reports of single nodes over gRPC, 256 at a time", "/s", 5_000.0).floor(2_000.0),
    lower("T6.p99", "the same, 99th percentile of the answers", "ms", 100.0),
    lower("T6.burst", "10,000 reports at once until the last is answered", "s", 3.0),
    lower("T7.first", "list of 100,000 over gRPC, first message", "ms", 20.0).with(PowerSource::Quick),
    lower("T7.total", "list of 100,000 over gRPC, whole", "s", 1.0).with(PowerSource::Quick).floor(4.0),
    lower("T7.memory", "growth of the server's memory during such lists", "MiB", 32.0)
        .with(PowerSource::Quick),
    lower("T7.storm", "memory under 20 lists of 100,000 at a time, after a boot", "MiB", 512.0)
        .with(PowerSource::Quick),
    lower("T7b.first", "list of 100,000 over REST, first byte", "ms", 50.0).with(PowerSource::Quick),
    lower("T7b.total", "list of 100,000 over REST, whole", "s", 1.5).with(PowerSource::Quick).floor(8.0),
    lower("T7c.session", "1,000 of 100,000 by session, 99th percentile", "ms", 10.0)
        .with(PowerSource::Quick)
        .floor(100.0),
    lower("T7c.status", "1,000 of 100,000 by status, 99th percentile", "ms", 10.0)
        .with(PowerSource::Quick)
        .floor(100.0),
    higher("T8", "status decisions on one core", "/s", 5e6).floor(2e6),
    lower("T9", "memory per component at 100,000, above an empty server", "B", 1024.0)
        .with(PowerSource::Quick)
        .floor(2048.0),
    lower("T9.fresh", "the same after a restart", "B", 1024.0).with(PowerSource::Quick).floor(2048.0),
    lower("T10.idle", "memory per idle watch, 10,000 of them", "KiB", 64.0),
    lower("T10.p99", "1,000 watches of 100 changes/s, from written to received", "ms", 500.0),
    lower("T11.post", "creation of a session of 10,000", "ms", 50.0).with(PowerSource::Simulated),
    lower("T11", "session of 10,000, created to running", "s", 1.0).with(PowerSource::Simulated).floor(3.0),
    lower("T11b", "session of 100,000, created to running", "s", 6.0)
        .with(PowerSource::Simulated)
        .floor(20.0),
    lower("T12", "cold start to ready with 100,000 components", "s", 5.0)
        .with(PowerSource::Quick)
        .floor(15.0),
    lower("T12b", "kill of a replica until its nodes are served elsewhere", "s", 10.0)
        .with(PowerSource::Quick)
        .floor(30.0),
    lower("T12b.handover", "end of a replica in order until others hold its work", "s", 1.0)
        .with(PowerSource::Quick),
    lower("T12c", "restart of PostgreSQL until writes are taken again", "s", 5.0).floor(15.0),
    lower("T13.p50", "what the gateway adds to one GET at 1,000/s", "ms", 0.2),
    lower("T13.p99", "the same, 99th percentile", "ms", 1.0).floor(5.0),
    higher("T13.list", "speed of a list over REST, compared with gRPC", "%", 50.0).with(PowerSource::Quick),
    lower("T14", "CPU of an idle mesh with 100,000 components", "% of a core", 1.0)
        .with(PowerSource::Quick)
        .floor(5.0),
    lower("T14.scale", "the same, over that with 25,000", "x", 1.3).with(PowerSource::Quick),
    lower("T14.calls", "calls of the systems around it, idle", "/s", 1.0).with(PowerSource::Quick),
    lower("T14.commits", "database transactions, idle", "/s", 1.0).with(PowerSource::Quick),
    lower("T15", "upstream calls of a reboot of 10,000 but looks at power, over the fewest", "x", 1.5)
        .with(PowerSource::Quick)
        .floor(3.0),
    lower("T15.looks", "looks at power per 5 s and 2,500 nodes", "", 1.0)
        .with(PowerSource::TenTimes)
        .floor(3.0),
    higher("T16", "repeated reports of running nodes over REST, 256 at a time", "/s", 5_000.0).floor(1_700.0),
    lower("T16.commits", "database transactions of such reports", "/s", 1.0),
    higher("T17.goodput", "work done under ten times as many callers", "%", 80.0),
    lower("T17.recovery", "until answers are as quick as before", "s", 10.0),
    lower("T18.list", "list of 1,000,000 over gRPC", "s", 15.0),
    lower("T18.start", "cold start with 1,000,000 components", "s", 40.0),
    lower("T18.memory", "memory with 1,000,000 components", "MiB", 1229.0),
    lower("H1", "1,000 hosts without hardware delay, created to available", "s", 5.0).originally(
        410.0,
        410.0,
        PowerSource::None,
    ),
    lower("H1.10k", "10,000 such hosts", "s", 40.0),
    lower("H2", "requests to the backend of 1,000 hosts in 10 s of rest", "", 1.0).originally(
        570.0,
        570.0,
        PowerSource::None,
    ),
    lower("H3.p50", "from a wish for a host to the decision about it, 200/s, seen by a watcher", "ms", 25.0),
    lower("H3.p99", "the same, 99th percentile", "ms", 150.0),
    lower("H4", "memory per host without inventory, of the mesh and the rack together", "KiB", 4.0),
    lower("H5", "GET of all hosts over the Kubernetes API, over a GET of as many components", "x", 1.0),
    lower("H5.watch", "all hosts to a new watcher of the Kubernetes API, over the same", "x", 1.0),
    higher("D1", "signs of life of single devices, 256 at a time", "/s", 10_000.0),
    lower("D1.commits", "database transactions of such signs", "/s", 1.0),
    lower("D2", "CPU of polls of 100,000 devices, each every two minutes", "% of a core", 5.0),
    higher("D3", "status documents of devices over REST, 64 at a time, durable", "/s", 2_000.0),
    lower("D3.p99", "the same, 99th percentile", "ms", 100.0),
    lower("D4.first", "list of 100,000 devices, first message", "ms", 50.0),
    lower("D4", "list of 100,000 devices, whole", "s", 3.0),
    lower("D5", "1,000 of 100,000 devices by a status, 99th percentile", "ms", 10.0),
    lower("D6", "new template of a fleet of 100,000, until all are rendered", "s", 20.0),
    lower("D7", "reports of 50,000 devices at once, until the last is taken", "s", 30.0),
    lower("D8", "memory per device beyond its spec", "KiB", 2.5),
    lower("O1.1k", "GET of all 1,000 components", "s", 0.008).originally(0.08, 0.08, PowerSource::None),
    lower("O1", "GET of all 10,000 components", "s", 0.033).originally(0.33, 0.71, PowerSource::None),
    lower("O1.50k", "GET of all 50,000 components", "s", 0.17).originally(1.7, 2.9, PowerSource::None),
    lower("O2.1k", "GET of all 1,000 in pages of 2,800", "s", 0.005).originally(
        0.05,
        0.05,
        PowerSource::None,
    ),
    lower("O2", "GET of all 10,000 in pages of 2,800", "s", 0.06).originally(0.6, 1.0, PowerSource::None),
    lower("O2.50k", "GET of all 50,000 in pages of 2,800", "s", 0.5).originally(5.0, 6.6, PowerSource::None),
    lower("O3.1k", "GET of a session's tenth of 1,000", "s", 0.002).originally(0.02, 0.02, PowerSource::None),
    lower("O3", "GET of a session's tenth of 10,000", "s", 0.014).originally(0.14, 0.14, PowerSource::None),
    lower("O3.50k", "GET of a session's tenth of 50,000", "s", 0.067).originally(
        0.67,
        0.67,
        PowerSource::None,
    ),
    lower("O3.none1k", "GET of a session of none of 1,000", "s", 0.002).originally(
        0.02,
        0.02,
        PowerSource::None,
    ),
    lower("O3.none", "GET of a session of none of 10,000", "s", 0.018).originally(
        0.18,
        0.18,
        PowerSource::None,
    ),
    lower("O3.none50k", "GET of a session of none of 50,000", "s", 0.056).originally(
        0.56,
        0.56,
        PowerSource::None,
    ),
    higher("O4.get", "single GETs, 8 at a time, 10,000 components", "/s", 5_200.0).originally(
        520.0,
        520.0,
        PowerSource::None,
    ),
    higher("O4.get50k", "single GETs, 8 at a time, 50,000 components", "/s", 5_830.0).originally(
        583.0,
        583.0,
        PowerSource::None,
    ),
    higher("O4.patch", "single PATCHes, 8 at a time, 10,000 components", "/s", 4_910.0).originally(
        491.0,
        491.0,
        PowerSource::None,
    ),
    higher("O4.patch50k", "single PATCHes, 8 at a time, 50,000 components", "/s", 5_230.0).originally(
        523.0,
        523.0,
        PowerSource::None,
    ),
    lower("O5", "bulk PATCH of 2,000 of 10,000 over REST", "s", 0.08).originally(
        0.16,
        0.38,
        PowerSource::None,
    ),
    lower("O5.50k", "bulk PATCH of 2,000 of 50,000 over REST", "s", 0.085).originally(
        0.17,
        0.17,
        PowerSource::None,
    ),
    lower("O6.1k", "session of 1,000 over REST, created to running", "s", 0.16)
        .with(PowerSource::Quick)
        .originally(1.6, 14.7, PowerSource::Quick),
    lower("O6", "session of 10,000 over REST, created to running", "s", 0.54)
        .with(PowerSource::Quick)
        .originally(5.4, 15.0, PowerSource::Quick),
    lower("O6.30k", "session of 30,000 over REST, created to running", "s", 1.4)
        .with(PowerSource::Quick)
        .originally(14.0, 18.0, PowerSource::Quick),
    lower("O7.1k", "boot of 1,000, on after 10 s, reported 10 s later, real protocols", "s", 22.0)
        .with(PowerSource::Quick)
        .originally(26.5, 89.7, PowerSource::Quick),
    lower("O7", "such a boot of 10,000", "s", 22.0).with(PowerSource::Quick).originally(
        58.0,
        117.0,
        PowerSource::Quick,
    ),
    lower("O7.30k", "such a boot of 30,000", "s", 22.0).with(PowerSource::Quick).originally(
        171.0,
        181.0,
        PowerSource::Quick,
    ),
    lower("O8.1k", "shutdown of 1,000, off after 10 s, real protocols", "s", 12.0)
        .with(PowerSource::Quick)
        .originally(12.7, 89.6, PowerSource::Quick),
    lower("O8", "such a shutdown of 10,000", "s", 12.0).with(PowerSource::Quick).originally(
        30.0,
        119.0,
        PowerSource::Quick,
    ),
    lower("O8.30k", "such a shutdown of 30,000", "s", 12.0).with(PowerSource::Quick).originally(
        125.0,
        125.0,
        PowerSource::Quick,
    ),
    lower("O9.1k", "CPU of everything for such a boot of 1,000", "s", 0.5)
        .with(PowerSource::Quick)
        .originally(5.0, 5.0, PowerSource::Quick),
    lower("O9", "CPU of everything for such a boot of 10,000", "s", 4.5).with(PowerSource::Quick).originally(
        45.0,
        49.0,
        PowerSource::Quick,
    ),
    lower("O9.30k", "CPU of everything for such a boot of 30,000", "s", 24.6)
        .with(PowerSource::Quick)
        .originally(246.0, 246.0, PowerSource::Quick),
    lower("O10", "CPU in 15 s while 10,000 wait for configuration", "s", 0.37)
        .with(PowerSource::Quick)
        .originally(3.7, 3.7, PowerSource::Quick),
    lower("O10.calls", "calls of the systems around it in a minute of that", "", 37.0)
        .with(PowerSource::Quick)
        .originally(376.0, 376.0, PowerSource::Quick),
    lower("O11.1k", "memory with 1,000 components after a boot", "MiB", 80.0)
        .with(PowerSource::Quick)
        .originally(800.0, 900.0, PowerSource::Quick),
    lower("O11", "memory with 10,000 components after a boot", "MiB", 130.0)
        .with(PowerSource::Quick)
        .originally(1_300.0, 1_500.0, PowerSource::Quick),
    lower("O11.50k", "memory with 50,000 components", "MiB", 190.0).originally(
        1_900.0,
        1_900.0,
        PowerSource::None,
    ),
    lower("O12", "reboot of three nodes with 6 s of hardware, begun at any time between readings", "s", 33.0)
        .with(PowerSource::AsShipped)
        .mean()
        .originally(152.0, 152.0, PowerSource::AsShipped),
    lower("O12.redfish", "the same with profile `redfish`", "s", 10.0).with(PowerSource::Redfish).mean(),
];
