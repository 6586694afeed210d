//! The power upstream, which answers for power states and transitions.

mod pcs;
pub(crate) mod progress;
mod redfish;
mod simulated;

use std::{collections::HashSet, pin::Pin, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{Channel, Context, Settings, settings::PowerDriver};
use domain::{
    boot::{
        component::Action,
        power::{ReadingSource, TASK_DEADLINE},
    },
    core::{clock_offset::ClockOffset, time::Timestamp},
};
use futures_util::Stream;
use proto::power::PowerReading;
use upstream::{FailureKind, machine::MachineFile};

pub(crate) use self::redfish::{HostFleet, MachineNode};
use self::{
    pcs::PcsDriver,
    progress::{TransitionProgress, UpstreamRecord},
    redfish::RedfishDriver,
    simulated::SimulatedPowerDriver,
};

/// Nodes in one call to upstreams that name no limit of their own. Power services take a little more; a call of this
/// size stays recognisable and is answered within a second.
const MOST_NODES: usize = 2500;

/// Power requests to one upstream at a time: enough to read the largest machine in a few rounds.
const MOST_QUERIES: usize = 8;

/// Power requests to BMCs at a time, each to another one. A limit elsewhere holds for calls at once; this one only has
/// to exceed the number of BMCs that ever hang together.
const MOST_BMCS: usize = 10_000;

/// Answer of the upstream about one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeReading {
    pub(crate) reading: PowerReading,
    /// Text of the upstream beside the reading; empty: none.
    pub(crate) error: String,
    /// Time since which the reading holds, or at which it was made, by the clock of the upstream; `None`: now.
    pub(crate) as_of: Option<Timestamp>,
}

impl NodeReading {
    /// Returns the reading of a node that the upstream left out of its answer.
    pub(crate) fn missing() -> Self {
        Self { reading: PowerReading::Missing, error: String::new(), as_of: None }
    }

    /// Returns the reading of a node for which the upstream has no power state but `error`.
    pub(crate) fn undefined(error: String) -> Self {
        Self { reading: PowerReading::Undefined, error, as_of: None }
    }
}

/// Stream of readings that the upstream pushes; it ends with the first error.
pub(crate) type ReadingStream =
    Pin<Box<dyn Stream<Item = Result<Vec<(String, NodeReading)>, DriverFailure>> + Send>>;

/// A transition that the upstream has on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamTransition {
    pub(crate) id: String,
    pub(crate) action: Option<Action>,
    /// Ids of the nodes, sorted.
    pub(crate) ids: Vec<String>,
    /// Whether `ids` are all nodes of the transition. An upstream may still be expanding a request.
    pub(crate) complete: bool,
    /// Time by the clock of the upstream; the end of time: unknown.
    pub(crate) at: Timestamp,
    /// Granularity to which `at` is truncated.
    pub(crate) resolution: Duration,
    /// Whether the upstream still works on the transition, and holds its nodes.
    pub(crate) open: bool,
}

/// Transitions that an upstream works on.
#[derive(Debug, Default)]
pub(crate) struct OpenTransitions {
    /// Transitions that it shows, without nodes on which they were not begun; the newest first.
    pub(crate) read: Vec<UpstreamTransition>,
    /// Ids of those that it lists and does not show, each with the error.
    pub(crate) unread: Vec<(String, DriverFailure)>,
}

/// Criteria for transitions to search for in the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamSearch {
    /// Time by our clock in which the upstream may have taken the transitions. It is compared only where the clock of
    /// the upstream is known.
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) actions: Vec<Action>,
    /// Numbers of nodes that the transitions have.
    pub(crate) sizes: HashSet<usize>,
    /// Upstream ids of transitions that are known to be others.
    pub(crate) known: HashSet<String>,
}

impl UpstreamSearch {
    fn may_be(&self, one: &UpstreamTransition, clock: Option<ClockOffset>) -> bool {
        let within = |clock: ClockOffset| clock.may_be_within(one.at, one.resolution, self.from, self.until);
        !self.known.contains(&one.id)
            && one.action.is_some_and(|action| self.actions.contains(&action))
            && (one.at == Timestamp(i64::MAX) || clock.is_none_or(within))
    }
}

