//! What the configuration upstream says of nodes, and how fresh that is.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use chassis::{
    Fault, clock,
    convert::{observation, time, trouble},
    kinds::OptionsRecord,
    lease::{Custody, Fence, Takeover},
    ledger::{Draft, Ledger},
    mirror::Mirror,
    pause,
    work::WorkQueue,
};
use domain::{
    boot::{component::Component, configuration, evaluation},
    core::id::ComponentId,
};
use parking_lot::Mutex;
use proto::configuration::{ConfigurationReading, ConfigurationState};
use tokio::time::{Instant, sleep};

use crate::{
    follow::Stake,
    order::Order,
    power::PowerStates,
    sighting::Sighting,
    silence::Silence,
    step::Step,
    store::ConfigurationStates,
    trouble::{StepTrouble, waiting_for},
    upstream::{
        Failure,
        configuration::{Driver, News, Question, Said},
    },
};

/// What is waited for when an answer names a node and says nothing about it that can be used.
const UNREADABLE: &str = "the configuration upstream: what it says of this node cannot be read";

/// Asks the upstream, and keeps its answers with the generation that was current when it was asked.
///
/// Answers may overtake each other: one that was asked for earlier never replaces one that was asked for
/// later. Only answers that differ from what is kept are written.
pub(crate) struct Observer {
    pub(crate) states: Ledger<ConfigurationStates>,
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Which nodes run, and have to be known before they are switched off.
    pub(crate) power: PowerStates,
    /// Which components are this replica's.
    pub(crate) custody: Custody,
    pub(crate) upstream: Driver,
    pub(crate) order: Arc<Mutex<Order>>,
    /// Since when nobody has answered what is so for components.
    pub(crate) silence: Mutex<Silence>,
    /// Is told of components of which something else is known now.
    pub(crate) changed: WorkQueue<ComponentId>,
}

/// Why nothing could be learnt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    /// The upstream did not answer.
    #[error("{0}")]
    Upstream(#[from] Failure),
    /// The answer could not be kept.
    #[error("configuration states cannot be stored: {0}")]
    Store(#[from] Fault),
}

impl ObserveError {
    /// Logs an answer that could not be kept. Trouble of the upstream is logged where it is called.
    pub(crate) fn log(&self) {
        match self {
            Self::Upstream(failure) => tracing::debug!(%failure, "configuration states are not known"),
            Self::Store(fault) => tracing::warn!(%fault, "configuration states are not stored"),
        }
    }
}

/// Why the upstream has to be asked about a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing is known about it in this generation.
    Evidence { generation: u64 },
    /// What is known decides about it, and may have changed unheard: what is told may get lost.
    Audit { generation: u64 },
}

/// What a look for changes took and brought.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Yield {
    /// Pages of lists that were read.
    pub(crate) pages: usize,
    /// Of how many something else is known now.
    pub(crate) brought: usize,
}

/// Questions with the time at which they are asked.
pub(crate) struct Inquiry {
    pub(crate) about: Vec<Question>,
    asked: u64,
    /// Under what the components were this replica's then: another has asked anew about those that went meanwhile.
    fence: Fence,
}

impl Inquiry {
    /// What `said` means for those that were asked about, each with its generation.
    fn learnt(&self, said: Vec<Said>) -> Vec<(ComponentId, Sighting, u64)> {
        let mut said: HashMap<_, _> = said.into_iter().collect();
        let learnt = self.about.iter().filter_map(|question| {
            let sighting = Sighting::of(said.remove(question.id.as_str())?);
            let sighting = sighting.unwrap_or_else(|| Sighting::Lost(waiting_for(UNREADABLE)));
            Some((question.id.clone(), sighting, question.generation))
        });
        learnt.collect()
    }
}

impl Observer {
    /// Why the upstream has to be asked about a component; none when what is known will do, or when the
    /// component is not enabled and nobody needs to know, or nobody does before it has booted.
    pub(crate) fn need(&self, id: &ComponentId) -> Option<Need> {
        let component = self.components.get(id.as_str()).filter(|component| component.is_enabled())?;
        let generation = component.generation;
        let last = self.states.view().get(id.as_str());
        let known = last.filter(|last| last.reading() == ConfigurationReading::Known);
        let is_known = known.as_ref().is_some_and(|known| known.generation == generation);
        if !is_known || !self.order.lock().is_fresh(id) {
            let known_at = known.and_then(|known| known.observed_at).map(time::from_wire);
            let power = self.power.of(&component).observation;
            let needed = !configuration::can_wait(&component, &power, known_at, clock::now());
            return needed.then_some(Need::Evidence { generation });
        }
        let audited = self.upstream.may_change() && configuration::decides(&component);
        audited.then_some(Need::Audit { generation })
    }

