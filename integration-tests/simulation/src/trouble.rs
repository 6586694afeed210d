//! The present faults, and the number of their injections. All are drawn from the seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chassis::store::disk::CommitOutcome;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::time::Instant;
use tonic::Status;

use crate::{replica::Part, trace};

/// Subject of a call to an upstream. Each has troubles of its own, as each is a service of its own in reality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// List of the nodes.
    Inventory,
    /// Power of nodes.
    PowerStatus,
    /// Actions on nodes.
    Power,
    /// Records of actions.
    PowerRecords,
    /// Boot data of nodes.
    Boot,
    /// Configuration of nodes.
    Configuration,
    /// Images.
    Images,
}

/// Every concern.
pub const CONCERNS: [Concern; 7] = [
    Concern::Inventory,
    Concern::PowerStatus,
    Concern::Power,
    Concern::PowerRecords,
    Concern::Boot,
    Concern::Configuration,
    Concern::Images,
];

/// Behaviour of an upstream for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// The upstream refuses every call: calls have no effect.
    Unavailable,
    /// The upstream fails internally: calls have no effect, and the answer does not show that.
    Fails,
    /// The upstream takes calls and never answers; they have no effect.
    Silent,
    /// The upstream asks for fewer calls for a while.
    Overloaded,
    /// The upstream carries calls out and never answers.
    LosesAnswers,
    /// The upstream carries calls out and answers that they failed.
    FailsAfterwards,
}

const MOODS: [Mood; 6] = [
    Mood::Unavailable,
    Mood::Fails,
    Mood::Silent,
    Mood::Overloaded,
    Mood::LosesAnswers,
    Mood::FailsAfterwards,
];

/// Wrong answer of the upstreams about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// The power of the node is left out of answers.
    Omitted,
    /// The power of the node is undefined.
    Undefined,
    /// The power of the node is that of a while ago.
    Stale,
    /// The power service does not know the node, and refuses whole batches with it.
    Unknown,
    /// Actions that the power service takes for the node fail, and are not performed.
    Unreachable,
    /// The node is locked.
    Locked,
    /// The configuration of the node is left out of answers.
    Unconfigurable,
    /// The word for its configuration is unknown.
    OddWord,
    /// The word for its configuration is missing.
    NoWord,
    /// The inventory does not list the node.
    Unlisted,
    /// The power service takes actions on the node and performs them later.
    Late,
    /// Reports of the node are delivered again, after a while.
    Echoes,
}

/// Every oddity.
pub const ODDITIES: [Oddity; 9] = [
    Oddity::Omitted,
    Oddity::Undefined,
    Oddity::Stale,
    Oddity::Unknown,
    Oddity::Unreachable,
    Oddity::Locked,
    Oddity::Unconfigurable,
    Oddity::OddWord,
    Oddity::NoWord,
];

/// Probabilities of faults at commits and calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Odds {
    /// Probability that a commit fails, with an error.
    pub fails: f64,
    /// Probability that a commit is kept, without an answer.
    pub unheard: f64,
    /// Probability that the host dies before a commit.
    pub dies_before: f64,
    /// Probability that the host dies right after a commit.
    pub dies_after: f64,
    /// Probability that the host is paused before a commit.
    pub pauses_before: f64,
    /// Probability that the host is paused right after a commit.
    pub pauses_after: f64,
    /// Probability that the calling host dies after an upstream has carried its call out.
    pub caller_dies: f64,
}

/// Present faults.
pub struct Trouble {
    state: Mutex<State>,
}

struct State {
    chance: SmallRng,
    odds: Odds,
    odds_since: Option<Instant>,
    moods: BTreeMap<Concern, Mood>,
    odd: BTreeMap<String, BTreeSet<Oddity>>,
    /// Whether the power service returns the ids of transitions to the wrong callers.
    swaps: bool,
    /// Whether nobody reads the watches of the run.
    unread: bool,
    /// Nodes that another client has switched right after the transitions of the power service were listed.
    rivalled: Vec<String>,
    /// Part of the kernel of boot data that the boot script server refuses.
    refused_kernel: Option<String>,
    counted: BTreeMap<String, u64>,
    /// Whether a backup was restored.
    has_restored: bool,
    /// Time since which no faults are injected.
    over: Option<Instant>,
}

impl Trouble {
    /// Creates a state without faults.
    pub fn new(seed: u64) -> Self {
        let state = State {
            chance: SmallRng::seed_from_u64(seed ^ 0x7472_6f75_626c_6573),
            odds: Odds::default(),
            odds_since: None,
            moods: BTreeMap::new(),
            odd: BTreeMap::new(),
            swaps: false,
            unread: false,
            rivalled: Vec::new(),
            refused_kernel: None,
            counted: BTreeMap::new(),
            has_restored: false,
            over: None,
        };
        Self { state: Mutex::new(state) }
    }

