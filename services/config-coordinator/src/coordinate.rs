//! The loop that prepares or configures queued components by the rules.

use std::{sync::Arc, time::Duration};

use chassis::{
    Fault,
    kinds::options::OptionsRecord,
    lease::Fence,
    observe::{mirror::Mirror, work::WorkQueue},
    process::clock,
    store::ledger::{Draft, Ledger},
};
use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component},
        configuration::{
            self, ConfigurationDecision,
            preparation::{self, PreparationDecision},
        },
    },
    core::{id::ComponentId, refusal, time::Timestamp},
};
use tokio::time::Instant;

use crate::{
    claims::{ClaimAnswer, WorkClaims},
    configure::NodeConfigurator,
    groups,
    observe::ConfigurationObserver,
    power::PowerMirror,
    preparation::DuePreparation,
    prepare::{BootPreparer, PreparationRound},
    rounds,
    store::{BootScript, BootScriptTable, ConfigurationStateTable},
    trouble::StepTrouble,
    upstream::configuration::ConfigurationMode,
};

/// Components in one round: a whole machine, so that one call serves all components with the same boot data. The round
/// makes one report to the registry.
const BATCH: usize = 20_000;

/// Time within which the nodes of a large machine follow each other after a common switch: their boot data are prepared
/// for all of them at once.
const GATHERING: Duration = Duration::from_millis(200);

/// Prepares and configures components.
pub(crate) struct BootCoordinator {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Power of nodes; only nodes that are off may be prepared.
    pub(crate) power: PowerMirror,
    /// Scripts of our own boot script server, if there is one.
    pub(crate) scripts: Ledger<BootScriptTable>,
    pub(crate) states: Ledger<ConfigurationStateTable>,
    /// Fencing token of the term.
    pub(crate) fence: Fence,
    pub(crate) observer: Arc<ConfigurationObserver>,
    pub(crate) preparer: BootPreparer,
    pub(crate) configurator: Arc<NodeConfigurator>,
    /// Queued components, because their record or configuration state changed.
    pub(crate) queue: WorkQueue<ComponentId>,
    /// Claims for both kinds of work: a configuration under way for a running node must have arrived before the next
    /// boot is prepared.
    pub(crate) claims: WorkClaims<ComponentWork>,
}

/// Kind of work on a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComponentWork {
    Prepare { generation: u64, attempt: u32 },
    Configure { generation: u64, configuration: String },
}

/// Work of one round.
#[derive(Default)]
struct RoundAgenda {
    preparations: Vec<DuePreparation>,
    configurations: Vec<DueConfiguration>,
    /// Components that no longer exist.
    gone: Vec<ComponentId>,
}

/// Configuration for a running component.
struct DueConfiguration {
    id: ComponentId,
    configuration: String,
    session: String,
}

impl BootCoordinator {
    /// Works on queued components without end. The mirror must be complete.
    pub(crate) async fn run(&self) {
        rounds::run(&self.queue, BATCH, GATHERING, |ids| self.round(ids)).await;
    }

    /// Waits until all writes and reports of the last holder of the role have arrived.
    pub(crate) async fn catch_up(&self) {
        let preparations = &self.preparer.preparations;
        tokio::join!(
            self.states.catch_up(),
            preparations.catch_up(),
            self.scripts.catch_up(),
            self.components.catch_up()
        );
    }

    /// Returns all components, and deleted ones with records left.
    pub(crate) fn all(&self) -> Vec<ComponentId> {
        let known = self.components.all().into_iter().map(|component| component.id.clone());
        known.chain(self.leftovers()).collect()
    }

    /// Queues components.
    pub(crate) fn mark(&self, ids: Vec<ComponentId>) {
        self.queue.mark(ids);
    }

    /// Returns components with records that were deleted unnoticed.
    fn leftovers(&self) -> Vec<ComponentId> {
        let states = self.states.view().all();
        let remembered = states.iter().filter_map(|state| ComponentId::parse(state.id()).ok());
        let prepared = self.preparer.preparations.view().all();
        let remembered = remembered.chain(prepared.iter().map(|record| record.id.clone()));
        let scripts = self.scripts.view().all();
        let remembered = remembered.chain(scripts.iter().map(|script| script.id.clone()));
        remembered.filter(|id| self.components.get(id.as_str()).is_none()).collect()
    }

    async fn round(&self, ids: Vec<ComponentId>) {
        // The registry may have begun another incarnation, of which no component is known yet.
        tokio::join!(self.components.reached(1), self.options.reached(1));
        let _turn = self.observer.term.turn("coordinate");
        let RoundAgenda { preparations, configurations, gone } = self.agenda(ids);
        tokio::join!(self.prepare(preparations), self.configure(configurations), self.forget(gone));
    }

    fn agenda(&self, ids: Vec<ComponentId>) -> RoundAgenda {
        let (options, now) = (self.options.in_force(), Instant::now());
        let mut agenda = RoundAgenda::default();
        for id in ids {
            match self.components.get(id.as_str()) {
                Some(component) => self.plan(component, &mut agenda, &options, now),
                None => {
                    self.rest(&id);
                    agenda.gone.push(id);
                }
            }
        }
        agenda
    }

