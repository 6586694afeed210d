//! Observations of the configuration upstream about nodes, and their freshness.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Fault,
    kinds::{
        NodeState, configuration::ConfigurationStateRecord, observation, options::OptionsRecord, trouble,
    },
    lease::Term,
    mesh::time,
    observe::{
        freshness::ReadingFreshness, mirror::Mirror, outage::OutageTimer, reading_clock::LogicalTime,
        work::WorkQueue,
    },
    process::{clock, pause},
    store::ledger::{Draft, Ledger},
};
use domain::{
    boot::{
        component::Component,
        configuration::{self, ConfigurationObservation, reading::ReadingSource},
        evaluation,
    },
    core::id::ComponentId,
};
use parking_lot::Mutex;
use proto::configuration::{ConfigurationReading, ConfigurationState};
use tokio::time::Instant;

use crate::{
    observed::ObservedConfiguration,
    ordering::{ConfigurationClock, admit},
    power::PowerMirror,
    step::PlacingStep,
    store::ConfigurationStateTable,
    trouble::{StepTrouble, waiting_for},
    upstream::{
        Failure,
        configuration::{ConfigurationQuery, ConfigurationUpstream, NamedObservation, PolledChanges},
    },
};

/// Peer in the waiting text of a node that an answer names without readable contents.
const UNREADABLE: &str = "the configuration upstream: what it says of this node cannot be read";

/// Calls the upstream, and stores its answers with the generation that was current at the time of the request.
///
/// [`configuration::reading`] says which of two readings stands. Only readings that differ from the stored state are
/// written.
pub(crate) struct ConfigurationObserver {
    pub(crate) states: Ledger<ConfigurationStateTable>,
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Power of nodes; the state of running nodes has to be known before they are switched off.
    pub(crate) power: PowerMirror,
    pub(crate) term: Term,
    pub(crate) upstream: ConfigurationUpstream,
    pub(crate) clock: Arc<Mutex<ConfigurationClock>>,
    /// Whether states are kept current.
    pub(crate) freshness: ReadingFreshness,
    /// Time since which no request about components was answered.
    pub(crate) outage: Mutex<OutageTimer>,
    /// Queue for components with a new state.
    pub(crate) changed: WorkQueue<ComponentId>,
}

/// Reason why an observation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    /// The upstream did not answer.
    #[error("{0}")]
    Upstream(#[from] Failure),
    /// The answer could not be stored.
    #[error("configuration states cannot be stored: {0}")]
    Store(#[from] Fault),
}

impl ObserveError {
    /// Logs an answer that could not be stored. Trouble of the upstream is logged where it is called.
    pub(crate) fn log(&self) {
        match self {
            Self::Upstream(failure) => tracing::debug!(%failure, "configuration states are not known"),
            Self::Store(fault) => tracing::warn!(%fault, "configuration states are not stored"),
        }
    }
}

/// Reason for a request about a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryReason {
    /// No state of this generation is known.
    Evidence { generation: u64 },
    /// Decisions depend on the known state, which may have changed unnoticed: pushes may get lost.
    Audit { generation: u64 },
}

/// Cost and gain of a poll for changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PollYield {
    /// Pages of lists that were read.
    pub(crate) pages: usize,
    /// Number of components with a new state.
    pub(crate) brought: usize,
}

/// Queries with the time of their request.
pub(crate) struct ConfigurationQueryBatch {
    pub(crate) about: Vec<ConfigurationQuery>,
    asked_at: LogicalTime,
}

impl ConfigurationQueryBatch {
    /// Returns the answer as one observation per component asked about, with the generation of its query.
    fn learnt(&self, said: Vec<NamedObservation>) -> Vec<(ComponentId, ObservedConfiguration, u64)> {
        let mut said: HashMap<_, _> = said.into_iter().collect();
        let learnt = self.about.iter().filter_map(|query| {
            let observed = ObservedConfiguration::of(said.remove(query.id.as_str())?);
            let observed = observed.unwrap_or_else(|| ObservedConfiguration::Lost(waiting_for(UNREADABLE)));
            Some((query.id.clone(), observed, query.generation))
        });
        learnt.collect()
    }
}

/// Weight of the upstream's answers about a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerWeight {
    /// No decision depends on its configuration.
    None,
    /// The known configuration may become outdated.
    Known,
    /// The component waits until it is configured.
    Awaited,
}

impl ConfigurationObserver {
    /// Returns why the upstream has to be asked about a component; `None` if the known state suffices, if the component
    /// is not enabled and its state is not needed, or if it is not needed before the boot.
    pub(crate) fn need(&self, id: &ComponentId) -> Option<QueryReason> {
        let component = self.components.get(id.as_str()).filter(|component| component.is_enabled())?;
        let generation = component.generation;
        let last = self.state(id.as_str());
        let known = last.filter(|last| last.reading() == ConfigurationReading::Known);
        let is_known = known.as_ref().is_some_and(|known| known.generation == generation);
        if !is_known || self.clock.lock().fresh(id).is_none() {
            let known_at = known.and_then(|known| known.observed_at).map(time::from_wire);
            let power = self.power.of(&component).observation;
            let needed = !configuration::can_wait(&component, &power, known_at, clock::now());
            return needed.then_some(QueryReason::Evidence { generation });
        }
        let audited = self.upstream.may_change() && configuration::decides(&component);
        audited.then_some(QueryReason::Audit { generation })
    }