    /// Draws a value.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.state.lock().chance)
    }

    /// Counts an injected fault.
    pub fn count(&self, what: impl Into<String>) {
        *self.state.lock().counted.entry(what.into()).or_insert(0) += 1;
    }

    /// Counts that a backup of these parts was restored.
    pub fn count_restore(&self, parts: &[Part]) {
        self.count(format!("backup of {parts:?} restored"));
        self.state.lock().has_restored = true;
    }

    /// Returns whether a backup was restored.
    pub fn has_restored(&self) -> bool {
        self.state.lock().has_restored
    }

    /// Returns the number of injections of each fault.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        self.state.lock().counted.clone()
    }

    /// Sets the probabilities of faults.
    pub fn set_odds(&self, odds: Odds) {
        let mut state = self.state.lock();
        (state.odds, state.odds_since) = (odds, Some(Instant::now()));
    }

    /// Sets the behaviour of an upstream, or ends it.
    pub fn set_mood(&self, concern: Concern, mood: Option<Mood>) {
        let mut state = self.state.lock();
        match mood {
            Some(mood) => state.moods.insert(concern, mood),
            None => state.moods.remove(&concern),
        };
    }

    /// Draws a behaviour.
    pub fn any_mood(&self) -> Mood {
        self.draw(|chance| *MOODS.choose(chance).unwrap_or(&Mood::Silent))
    }

    /// Sets or ends an oddity of a node.
    pub fn set_odd(&self, node: &str, oddity: Oddity, odd: bool) {
        let mut state = self.state.lock();
        let oddities = state.odd.entry(node.to_owned()).or_default();
        if odd {
            oddities.insert(oddity)
        } else {
            oddities.remove(&oddity)
        };
    }

    /// Returns whether a node has the oddity.
    pub fn is(&self, node: &str, oddity: Oddity) -> bool {
        self.state.lock().odd.get(node).is_some_and(|oddities| oddities.contains(&oddity))
    }

    /// Returns the nodes with the oddity.
    pub fn odd(&self, oddity: Oddity) -> impl Iterator<Item = String> {
        let state = self.state.lock();
        let odd = state.odd.iter().filter(|(_, oddities)| oddities.contains(&oddity));
        odd.map(|(node, _)| node.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Sets whether the power service returns the ids of transitions to the wrong callers.
    pub fn set_swaps(&self, swaps: bool) {
        self.state.lock().swaps = swaps;
    }

    /// Returns whether the power service returns the ids of transitions to the wrong callers.
    pub fn swaps(&self) -> bool {
        self.state.lock().swaps
    }

    /// Sets whether nobody reads the watches of the run.
    pub fn set_unread(&self, unread: bool) {
        self.state.lock().unread = unread;
    }

    /// Waits until the watches of the run are read.
    pub async fn reading(&self) {
        while self.is_unread() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn is_unread(&self) -> bool {
        self.state.lock().unread
    }

    /// Sets the nodes that another client has switched right after transitions were listed.
    pub fn set_rivalled(&self, nodes: &[String]) {
        self.state.lock().rivalled = nodes.to_vec();
    }

    /// Draws a node that another client has switched now.
    pub fn rival(&self) -> Option<String> {
        let mut state = self.state.lock();
        let State { chance, rivalled, .. } = &mut *state;
        if rivalled.is_empty() || !chance.random_bool(0.1) {
            return None;
        }
        rivalled.choose(chance).cloned()
    }

    /// Sets the kernels whose boot data are refused.
    pub fn refuse_kernel(&self, kernel: Option<&str>) {
        self.state.lock().refused_kernel = kernel.map(str::to_owned);
    }

    /// Returns whether boot data with that kernel are refused.
    pub fn refuses(&self, kernel: &str) -> bool {
        self.state.lock().refused_kernel.as_deref().is_some_and(|refused| kernel.contains(refused))
    }

    /// Ends every trouble for good.
    pub fn end(&self) {
        let mut state = self.state.lock();
        (state.odds, state.odds_since) = (Odds::default(), Some(Instant::now()));
        state.moods.clear();
        state.odd.clear();
        state.swaps = false;
        state.unread = false;
        state.rivalled.clear();
        state.refused_kernel = None;
        state.over = Some(Instant::now());
    }

    /// Draws the downtime of a host: sometimes no longer than its next start takes, sometimes longer than people wait.
    pub fn downtime(&self) -> Duration {
        self.draw(|chance| match chance.random_range(0..4) {
            0 => Duration::from_millis(chance.random_range(10..500)),
            1 | 2 => Duration::from_millis(chance.random_range(500..8_000)),
            _ => Duration::from_secs(chance.random_range(8..60)),
        })
    }

    /// Draws the pause of a host: mostly three times as long as a lease lasts, and sometimes about as long.
    pub fn pause(&self) -> Duration {
        self.draw(|chance| match chance.random_range(0..4) {
            0 => Duration::from_millis(chance.random_range(500..9_000)),
            _ => Duration::from_millis(chance.random_range(18_000..22_000)),
        })
    }

    /// Returns the time since which commits have had no faults.
    pub fn commits_well_for(&self) -> Duration {
        let state = self.state.lock();
        let Odds { fails, unheard, dies_before, dies_after, pauses_before, pauses_after, caller_dies: _ } =
            state.odds;
        let well = fails + unheard + dies_before + dies_after + pauses_before + pauses_after == 0.0;
        let since = state.odds_since.map_or(Duration::MAX, |since| since.elapsed());
        if well { since } else { Duration::ZERO }
    }

    /// Draws the duration and the outcome of a commit.
    pub fn commit(&self, part: Part, kind: &'static str) -> (Duration, CommitOutcome) {
        let mut state = self.state.lock();
        let takes = Duration::from_micros(state.chance.random_range(300..4_000));
        let odds = state.odds;
        let fates = [
            (odds.fails, CommitOutcome::Failed, "commit fails"),
            (odds.unheard, CommitOutcome::Unheard, "commit unheard"),
            (odds.dies_before, CommitOutcome::DiesBefore, "dies before commit"),
            (odds.dies_after, CommitOutcome::DiesAfter, "dies after commit"),
            (odds.pauses_before, CommitOutcome::PausesBefore, "stopped before commit"),
            (odds.pauses_after, CommitOutcome::PausesAfter, "stopped after commit"),
        ];
        let mut draw: f64 = state.chance.random();
        for (likely, fate, name) in fates {
            if draw < likely {
                *state.counted.entry(name.to_owned()).or_insert(0) += 1;
                drop(state);
                trace::note(|| format!("{}: {kind}: {name}", part.name()));
                return (takes, fate);
            }
            draw -= likely;
        }
        (takes, CommitOutcome::Kept)
    }

    /// Draws whether the caller of an upstream dies now.
    pub fn caller_dies(&self) -> bool {
        let mut state = self.state.lock();
        let likely = state.odds.caller_dies;
        state.chance.random_bool(likely)
    }

    /// Behaves as the upstream does before it carries a call out.
    ///
    /// # Errors
    /// When it does not carry the call out.
    pub async fn before(&self, concern: Concern) -> Result<(), Status> {
        let mood = self.state.lock().moods.get(&concern).copied();
        let Some(mood) = mood else { return Ok(()) };
        let name = match (concern, mood) {
            (_, Mood::LosesAnswers | Mood::FailsAfterwards) => return Ok(()),
            (Concern::Power, Mood::Silent) => "power silent, nothing done".to_owned(),
            (Concern::Power, _) => format!("power {mood:?}"),
            (Concern::Configuration, _) => format!("configuration {mood:?}"),
            (Concern::Inventory, _) => format!("inventory {mood:?}"),
            (_, Mood::Silent) => format!("{concern:?} silent"),
            _ => format!("{concern:?} {mood:?}"),
        };
        self.count(name);
        match mood {
            Mood::Unavailable => Err(Status::unavailable("down for maintenance")),
            Mood::Fails => Err(Status::internal("something broke")),
            Mood::Overloaded => Err(Status::resource_exhausted("too many requests")),
            Mood::Silent | Mood::LosesAnswers | Mood::FailsAfterwards => std::future::pending().await,
        }
    }

    /// Behaves as the upstream does after it carried a call out.
    ///
    /// # Errors
    /// When it answers that it did not.
    pub async fn after(&self, concern: Concern) -> Result<(), Status> {
        let mood = self.state.lock().moods.get(&concern).copied();
        match mood {
            Some(Mood::LosesAnswers) => {
                self.count(format!("{concern:?} answer lost"));
                std::future::pending().await
            }
            Some(Mood::FailsAfterwards) => {
                self.count(format!("{concern:?} done, said to have failed"));
                Err(Status::internal("something broke afterwards"))
            }
            _ => Ok(()),
        }
    }
}
