//! The power upstream: who is asked for power states and transitions.

mod pcs;
mod simulated;

use std::{collections::HashSet, pin::Pin, time::Duration};

use anyhow::Context as _;
use chassis::{Settings, settings::PowerDriver};
use domain::{
    boot::{component::Action, power::TASK_DEADLINE},
    core::{clock_offset::ClockOffset, time::Timestamp},
};
use futures_util::Stream;
use proto::power::PowerReading;
use upstream::{FailureKind, machine::MachineFile};

use self::{pcs::Pcs, simulated::Simulated};
use crate::{progress::Progress, redfish::Redfish};

/// Nodes in one call to upstreams that name no limit of their own. Power services take a little more; what they
/// get from us stays recognisable and small enough to be answered within a second.
const MOST_NODES: usize = 2500;

/// Questions to one upstream at a time: enough for the largest machine to be read in a few rounds.
const MOST_QUESTIONS: usize = 8;

/// Questions to BMCs at a time, each to another one. How many of them are called at once is limited where they are
/// called; this only has to be more than ever hang together.
const MOST_BMCS: usize = 10_000;

/// What the upstream said of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) reading: PowerReading,
    /// What was said beside the reading; empty: nothing.
    pub(crate) error: String,
    /// Since when it is so, or when it was seen, by the clock of the upstream; none: now.
    pub(crate) as_of: Option<Timestamp>,
}

impl Reading {
    /// The upstream answered and left the node out.
    pub(crate) fn missing() -> Self {
        Self { reading: PowerReading::Missing, error: String::new(), as_of: None }
    }

    /// The upstream has no power state for the node and says `error` instead.
    pub(crate) fn undefined(error: String) -> Self {
        Self { reading: PowerReading::Undefined, error, as_of: None }
    }
}

/// Readings that the upstream sends by itself; they end with the first error.
pub(crate) type Readings = Pin<Box<dyn Stream<Item = Result<Vec<(String, Reading)>, Failure>> + Send>>;

/// A transition that the upstream has on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) id: String,
    pub(crate) action: Option<Action>,
    /// Sorted.
    pub(crate) ids: Vec<String>,
    /// Whether `ids` are all of its nodes. An upstream may still be working out what it was asked for.
    pub(crate) complete: bool,
    /// By the clock of the upstream; the end of time: it does not tell.
    pub(crate) at: Timestamp,
    /// What `at` is cut to.
    pub(crate) resolution: Duration,
    /// Whether it still works on it, and holds its nodes.
    pub(crate) open: bool,
}

/// Which transitions to look for in the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    /// Time by our clock in which the upstream may have taken them. It is looked at only where the clock of the upstream
    /// is known.
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) actions: Vec<Action>,
    /// How many nodes they have.
    pub(crate) sizes: HashSet<usize>,
    /// Ids of those that are known to be others.
    pub(crate) known: HashSet<String>,
}

impl Search {
    fn may_be(&self, one: &Accepted, clock: Option<ClockOffset>) -> bool {
        let within = |clock: ClockOffset| clock.may_be_within(one.at, one.resolution, self.from, self.until);
        !self.known.contains(&one.id)
            && one.action.is_some_and(|action| self.actions.contains(&action))
            && (one.at == Timestamp(i64::MAX) || clock.is_none_or(within))
    }
}

/// Transitions that were found in the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) accepted: Vec<Accepted>,
    /// How the clock stands by which their times are; none: it is not known.
    pub(crate) clock: Option<ClockOffset>,
}

/// Why the upstream did not do as asked, by what is known about its state now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It refused these nodes together. It may take some of them.
    #[error("{0}")]
    Refused(String),
    /// The upstream refused these nodes together because they are too many.
    #[error("{0}")]
    TooLarge(String),
    /// It refuses this kind of call, whichever the nodes.
    #[error("{0}")]
    Denied(String),
    /// It was not reached, so nothing happened.
    #[error("{0}")]
    Unreachable(String),
    /// It may have done it or not, or may still do it.
    #[error("{0}")]
    Ambiguous(String),
}