    /// How much it matters what the upstream says of a component from now on.
    pub(crate) fn stake(&self, id: &ComponentId) -> Stake {
        match (self.need(id), self.components.get(id.as_str())) {
            (Some(Need::Audit { generation }), Some(component)) => {
                let state = self.states.view().get(id.as_str());
                let known = observation::configuration(state.as_deref(), generation);
                let awaited = evaluation::awaits_configuration(&component, &known);
                if awaited { Stake::Awaited } else { Stake::Known }
            }
            (Some(Need::Evidence { .. }) | None, _) | (_, None) => Stake::None,
        }
    }

    /// Whether the upstream has answered in this generation and left the node out.
    pub(crate) fn is_missing(&self, id: &ComponentId) -> bool {
        let Some(component) = self.components.get(id.as_str()) else { return false };
        let state = self.states.view().get(id.as_str());
        state.is_some_and(|state| {
            state.generation == component.generation && state.reading() == ConfigurationReading::Missing
        })
    }

    /// How long the upstream may take to begin an answer.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().cfs_read_timeout.into())
    }

    /// Asks what is so for components, all of it. When nobody has answered for too long, what is known about them
    /// does not count any more.
    pub(crate) async fn look(&self, ids: &[ComponentId]) -> Result<(), ObserveError> {
        let (inquiry, since) = (self.inquire(ids), Instant::now());
        if inquiry.about.is_empty() {
            return Ok(());
        }
        match self.upstream.ask(&inquiry.about, self.deadline()).await {
            Ok(said) => {
                self.silence.lock().ends();
                self.keep_answer(&inquiry, said).await?;
                Ok(())
            }
            Err(failure) => {
                let too_long = self.silence.lock().lasts(since, Instant::now());
                if too_long {
                    self.lose(&inquiry, &failure).await?;
                }
                Err(failure.into())
            }
        }
    }

    /// Asks what has changed of components. It may leave out any of them, so nothing follows from its failure: what is
    /// known counts until [`Self::look`] finds otherwise.
    pub(crate) async fn follow(&self, ids: &[ComponentId]) -> Result<Yield, ObserveError> {
        let inquiry = self.inquire(ids);
        if inquiry.about.is_empty() {
            return Ok(Yield::default());
        }
        let News { said, pages } = self.upstream.news(&inquiry.about, self.deadline()).await?;
        Ok(Yield { pages, brought: self.keep_answer(&inquiry, said).await? })
    }

    /// What is asked now: about those components that exist and are this replica's, in their generation.
    pub(crate) fn inquire(&self, ids: &[ComponentId]) -> Inquiry {
        let asked = self.order.lock().tick();
        let fence = self.custody.fence_of_those(ids.iter().map(ComponentId::as_str));
        let about = ids.iter().filter(|id| self.custody.still_has(&fence, id.as_str())).filter_map(|id| {
            let component = self.components.get(id.as_str())?;
            Some(Question {
                id: component.id.clone(),
                generation: component.generation,
                wanted: component.desired_configuration().map(str::to_owned),
                session: component.session_name().to_owned(),
                missing: self.is_missing(id),
            })
        });
        let about = about.collect();
        Inquiry { about, asked, fence }
    }

    /// Keeps the answer to an inquiry. Gives of how many it says something new.
    async fn keep_answer(&self, inquiry: &Inquiry, said: Vec<Said>) -> Result<usize, Fault> {
        let asked = inquiry.asked;
        self.keep(&inquiry.fence, inquiry.learnt(said), move |order, id, generation| {
            order.admits_answer(id, asked, generation).then_some(generation)
        })
        .await
    }

    /// Keeps what the upstream has just confirmed, about components as they were before it was asked to do that.
    pub(crate) async fn keep_confirmation(&self, before: &Inquiry, said: Vec<Said>) -> Result<(), Fault> {
        let told = self.order.lock().tick();
        self.keep(&before.fence, before.learnt(said), move |order, id, generation| {
            order.admits_confirmation(id, told, generation).then_some(generation)
        })
        .await
        .map(drop)
    }

    /// Takes what the upstream said on its own account.
    pub(crate) async fn told(&self, said: Vec<Said>) -> Result<(), Fault> {
        let told = self.order.lock().tick();
        let learnt = said.into_iter().filter_map(|(id, observation)| {
            let component = self.components.get(&id)?;
            Some((component.id.clone(), Sighting::of(observation)?, ()))
        });
        let learnt: Vec<_> = learnt.collect();
        let fence = self.custody.fence_of_those(learnt.iter().map(|(id, ..)| id.as_str()));
        self.keep(&fence, learnt, move |order, id, ()| order.admits_news(id, told)).await.map(drop)
    }

    /// What is known of these is no evidence any more, unless something was learnt since the inquiry.
    pub(crate) async fn lose(&self, inquiry: &Inquiry, why: &Failure) -> Result<(), Fault> {
        let text = waiting_for(why);
        let lost = inquiry
            .about
            .iter()
            .map(|question| (question.id.clone(), Sighting::Lost(Arc::clone(&text)), question.generation));
        let asked = inquiry.asked;
        self.keep(&inquiry.fence, lost.collect(), move |order, id, generation| {
            order.is_newest(id, asked).then_some(generation)
        })
        .await
        .map(drop)
    }

    /// Keeps what was learnt, each with the generation that `admits` gives for it, if any. What is about components
    /// that went since `fence` was given is left out. Gives of how many something else is known now.
    async fn keep<C: Send + 'static>(
        &self,
        fence: &Fence,
        mut learnt: Vec<(ComponentId, Sighting, C)>,
        admits: impl Fn(&mut Order, &ComponentId, C) -> Option<u64> + Send + 'static,
    ) -> Result<usize, Fault> {
        learnt.retain(|(id, ..)| self.custody.still_has(fence, id.as_str()));
        let ids: Vec<_> = learnt.iter().map(|(id, ..)| id.clone()).collect();
        let fence = self.custody.fence_of_those(ids.iter().map(ComponentId::as_str));
        let (order, at) = (Arc::clone(&self.order), clock::now());
        let write = move |draft: &mut Draft<'_, ConfigurationState>| {
            // Answers are put in order here, where writes are.
            let mut order = order.lock();
            let mut changed = HashSet::new();
            for (id, sighting, context) in learnt {
                let Some(generation) = admits(&mut order, &id, context) else { continue };
                let kept = draft.get(id.as_str());
                if let Some(state) = sighting.replaces(kept.as_deref(), &id, generation, at) {
                    draft.put(state);
                    changed.insert(id);
                }
            }
            Ok(changed)
        };
        match self.states.write_fenced(fence, write).await {
            Ok((changed, _)) => {
                let count = changed.len();
                self.changed.mark(changed);
                Ok(count)
            }
            Err(fault) => {
                self.order.lock().forget(&ids);
                Err(fault)
            }
        }
    }

    /// Notes why configurations could not be set, beside what is known of their nodes.
    pub(crate) async fn note(&self, troubles: HashMap<ComponentId, StepTrouble>) -> Result<(), Fault> {
        if troubles.is_empty() {
            return Ok(());
        }
        let fence = self.custody.fence_of_those(troubles.keys().map(ComponentId::as_str));
        let still: HashMap<_, _> =
            troubles.into_iter().filter(|(id, _)| self.custody.still_has(&fence, id.as_str())).collect();
        let write = move |draft: &mut Draft<'_, ConfigurationState>| {
            for (id, trouble) in still {
                let Some(kept) = draft.get(id.as_str()) else { continue };
                let trouble = trouble.of(Step::Configuration);
                let noted = ConfigurationState {
                    error: trouble.text().to_string(),
                    error_kind: trouble::kind_to_wire(Some(&trouble)).into(),
                    ..ConfigurationState::clone(&kept)
                };
                if kept.reading() == ConfigurationReading::Known && *kept != noted {
                    draft.put(noted);
                }
            }
            Ok(())
        };
        self.states.write_fenced(fence, write).await.map(drop)
    }

    /// Withdraws observations from before components came to this replica. Each is unknown before anything is decided by
    /// it here, and before any watch shows it. The write is retried until it is on record, or the components are another
    /// replica's again.
    pub(crate) async fn withdraw_inherited(&self, takeover: &Takeover) {
        let mut failures = 0;
        loop {
            let rest = self.custody.rest_of(takeover);
            if !rest.gains_any() {
                return;
            }
            let view = self.states.view();
            let ids = self.components.enabled().filter(|id| rest.gains(id.as_str()));
            let known = ids.filter_map(|id| view.get(id.as_str()));
            let known = known.filter(|state| state.reading() != ConfigurationReading::Unspecified);
            let withdrawn: Vec<_> = known.map(|state| Sighting::withdrawn(&state)).collect();
            let Some(fence) = rest.fence(withdrawn.iter().map(|state| state.id.as_str())) else { return };
            let put = move |draft: &mut Draft<'_, ConfigurationState>| {
                withdrawn.into_iter().for_each(|state| draft.put(state));
                Ok(())
            };
            let Err(fault) = self.states.write_fenced(fence, put).await else { return };
            tracing::warn!(%fault, "configuration states of before are not withdrawn, trying again");
            failures += 1;
            sleep(pause::after(failures)).await;
        }
    }

    /// What was learnt about components that come or go is old: another replica has learnt more since.
    pub(crate) fn hand_over(&self, ids: &[ComponentId]) {
        self.order.lock().forget(ids);
    }

    /// What was said of any node until now may be out of date.
    pub(crate) fn may_have_missed(&self) {
        self.order.lock().may_have_missed();
    }

    /// Forgets components that no longer exist, unless they have come back by the time of the write: what was
    /// learnt about those since would be lost, and nothing would ask for it again.
    pub(crate) async fn forget(&self, mut ids: Vec<ComponentId>, fence: Fence) -> Result<(), Fault> {
        let (order, components) = (Arc::clone(&self.order), self.components.clone());
        let delete = move |draft: &mut Draft<'_, ConfigurationState>| {
            ids.retain(|id| components.get(id.as_str()).is_none());
            order.lock().forget(&ids);
            ids.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        };
        self.states.write_fenced(fence, delete).await.map(drop)
    }
}
