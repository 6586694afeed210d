//! What goes wrong, and how often it did. Everything is drawn from the seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chassis::simulation::Fate;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::time::Instant;
use tonic::Status;

use crate::{replica::Part, trace};

/// What an upstream is asked for. Each has troubles of its own, as each is a service of its own in reality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Which nodes there are.
    Inventory,
    /// Whether nodes are on.
    PowerStatus,
    /// Switching nodes.
    Power,
    /// Finding what was switched.
    PowerRecords,
    /// What nodes boot.
    Boot,
    /// How nodes are configured.
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

/// How an upstream behaves for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It refuses every call: nothing happens.
    Unavailable,
    /// It fails within: nothing happens, and nobody can tell.
    Fails,
    /// It takes calls and never answers; nothing happens.
    Silent,
    /// It wants to be left alone for a while.
    Overloaded,
    /// It does what it is asked and never answers.
    LosesAnswers,
    /// It does what it is asked and says that it failed.
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

/// What the upstreams say of a node that is not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// Its power is left out of answers.
    Omitted,
    /// Its power is not known.
    Undefined,
    /// Its power is what it was a while ago.
    Stale,
    /// The power service does not know it, and refuses whole batches with it.
    Unknown,
    /// What the power service takes for it fails, and is not done.
    Unreachable,
    /// It is locked.
    Locked,
    /// Its configuration is left out of answers.
    Unconfigurable,
    /// The word for its configuration is none that anybody knows.
    OddWord,
    /// There is no word for its configuration.
    NoWord,
    /// The inventory does not list it.
    Unlisted,
    /// The power service takes what it is asked for it and performs it later.
    Late,
    /// Its reports are delivered once more, after a while.
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

/// How likely commits go wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Odds {
    /// They fail, and say so.
    pub fails: f64,
    /// They are kept, and nobody hears of it.
    pub unheard: f64,
    /// The host dies before.
    pub dies_before: f64,
    /// The host dies right after.
    pub dies_after: f64,
    /// The host is stopped for a while before.
    pub pauses_before: f64,
    /// The host is stopped for a while right after.
    pub pauses_after: f64,
    /// The host that called dies after an upstream has done what it was asked.
    pub caller_dies: f64,
}

/// Everything that is wrong now.
pub struct Trouble {
    state: Mutex<State>,
}

struct State {
    chance: SmallRng,
    odds: Odds,
    odds_since: Option<Instant>,
    moods: BTreeMap<Concern, Mood>,
    odd: BTreeMap<String, BTreeSet<Oddity>>,
    /// The power service gives the ids of transitions to the wrong callers.
    swaps: bool,
    /// Boot data that the boot script server refuses: those whose kernel contains this.
    refused_kernel: Option<String>,
    counted: BTreeMap<String, u64>,
    /// Whether a backup was restored.
    has_restored: bool,
    /// Since when nothing is injected any more.
    over: Option<Instant>,
}

impl Trouble {
    /// No trouble yet.
    pub fn new(seed: u64) -> Self {
        let state = State {
            chance: SmallRng::seed_from_u64(seed ^ 0x7472_6f75_626c_6573),
            odds: Odds::default(),
            odds_since: None,
            moods: BTreeMap::new(),
            odd: BTreeMap::new(),
            swaps: false,
            refused_kernel: None,
            counted: BTreeMap::new(),
            has_restored: false,
            over: None,
        };
        Self { state: Mutex::new(state) }
    }