impl From<upstream::Failure> for Failure {
    fn from(failure: upstream::Failure) -> Self {
        match failure.kind {
            FailureKind::Refused => Self::Refused(failure.text),
            FailureKind::Denied => Self::Denied(failure.text),
            FailureKind::Unreachable => Self::Unreachable(failure.text),
            FailureKind::Ambiguous => Self::Ambiguous(failure.text),
        }
    }
}

/// The upstreams that can be driven.
#[derive(Clone)]
pub(crate) enum Driver {
    /// The simulated fleet. It tells changes by itself, and of its transitions what the settings say.
    Simulated(Simulated),
    /// The power control service.
    Pcs(Pcs),
    /// The BMCs of the machine file.
    Redfish(Redfish),
}

impl Driver {
    /// The driver that the settings choose.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        match settings.power.driver {
            PowerDriver::Simulated => {
                let follows = settings.simulator.results;
                let fleet = Simulated::new(&settings.simulator.url, follows).context("simulator.url");
                fleet.map(Self::Simulated)
            }
            PowerDriver::Pcs => Pcs::new(&settings.power.pcs).map(Self::Pcs),
            PowerDriver::Redfish => {
                let file = MachineFile::open(&settings.machine_file).context("machine_file")?;
                Redfish::new(file, &settings.power).map(Self::Redfish)
            }
        }
    }

    /// Whether the upstream tells what becomes of a transition. Otherwise one that it took is done with, and
    /// power readings tell its effect.
    pub(crate) fn follows(&self) -> bool {
        match self {
            Self::Simulated(simulated) => simulated.follows(),
            Self::Pcs(_) | Self::Redfish(_) => true,
        }
    }

    /// Whether it takes a call to the upstream to learn how a transition goes.
    pub(crate) fn follows_by_calls(&self) -> bool {
        match self {
            Self::Simulated(simulated) => simulated.follows(),
            Self::Pcs(_) => true,
            Self::Redfish(_) => false,
        }
    }

    /// Whether it looks at what becomes of a transition now and then only.
    pub(crate) fn works_in_steps(&self) -> bool {
        match self {
            Self::Pcs(_) => true,
            Self::Simulated(_) | Self::Redfish(_) => false,
        }
    }

    /// Most nodes in one call.
    pub(crate) fn most_nodes(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::Redfish(_) => MOST_NODES,
            Self::Pcs(pcs) => pcs.most_nodes(),
        }
    }

    /// Most questions about power at a time.
    pub(crate) fn most_questions(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => MOST_QUESTIONS,
            Self::Redfish(_) => MOST_BMCS,
        }
    }

    /// Splits nodes into those that are asked about together, so that nobody waits for an answer about another
    /// that takes long. `id` names a node.
    pub(crate) fn apart<N>(&self, nodes: Vec<N>, id: impl Fn(&N) -> &str) -> Vec<Vec<N>> {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => vec![nodes],
            Self::Redfish(redfish) => redfish.by_bmc(nodes, id),
        }
    }

    /// How long the upstream works on a node before it gives it up.
    pub(crate) fn task_deadline(&self) -> Duration {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => TASK_DEADLINE,
            Self::Redfish(redfish) => redfish.patience(),
        }
    }

    /// Reads the power of nodes. Those that the upstream does not know are left out.
    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, Reading)>, Failure> {
        match self {
            Self::Simulated(simulated) => simulated.power(ids, deadline).await,
            Self::Pcs(pcs) => pcs.power(ids, deadline).await,
            Self::Redfish(redfish) => Ok(redfish.power(ids, deadline).await),
        }
    }

    /// Whether the upstream tells of changes by itself.
    pub(crate) fn tells(&self) -> bool {
        match self {
            Self::Simulated(_) => true,
            Self::Pcs(_) | Self::Redfish(_) => false,
        }
    }

    /// Readings as they change from now on; none unless the upstream [tells](Self::tells). What happens after
    /// this has returned is not missed while the stream lasts.
    pub(crate) async fn watch_power(&self) -> Result<Readings, Failure> {
        match self {
            Self::Simulated(simulated) => simulated.watch_power().await,
            Self::Pcs(_) | Self::Redfish(_) => Ok(Box::pin(futures_util::stream::pending())),
        }
    }

    /// Asks for an action on the power of nodes. Gives the id under which the upstream took it. Where a call may have
    /// to wait here, `still_ours` is asked right before it goes out, and if it says no nothing is sent.
    pub(crate) async fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<String, Failure> {
        match self {
            Self::Simulated(simulated) => simulated.start(action, ids, deadline).await,
            Self::Pcs(pcs) => pcs.start(action, ids, deadline, still_ours).await,
            Self::Redfish(redfish) => Ok(redfish.start(action, ids, still_ours)),
        }
    }

    /// How a transition goes that the upstream took. One that it does not know any more has ended without a word
    /// about its nodes. An upstream that is called has to say so twice, when it is asked for the one and for all: a single
    /// answer may come from whoever stands before it.
    pub(crate) async fn follow(&self, id: &str, deadline: Duration) -> Result<Progress, Failure> {
        match self {
            Self::Simulated(simulated) => Ok(simulated.follow(id, deadline).await?.unwrap_or_else(forgotten)),
            Self::Pcs(pcs) => pcs.follow(id, deadline).await,
            Self::Redfish(redfish) => Ok(redfish.follow(id).unwrap_or_else(forgotten)),
        }
    }

    /// Whether the upstream ends transitions early when it is asked to.
    pub(crate) fn aborts(&self) -> bool {
        match self {
            Self::Pcs(_) => true,
            Self::Simulated(_) | Self::Redfish(_) => false,
        }
    }

    /// Asks the upstream to end a transition early, if it [aborts](Self::aborts) any. Whether and when it has ended is told by following it. `still_ours`
    /// as for [`Self::start`].
    pub(crate) async fn abort(
        &self,
        id: &str,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        match self {
            Self::Pcs(pcs) => pcs.abort(id, deadline, still_ours).await,
            // Nothing there goes on: the effect comes, or the wait for it ends.
            Self::Simulated(_) | Self::Redfish(_) => Ok(()),
        }
    }

    /// An operator has given a transition up: no more is done for it here, and it is in the way of no other.
    pub(crate) fn give_up(&self, id: &str) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.give_up(id),
        }
    }

    /// The transitions that the upstream took and that may be searched for.
    pub(crate) async fn find(&self, search: &Search, deadline: Duration) -> Result<Found, Failure> {
        match self {
            Self::Simulated(simulated) => simulated.find(search, deadline).await,
            Self::Pcs(pcs) => pcs.find(search, deadline).await,
            // Actions end with the process that began them, and no other knows of them.
            Self::Redfish(_) => Ok(Found { accepted: Vec::new(), clock: None }),
        }
    }

    /// The transitions that the upstream works on and that hold one of these nodes, whoever asked for them.
    pub(crate) async fn holders(
        &self,
        ids: &HashSet<String>,
        deadline: Duration,
    ) -> Result<Vec<Accepted>, Failure> {
        match self {
            Self::Pcs(pcs) => pcs.holders(ids, deadline).await,
            Self::Simulated(fleet) => fleet.holders(ids, deadline).await,
            // Nobody reserves nodes there.
            Self::Redfish(_) => Ok(Vec::new()),
        }
    }

    /// How far the clock of the upstream is ahead of ours; none: it is not known, or has no say.
    pub(crate) fn clock(&self) -> Option<ClockOffset> {
        match self {
            Self::Pcs(pcs) => pcs.clock(),
            Self::Simulated(_) | Self::Redfish(_) => None,
        }
    }

    /// Forgets what was set aside about a component that has begun another generation or action.
    pub(crate) fn reconsider(&self, id: &str) {
        match self {
            Self::Pcs(pcs) => pcs.reconsider(id),
            Self::Simulated(_) | Self::Redfish(_) => {}
        }
    }

    /// Gives back what the upstream holds for us. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.close(patience).await,
        }
    }
}

/// Error of a look at a transition that the upstream did not find and has in its list nevertheless.
fn still_listed(not_found: &str) -> String {
    format!("{not_found}, but its list of transitions still has it")
}

/// All that is known of a transition that the upstream does not know any more.
fn forgotten() -> Progress {
    Progress { tasks: Vec::new(), ended: true, record: None }
}