/// Transitions found in the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundTransitions {
    pub(crate) accepted: Vec<UpstreamTransition>,
    /// Offset of the clock by which their times are; `None`: unknown.
    pub(crate) clock: Option<ClockOffset>,
}

/// Question for the transitions of the upstream that are not on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignQuery {
    pub(crate) recorded: RecordedIds,
    /// Upstream ids that the last answer of this term listed as ended; `None`: there was none.
    pub(crate) ended: Option<Arc<HashSet<String>>>,
    /// Time before which transitions were created that are of no interest once they have ended. It counts only for the
    /// first answer.
    pub(crate) ended_since: Timestamp,
}

/// Upstream ids of transitions on record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordedIds {
    pub(crate) all: HashSet<String>,
    /// Ids, among `all`, of transitions that are open on record too, or that an operator has abandoned. Their record says
    /// what to do while the upstream works on them.
    pub(crate) accounted: HashSet<String>,
}

impl ForeignQuery {
    /// Returns whether the record says nothing about the transition now: it is not on record, or it is over there and
    /// `is_open` at the upstream, which has begun with it again.
    fn is_unrecorded(&self, id: &str, is_open: bool) -> bool {
        let RecordedIds { all, accounted } = &self.recorded;
        !(if is_open { accounted } else { all }).contains(id)
    }

    /// Returns whether an ended transition is of interest: it may have ended since the last answer. `is_recent`: it may have
    /// been created since [`Self::ended_since`].
    fn wants_ended(&self, id: &str, is_recent: impl FnOnce(Timestamp) -> bool) -> bool {
        self.ended.as_ref().map_or_else(|| is_recent(self.ended_since), |ended| !ended.contains(id))
    }
}

/// Transitions of the upstream that are not on record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ForeignAnswer {
    /// Transitions that are open, or have ended since the last answer.
    pub(crate) found: Vec<UpstreamTransition>,
    /// Offset of the clock by which their times are; `None`: unknown.
    pub(crate) clock: Option<ClockOffset>,
    /// Upstream ids of all transitions that the upstream lists.
    pub(crate) listed: Arc<HashSet<String>>,
    /// Upstream ids of those that are not on record and have ended.
    pub(crate) ended: Arc<HashSet<String>>,
}

/// Reason why a call failed, by the known state of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DriverFailure {
    /// The upstream refused these nodes together. It may take some of them.
    #[error("{0}")]
    Refused(String),
    /// The upstream refused these nodes together because they are too many.
    #[error("{0}")]
    TooLarge(String),
    /// The upstream refuses this kind of call, whichever the nodes.
    #[error("{0}")]
    Denied(String),
    /// The upstream was not reached, so nothing happened.
    #[error("{0}")]
    Unreachable(String),
    /// The upstream may have carried the call out or not, or may still do it.
    #[error("{0}")]
    Ambiguous(String),
}

impl DriverFailure {
    /// Returns the failure with the id of the upstream's transition that could not be read, by which an operator can abandon
    /// it.
    fn about(self, id: &str) -> Self {
        let about = |text: String| format!("{text}, about transition {id}");
        match self {
            Self::Refused(text) => Self::Refused(about(text)),
            Self::TooLarge(text) => Self::TooLarge(about(text)),
            Self::Denied(text) => Self::Denied(about(text)),
            Self::Unreachable(text) => Self::Unreachable(about(text)),
            Self::Ambiguous(text) => Self::Ambiguous(about(text)),
        }
    }
}

impl From<upstream::Failure> for DriverFailure {
    fn from(failure: upstream::Failure) -> Self {
        match failure.kind {
            FailureKind::Refused => Self::Refused(failure.text),
            FailureKind::Denied => Self::Denied(failure.text),
            FailureKind::Unreachable => Self::Unreachable(failure.text),
            FailureKind::Ambiguous => Self::Ambiguous(failure.text),
        }
    }
}