    /// Draws by chance.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.state.lock().chance)
    }

    /// Counts something that went wrong.
    pub fn count(&self, what: impl Into<String>) {
        *self.state.lock().counted.entry(what.into()).or_insert(0) += 1;
    }

    /// Counts that a backup of these parts was restored.
    pub fn count_restore(&self, parts: &[Part]) {
        self.count(format!("backup of {parts:?} restored"));
        self.state.lock().has_restored = true;
    }

    /// Whether a backup was restored.
    pub fn has_restored(&self) -> bool {
        self.state.lock().has_restored
    }

    /// How often what went wrong.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        self.state.lock().counted.clone()
    }

    /// Sets how likely commits go wrong.
    pub fn set_odds(&self, odds: Odds) {
        let mut state = self.state.lock();
        (state.odds, state.odds_since) = (odds, Some(Instant::now()));
    }

    /// Puts an upstream into some mood, or out of any.
    pub fn set_mood(&self, concern: Concern, mood: Option<Mood>) {
        let mut state = self.state.lock();
        match mood {
            Some(mood) => state.moods.insert(concern, mood),
            None => state.moods.remove(&concern),
        };
    }

    /// Some mood.
    pub fn any_mood(&self) -> Mood {
        self.draw(|chance| *MOODS.choose(chance).unwrap_or(&Mood::Silent))
    }

    /// Makes a node odd, or no longer.
    pub fn set_odd(&self, node: &str, oddity: Oddity, odd: bool) {
        let mut state = self.state.lock();
        let oddities = state.odd.entry(node.to_owned()).or_default();
        if odd {
            oddities.insert(oddity)
        } else {
            oddities.remove(&oddity)
        };
    }

    /// Whether a node is odd in some way.
    pub fn is(&self, node: &str, oddity: Oddity) -> bool {
        self.state.lock().odd.get(node).is_some_and(|oddities| oddities.contains(&oddity))
    }

    /// The nodes that are odd in some way.
    pub fn odd(&self, oddity: Oddity) -> impl Iterator<Item = String> {
        let state = self.state.lock();
        let odd = state.odd.iter().filter(|(_, oddities)| oddities.contains(&oddity));
        odd.map(|(node, _)| node.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Has the power service give the ids of transitions to the wrong callers, or no longer.
    pub fn set_swaps(&self, swaps: bool) {
        self.state.lock().swaps = swaps;
    }

    /// Whether the power service gives the ids of transitions to the wrong callers.
    pub fn swaps(&self) -> bool {
        self.state.lock().swaps
    }

    /// Refuses boot data with such kernels.
    pub fn refuse_kernel(&self, kernel: Option<&str>) {
        self.state.lock().refused_kernel = kernel.map(str::to_owned);
    }

    /// Whether boot data with that kernel are refused.
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
        state.refused_kernel = None;
        state.over = Some(Instant::now());
    }

    /// How long a host stays dead: sometimes no longer than its next start takes, sometimes longer than people wait.
    pub fn downtime(&self) -> Duration {
        self.draw(|chance| match chance.random_range(0..4) {
            0 => Duration::from_millis(chance.random_range(10..500)),
            1 | 2 => Duration::from_millis(chance.random_range(500..8_000)),
            _ => Duration::from_secs(chance.random_range(8..60)),
        })
    }

    /// How long a host is stopped: mostly three times as long as a lease lasts, and sometimes about as long.
    pub fn pause(&self) -> Duration {
        self.draw(|chance| match chance.random_range(0..4) {
            0 => Duration::from_millis(chance.random_range(500..9_000)),
            _ => Duration::from_millis(chance.random_range(18_000..22_000)),
        })
    }

    /// How long commits have gone as they should.
    pub fn commits_well_for(&self) -> Duration {
        let state = self.state.lock();
        let Odds { fails, unheard, dies_before, dies_after, pauses_before, pauses_after, caller_dies: _ } =
            state.odds;
        let well = fails + unheard + dies_before + dies_after + pauses_before + pauses_after == 0.0;
        let since = state.odds_since.map_or(Duration::MAX, |since| since.elapsed());
        if well { since } else { Duration::ZERO }
    }

    /// How long a commit takes and what becomes of it.
    pub fn commit(&self, part: Part, kind: &'static str) -> (Duration, Fate) {
        let mut state = self.state.lock();
        let takes = Duration::from_micros(state.chance.random_range(300..4_000));
        let odds = state.odds;
        let fates = [
            (odds.fails, Fate::Failed, "commit fails"),
            (odds.unheard, Fate::Unheard, "commit unheard"),
            (odds.dies_before, Fate::DiesBefore, "dies before commit"),
            (odds.dies_after, Fate::DiesAfter, "dies after commit"),
            (odds.pauses_before, Fate::PausesBefore, "stopped before commit"),
            (odds.pauses_after, Fate::PausesAfter, "stopped after commit"),
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
        (takes, Fate::Kept)
    }

    /// Whether the caller of an upstream dies now.
    pub fn caller_dies(&self) -> bool {
        let mut state = self.state.lock();
        let likely = state.odds.caller_dies;
        state.chance.random_bool(likely)
    }

    /// What an upstream does before it does what it is asked.
    ///
    /// # Errors
    /// When it does not do it.
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

    /// What an upstream does after it did what it was asked.
    ///
    /// # Errors
    /// When it says that it did not.
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