    fn plan(&self, component: Arc<Component>, agenda: &mut RoundAgenda, options: &Options, now: Instant) {
        let (generation, at) = (component.generation, clock::now());
        let power = self.power.of(&component);
        match preparation::decide(&component, &power, self.refused_at(&component), options, at) {
            PreparationDecision::Prepare(preparation) => {
                let work = ComponentWork::Prepare { generation, attempt: preparation.attempt };
                if self.claimed(&component.id, work, now) {
                    agenda.preparations.push(DuePreparation { component, preparation });
                }
            }
            PreparationDecision::Wait { until } => {
                self.claims.idle(&component.id);
                self.queue.mark_at(component.id.clone(), now + until.since(at));
            }
            PreparationDecision::Nothing { reason: _ } => self.plan_configuration(component, agenda, now),
        }
    }

    /// Returns when an upstream refused the data of the last spent power-on attempt, if that is how it ended.
    fn refused_at(&self, component: &Component) -> Option<Timestamp> {
        let record = self.preparer.preparations.view().get(component.id.as_str())?;
        record.refused_at(component.generation, component.attempts(Action::PoweringOn))
    }

    fn plan_configuration(&self, component: Arc<Component>, agenda: &mut RoundAgenda, now: Instant) {
        let generation = component.generation;
        match configuration::decide(&component, &self.observer.known(&component)) {
            ConfigurationDecision::Set { configuration, session } => {
                let work = ComponentWork::Configure { generation, configuration: configuration.clone() };
                if self.claimed(&component.id, work, now) {
                    let id = component.id.clone();
                    agenda.configurations.push(DueConfiguration { id, configuration, session });
                }
            }
            ConfigurationDecision::Nothing { reason: _ } => self.rest(&component.id),
        }
    }

    /// Returns whether this round does the work. If the work may not begin yet, the component is queued for later.
    fn claimed(&self, id: &ComponentId, work: ComponentWork, now: Instant) -> bool {
        match self.claims.claim(id, work, now) {
            ClaimAnswer::Granted => true,
            ClaimAnswer::Early(at) => {
                self.queue.mark_at(id.clone(), at);
                false
            }
            // The round that works on the component queues it at its end.
            ClaimAnswer::Busy | ClaimAnswer::Done => false,
        }
    }

    fn rest(&self, id: &ComponentId) {
        self.claims.idle(id);
        self.preparer.placer.end([id]);
        self.queue.unmark(id);
    }

    async fn prepare(&self, due: Vec<DuePreparation>) {
        if due.is_empty() {
            return;
        }
        let PreparationRound { ended, refusing } = self.preparer.prepare(&due).await;
        let ids: Vec<_> = due.into_iter().map(|one| one.component.id.clone()).collect();
        ended.iter().for_each(|id| self.claims.done(id));
        let failed = ids.iter().filter(|id| !ended.contains(*id));
        let (refusing, failed): (Vec<_>, Vec<_>) = failed.partition(|id| refusing.contains(*id));
        self.again(refusing, failed);
        self.queue.mark(ids);
    }

    /// Schedules retries. Components of an upstream that refuses every component wait longer than the others.
    fn again<'a>(
        &self,
        refusing: impl IntoIterator<Item = &'a ComponentId>,
        failed: impl IntoIterator<Item = &'a ComponentId>,
    ) {
        let now = Instant::now();
        self.claims.again_after(refusing, now, refusal::pause);
        self.claims.again(failed, now);
    }

    /// Sets configurations. Afterwards the components are queued again, and those whose configuration still differs
    /// wait for a while: a service that takes a call and does nothing must not be called without end.
    async fn configure(&self, settings: Vec<DueConfiguration>) {
        if settings.is_empty() {
            return;
        }
        let wanted = settings.iter().map(|one| (&one.id, one.configuration.as_str(), one.session.as_str()));
        let groups = groups::by_configuration(wanted, self.configurator.most_nodes());
        let troubles = self.configurator.set(groups, ConfigurationMode::Running).await;
        if troubles.len() < settings.len() {
            tracing::info!(components = settings.len(), failed = troubles.len(), "configurations set");
        }
        let is_refusing =
            |one: &&DueConfiguration| matches!(troubles.get(&one.id), Some(StepTrouble::Refusing(_)));
        let (refusing, others): (Vec<_>, Vec<_>) = settings.iter().partition(is_refusing);
        self.again(refusing.into_iter().map(|one| &one.id), others.into_iter().map(|one| &one.id));
        if let Err(fault) = self.observer.note(troubles).await {
            tracing::warn!(%fault, "why configurations could not be set is not recorded");
        }
        self.queue.mark(settings.into_iter().map(|one| one.id));
    }

    async fn forget(&self, gone: Vec<ComponentId>) {
        if gone.is_empty() {
            return;
        }
        let forgotten = self.try_forget(gone.clone()).await;
        if let Err(fault) = forgotten {
            // Leftover records do no harm, and the next start finds them.
            tracing::warn!(%fault, components = gone.len(), "deleted components are still remembered");
        }
    }

    async fn try_forget(&self, gone: Vec<ComponentId>) -> Result<(), Fault> {
        self.observer.forget(gone.clone()).await?;
        self.preparer.forget(gone.clone()).await?;
        let forget = move |draft: &mut Draft<'_, BootScript>| {
            gone.iter().for_each(|id| draft.delete(id.as_str()));
            Ok(())
        };
        self.scripts.write_fenced(self.fence.clone(), forget).await.map(drop)
    }
}