/// Upstreams that can be driven.
#[derive(Clone)]
pub(crate) enum PowerUpstream {
    /// The simulated fleet. It pushes changes, and reports about its transitions if the settings say so.
    Simulated(SimulatedPowerDriver),
    /// The power control service.
    Pcs(PcsDriver),
    /// The BMCs of the machine file, or of bare-metal hosts.
    Redfish(RedfishDriver),
}

impl PowerUpstream {
    /// Returns the driver that the settings choose.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        match settings.power.driver {
            PowerDriver::Simulated => {
                let follows = settings.simulator.results;
                let fleet = SimulatedPowerDriver::new(&settings.tls, &settings.simulator.url, follows)
                    .context("simulator.url");
                fleet.map(Self::Simulated)
            }
            PowerDriver::Pcs => PcsDriver::new(&settings.power.pcs).map(Self::Pcs),
            PowerDriver::Redfish => {
                let file = MachineFile::open(&settings.machine_file).context("machine_file")?;
                RedfishDriver::new(file, &settings.power).map(Self::Redfish)
            }
            PowerDriver::Hosts => RedfishDriver::of_hosts(&settings.power).map(Self::Redfish),
        }
    }

    /// Begins to follow records of the registry that name nodes of the upstream.
    pub(crate) fn follow_registry(&self, context: &Context, registry: Channel) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.follow_hosts(context, registry),
        }
    }

    /// Returns the machines of bare-metal hosts, if they are what is driven.
    pub(crate) fn host_fleet(&self) -> Option<&Arc<HostFleet>> {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => None,
            Self::Redfish(redfish) => redfish.hosts(),
        }
    }

    /// Waits until the nodes of the upstream are known.
    pub(crate) async fn complete(&self) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.complete().await,
        }
    }

    /// Returns whether the upstream reports the outcome of a transition. If not, a transition is finished once
    /// accepted, and its effect shows only in power readings.
    pub(crate) fn follows(&self) -> bool {
        match self {
            Self::Simulated(simulated) => simulated.follows(),
            Self::Pcs(_) | Self::Redfish(_) => true,
        }
    }

    /// Returns whether the upstream lists its transitions, whoever requested them.
    pub(crate) fn lists(&self) -> bool {
        match self {
            Self::Pcs(_) => true,
            Self::Simulated(simulated) => simulated.follows(),
            // What BMCs were asked for is not on a record of theirs.
            Self::Redfish(_) => false,
        }
    }

    /// Returns whether following a transition costs calls to the upstream.
    pub(crate) fn follows_by_calls(&self) -> bool {
        match self {
            Self::Simulated(simulated) => simulated.follows(),
            Self::Pcs(_) => true,
            Self::Redfish(_) => false,
        }
    }

    /// Returns whether the upstream checks the outcome of a transition only now and then.
    pub(crate) fn works_in_steps(&self) -> bool {
        match self {
            Self::Pcs(_) => true,
            Self::Simulated(_) | Self::Redfish(_) => false,
        }
    }

    /// Returns the most nodes in one call.
    pub(crate) fn most_nodes(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::Redfish(_) => MOST_NODES,
            Self::Pcs(pcs) => pcs.most_nodes(),
        }
    }

    /// Returns the most power requests at a time.
    pub(crate) fn most_queries(&self) -> usize {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => MOST_QUERIES,
            Self::Redfish(_) => MOST_BMCS,
        }
    }

    /// Splits nodes into groups that are requested together, so that no node waits for a slow answer about another.
    /// `id` names a node.
    pub(crate) fn apart<N>(&self, nodes: Vec<N>, id: impl Fn(&N) -> &str) -> Vec<Vec<N>> {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => vec![nodes],
            Self::Redfish(redfish) => redfish.by_bmc(nodes, id),
        }
    }

    /// Returns how long the upstream works on a node before it gives the node up.
    pub(crate) fn task_deadline(&self) -> Duration {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => TASK_DEADLINE,
            Self::Redfish(redfish) => redfish.patience(),
        }
    }

    /// Reads the power of nodes. Nodes that the upstream does not know are left out.
    pub(crate) async fn power(
        &self,
        ids: Vec<String>,
        deadline: Duration,
    ) -> Result<Vec<(String, NodeReading)>, DriverFailure> {
        match self {
            Self::Simulated(simulated) => simulated.power(ids, deadline).await,
            Self::Pcs(pcs) => pcs.power(ids, deadline).await,
            Self::Redfish(redfish) => Ok(redfish.power(ids, deadline).await),
        }
    }

    /// Returns how the upstream reads the power of nodes.
    pub(crate) fn source(&self) -> ReadingSource {
        match self {
            Self::Simulated(_) | Self::Redfish(_) => ReadingSource::Live,
            Self::Pcs(_) => ReadingSource::Sampled,
        }
    }

    /// Returns whether the upstream pushes changes.
    pub(crate) fn tells(&self) -> bool {
        match self {
            Self::Simulated(_) => true,
            Self::Pcs(_) | Self::Redfish(_) => false,
        }
    }

    /// Returns the readings that change from now on; none unless the upstream [pushes changes](Self::tells). No change
    /// after the return of this call is missed while the stream lasts.
    pub(crate) async fn watch_power(&self) -> Result<ReadingStream, DriverFailure> {
        match self {
            Self::Simulated(simulated) => simulated.watch_power().await,
            Self::Pcs(_) | Self::Redfish(_) => Ok(Box::pin(futures_util::stream::pending())),
        }
    }

    /// Requests an action on the power of nodes. Returns the id under which the upstream took it. Where a call may have
    /// to wait here, `still_ours` is asked right before the call leaves, and nothing is sent unless it returns true.
    pub(crate) async fn start(
        &self,
        action: Action,
        ids: Vec<String>,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<String, DriverFailure> {
        match self {
            Self::Simulated(simulated) => simulated.start(action, ids, deadline).await,
            Self::Pcs(pcs) => pcs.start(action, ids, deadline, still_ours).await,
            Self::Redfish(redfish) => Ok(redfish.start(action, ids, still_ours)),
        }
    }

    /// Returns the progress of a transition that the upstream took. A transition that the upstream has forgotten has
    /// ended without results. An upstream that is reached by calls has to report it missing twice, in the request for
    /// it and in the list of all: a single answer may come from a proxy in front of the upstream.
    pub(crate) async fn follow(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<TransitionProgress, DriverFailure> {
        match self {
            Self::Simulated(simulated) => simulated.follow(id, deadline).await,
            Self::Pcs(pcs) => pcs.follow(id, deadline).await,
            Self::Redfish(redfish) => {
                let known = redfish.follow(id);
                Ok(known.unwrap_or_else(|| TransitionProgress::forgotten(UpstreamRecord::NotKept)))
            }
        }
    }

    /// Returns whether the upstream can end transitions early.
    pub(crate) fn aborts(&self) -> bool {
        match self {
            Self::Pcs(_) => true,
            Self::Simulated(_) | Self::Redfish(_) => false,
        }
    }

    /// Asks the upstream to end a transition early, if it [can](Self::aborts). Following the transition shows whether
    /// and when it has ended. `still_ours` as for [`Self::start`].
    pub(crate) async fn abort(
        &self,
        id: &str,
        deadline: Duration,
        still_ours: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<(), DriverFailure> {
        match self {
            Self::Pcs(pcs) => pcs.abort(id, deadline, still_ours).await,
            // No transition continues there: the effect comes, or the wait for it ends.
            Self::Simulated(_) | Self::Redfish(_) => Ok(()),
        }
    }

    /// Drops a transition that an operator has abandoned: no more is done for it here, and it blocks no other.
    pub(crate) fn give_up(&self, id: &str) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.give_up(id),
        }
    }

    /// Keeps only actions of this process that are among `recorded` upstream ids: an engine that starts from the record
    /// follows no others. What other upstreams work on outlives this process, and is on their own record.
    pub(crate) fn keep(&self, recorded: &HashSet<String>) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.keep(recorded),
        }
    }

    /// Returns the transitions that the upstream took and that match the search.
    pub(crate) async fn find(
        &self,
        search: &UpstreamSearch,
        deadline: Duration,
    ) -> Result<FoundTransitions, DriverFailure> {
        match self {
            Self::Simulated(simulated) => simulated.find(search, deadline).await,
            Self::Pcs(pcs) => pcs.find(search, deadline).await,
            // Actions end with the process that began them, and no other process knows of them.
            Self::Redfish(_) => Ok(FoundTransitions { accepted: Vec::new(), clock: None }),
        }
    }

    /// Returns the transitions, whoever requested them, that the upstream works on and that hold one of these nodes.
    pub(crate) async fn holders(
        &self,
        ids: &HashSet<String>,
        deadline: Duration,
    ) -> Result<Vec<UpstreamTransition>, DriverFailure> {
        match self {
            Self::Pcs(pcs) => pcs.holders(ids, deadline).await,
            Self::Simulated(fleet) => fleet.holders(ids, deadline).await,
            // BMCs have no reservations.
            Self::Redfish(_) => Ok(Vec::new()),
        }
    }

    /// Returns the transitions that the upstream works on, for people, without those that are `known` by their ids. One that
    /// cannot be read does not hide the others.
    pub(crate) async fn open_beside(
        &self,
        known: &HashSet<String>,
        deadline: Duration,
    ) -> Result<OpenTransitions, DriverFailure> {
        match self {
            Self::Pcs(pcs) => pcs.open_beside(known, deadline).await,
            Self::Simulated(fleet) => fleet.open_beside(known, deadline).await,
            // Only actions of this service are known, and those are on record.
            Self::Redfish(_) => Ok(OpenTransitions::default()),
        }
    }

    /// Returns the transitions, whoever requested them, that the upstream works on, and those that have ended since the last
    /// answer, with the nodes whose power they may have changed. A transition on record is left out, unless it is over on
    /// record and open at the upstream.
    pub(crate) async fn foreign(
        &self,
        query: &ForeignQuery,
        deadline: Duration,
    ) -> Result<ForeignAnswer, DriverFailure> {
        match self {
            Self::Pcs(pcs) => pcs.foreign(query, deadline).await,
            Self::Simulated(fleet) => fleet.foreign(query, deadline).await,
            Self::Redfish(_) => Ok(ForeignAnswer::default()),
        }
    }

    /// Returns the record of the upstream's transition with this id, whoever requested it; `None`: there is none.
    pub(crate) async fn look_up(
        &self,
        id: &str,
        deadline: Duration,
    ) -> Result<Option<UpstreamTransition>, DriverFailure> {
        match self {
            Self::Pcs(pcs) => pcs.look_up(id, deadline).await,
            Self::Simulated(fleet) => fleet.look_up(id, deadline).await,
            // Only actions of this service are known, and those are on record.
            Self::Redfish(_) => Ok(None),
        }
    }

    /// Returns how far the clock of the upstream is ahead of ours; `None`: unknown, or without influence.
    pub(crate) fn clock(&self) -> Option<ClockOffset> {
        match self {
            Self::Pcs(pcs) => pcs.clock(),
            Self::Simulated(_) | Self::Redfish(_) => None,
        }
    }

    /// Drops the refusal that is remembered for a component that has begun another generation or action.
    pub(crate) fn reconsider(&self, id: &str) {
        match self {
            Self::Pcs(pcs) => pcs.reconsider(id),
            Self::Simulated(_) | Self::Redfish(_) => {}
        }
    }

    /// Releases the upstream's resources that this process holds. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        match self {
            Self::Simulated(_) | Self::Pcs(_) => {}
            Self::Redfish(redfish) => redfish.close(patience).await,
        }
    }
}

/// Returns the error of polling a transition that the upstream did not find but has in its list.
fn still_listed(not_found: &str) -> String {
    format!("{not_found}, but its list of transitions still has it")
}