    /// Returns the state of a node on record.
    fn state(&self, id: &str) -> Option<ConfigurationState> {
        self.states.view().get(id).map(|state| state.message())
    }

    /// Returns the known configuration of a component in its generation; unknown while states are out of date.
    pub(crate) fn known(&self, component: &Component) -> ConfigurationObservation {
        if self.is_out_of_date() {
            return ConfigurationObservation::Unknown;
        }
        observation::configuration(self.state(component.id.as_str()).as_ref(), component.generation)
    }

    /// Returns whether states are out of date, so that all of them have to be withdrawn.
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.freshness.has_lapsed(self.states.view().since_loss())
    }

    /// Returns the weight of the upstream's answers about a component from now on.
    pub(crate) fn weight(&self, id: &ComponentId) -> AnswerWeight {
        match (self.need(id), self.components.get(id.as_str())) {
            (Some(QueryReason::Audit { .. }), Some(component)) => {
                let awaited = evaluation::awaits_configuration(&component, &self.known(&component));
                if awaited { AnswerWeight::Awaited } else { AnswerWeight::Known }
            }
            (Some(QueryReason::Evidence { .. }) | None, _) | (_, None) => AnswerWeight::None,
        }
    }

    /// Returns whether the upstream has answered in this generation and left the node out.
    pub(crate) fn is_missing(&self, id: &ComponentId) -> bool {
        let Some(component) = self.components.get(id.as_str()) else { return false };
        self.state(id.as_str()).is_some_and(|state| {
            state.generation == component.generation && state.reading() == ConfigurationReading::Missing
        })
    }

    /// Returns the most time until the upstream begins an answer.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().cfs_read_timeout.into())
    }

    /// Requests the complete state of components. After too long a time without answers, their known state does not
    /// count any more.
    pub(crate) async fn look(&self, ids: &[ComponentId]) -> Result<(), ObserveError> {
        let (batch, since) = (self.query_about(ids), Instant::now());
        if batch.about.is_empty() {
            return Ok(());
        }
        match self.upstream.ask(&batch.about, self.deadline()).await {
            Ok(said) => {
                self.outage.lock().end();
                self.keep_answer(&batch, said).await?;
                Ok(())
            }
            Err(failure) => {
                let too_long = self.outage.lock().is_too_long(since, Instant::now());
                if too_long {
                    self.lose(&batch, &failure).await?;
                }
                Err(failure.into())
            }
        }
    }

    /// Requests the changes of components. The answer may leave out any of them, so nothing follows from a failure: the
    /// known state counts until [`Self::look`] finds otherwise.
    pub(crate) async fn follow(&self, ids: &[ComponentId]) -> Result<PollYield, ObserveError> {
        let batch = self.query_about(ids);
        if batch.about.is_empty() {
            return Ok(PollYield::default());
        }
        let PolledChanges { said, pages } = self.upstream.changes(&batch.about, self.deadline()).await?;
        Ok(PollYield { pages, brought: self.keep_answer(&batch, said).await? })
    }

    /// Returns the queries of a request made now: about the existing components, in their generation.
    pub(crate) fn query_about(&self, ids: &[ComponentId]) -> ConfigurationQueryBatch {
        let asked_at = self.clock.lock().tick();
        let about = ids.iter().filter_map(|id| {
            let component = self.components.get(id.as_str())?;
            Some(ConfigurationQuery {
                id: component.id.clone(),
                generation: component.generation,
                wanted: component.desired_configuration().map(str::to_owned),
                session: component.session_name().to_owned(),
                missing: self.is_missing(id),
            })
        });
        let about = about.collect();
        ConfigurationQueryBatch { about, asked_at }
    }

    /// Stores the answer to a batch of queries. Returns the number of components with a new state.
    async fn keep_answer(
        &self,
        batch: &ConfigurationQueryBatch,
        said: Vec<NamedObservation>,
    ) -> Result<usize, Fault> {
        self.keep(ReadingSource::Answer, batch.asked_at, batch.learnt(said)).await
    }

    /// Stores the upstream's confirmation of a call, about components as they were before the call.
    pub(crate) async fn keep_confirmation(
        &self,
        before: &ConfigurationQueryBatch,
        said: Vec<NamedObservation>,
    ) -> Result<(), Fault> {
        let told_at = self.clock.lock().tick();
        self.keep(ReadingSource::Confirmation, told_at, before.learnt(said)).await.map(drop)
    }

    /// Stores states that the upstream pushed.
    pub(crate) async fn told(&self, said: Vec<NamedObservation>) -> Result<(), Fault> {
        let told_at = self.clock.lock().tick();
        let learnt = said.into_iter().filter_map(|(id, observation)| {
            let component = self.components.get(&id)?;
            Some((component.id.clone(), ObservedConfiguration::of(observation)?, component.generation))
        });
        self.keep(ReadingSource::Push, told_at, learnt.collect()).await.map(drop)
    }

    /// Withdraws the known states of these components, unless they were observed again since the queries were sent.
    pub(crate) async fn lose(&self, batch: &ConfigurationQueryBatch, why: &Failure) -> Result<(), Fault> {
        let text = waiting_for(why);
        let lost = batch.about.iter().map(|query| {
            (query.id.clone(), ObservedConfiguration::Lost(Arc::clone(&text)), query.generation)
        });
        self.keep(ReadingSource::Outage, batch.asked_at, lost.collect()).await.map(drop)
    }

    /// Stores those observations of `source`, made at `time`, that stand. Each comes with the generation of its
    /// component at the request. Returns the number of components with a new state.
    async fn keep(
        &self,
        source: ReadingSource,
        time: LogicalTime,
        learnt: Vec<(ComponentId, ObservedConfiguration, u64)>,
    ) -> Result<usize, Fault> {
        let ids: Vec<_> = learnt.iter().map(|(id, ..)| id.clone()).collect();
        let (clock, now) = (Arc::clone(&self.clock), clock::now());
        let write = move |draft: &mut Draft<'_, ConfigurationStateRecord>| {
            // Readings are ordered here, in the order of writes.
            let mut clock = clock.lock();
            let mut changed = HashSet::new();
            for (id, observed, generation) in learnt {
                let Some(generation) = admit(&mut clock, source, &id, time, generation) else { continue };
                let kept = draft.get(id.as_str()).map(|kept| kept.message());
                if let Some(state) = observed.replaces(kept.as_ref(), &id, generation, now) {
                    draft.put(NodeState::of(state));
                    changed.insert(id);
                }
            }
            Ok(changed)
        };
        match self.states.write_fenced(self.term.fence(), write).await {
            Ok((changed, _)) => {
                let count = changed.len();
                self.changed.mark(changed);
                Ok(count)
            }
            Err(fault) => {
                let mut clock = self.clock.lock();
                ids.iter().for_each(|id| clock.forget(id));
                Err(fault)
            }
        }
    }

    /// Records why configurations could not be set, beside the known states of their nodes.
    pub(crate) async fn note(&self, troubles: HashMap<ComponentId, StepTrouble>) -> Result<(), Fault> {
        if troubles.is_empty() {
            return Ok(());
        }
        let write = move |draft: &mut Draft<'_, ConfigurationStateRecord>| {
            for (id, trouble) in troubles {
                let Some(kept) = draft.get(id.as_str()).map(|kept| kept.message()) else { continue };
                let trouble = trouble.of(PlacingStep::Configuration);
                let noted = ConfigurationState {
                    error: trouble.text().to_string(),
                    error_kind: trouble::kind_to_wire(Some(&trouble)).into(),
                    ..kept.clone()
                };
                if kept.reading() == ConfigurationReading::Known && kept != noted {
                    draft.put(NodeState::of(noted));
                }
            }
            Ok(())
        };
        self.states.write_fenced(self.term.fence(), write).await.map(drop)
    }

    /// Withdraws the observations on record, such as those from before the term. Each state is unknown before any decision
    /// here rests on it, and before any watch shows it. The write is retried until it is on record.
    pub(crate) async fn withdraw_all(&self) {
        let began = Instant::now();
        let withdraw = || {
            let view = self.states.view();
            let known = self.components.enabled().filter_map(|id| Some(view.get(id.as_str())?.message()));
            let known = known.filter(|state| state.reading() != ConfigurationReading::Unspecified);
            let withdrawn: Vec<_> = known.map(|state| ObservedConfiguration::withdrawn(&state)).collect();
            let put = move |draft: &mut Draft<'_, ConfigurationStateRecord>| {
                withdrawn.into_iter().for_each(|state| draft.put(NodeState::of(state)));
                Ok(())
            };
            self.states.write_fenced(self.term.fence(), put)
        };
        let note = |fault, _| {
            tracing::warn!(%fault, "configuration states of before are not withdrawn, trying again");
        };
        pause::until_done(withdraw, note).await;
        self.freshness.withdrew(began);
    }

    /// Marks all earlier answers about all nodes as possibly out of date.
    pub(crate) fn may_have_missed(&self) {
        self.clock.lock().note_gap();
    }

    /// Forgets components that no longer exist, unless they have returned by the time of the write: newer observations
    /// of those would be lost and never requested again.
    pub(crate) async fn forget(&self, mut ids: Vec<ComponentId>) -> Result<(), Fault> {
        let (clock, components) = (Arc::clone(&self.clock), self.components.clone());
        let delete = move |draft: &mut Draft<'_, ConfigurationStateRecord>| {
            ids.retain(|id| components.get(id.as_str()).is_none());
            let mut clock = clock.lock();
            for id in &ids {
                clock.forget(id);
                draft.delete(id.as_str());
            }
            Ok(())
        };
        self.states.write_fenced(self.term.fence(), delete).await.map(drop)
    }
}
