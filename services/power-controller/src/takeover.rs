//! The engine of one term: built from the record when this replica acquires the role, and dropped when it loses the
//! role.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Channel,
    kinds::options::OptionsRecord,
    lease::Term,
    observe::{freshness::ReadingFreshness, mirror::Mirror},
    store::ledger::Ledger,
};
use domain::boot::{component::Component, power::transition::PowerTransition};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    driver::PowerUpstream,
    engine::{EngineEvent, PollSchedule, PowerEngine, UpstreamTraits},
    journal::{TransitionJournal, is_open},
    known::{DecisionData, complete},
    queues::EngineQueues,
    reporter::ActionReporter,
    runtime::{LatestLook, PowerInbox, PowerOutbox, PowerRuntime},
    sense::{PowerPoller, ReadingGuard},
    store::{PowerStateTable, TransitionTable},
};

/// Batches of results that may wait for the task that stores them. More would only wait longer.
const MOST_RESULTS: usize = 64;

/// Limit for the wait until the mirror of the components is current. The registry learns of every attempt before it is
/// made, and refuses attempts that others have followed; so the engine does not wait for a registry that does not
/// answer.
const ANSWER: Duration = Duration::from_secs(2);

/// Data that every replica keeps ready, including standbys.
pub(crate) struct PowerSources {
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    pub(crate) states: Ledger<PowerStateTable>,
    pub(crate) transitions: Ledger<TransitionTable>,
    pub(crate) queues: EngineQueues,
    pub(crate) driver: PowerUpstream,
    pub(crate) registry: Channel,
    pub(crate) pauses: EnginePauses,
}

/// Pauses of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnginePauses {
    /// Least time between polls of a transition, where a poll is a call.
    pub(crate) follow: Duration,
    /// Most time until a transition is polled again.
    pub(crate) longest: Duration,
    /// Length of the steps in which the upstream works, if it does.
    pub(crate) step: Option<Duration>,
    /// Time between reads of the power of a node.
    pub(crate) poll: Duration,
}

impl PowerSources {
    /// Waits until components and options are complete.
    pub(crate) async fn complete(&self) {
        complete(&self.components, &self.options).await;
    }

    /// Reads power, and decides and carries out actions, until the term is over and this future is dropped. It may stop
    /// anywhere: everything under way is on record.
    ///
    /// The engine is dropped as well once the database has lost transitions. Another one starts from the records:
    /// whatever else the upstream works on is as foreign to it as the transition of another client.
    pub(crate) async fn act(self: Arc<Self>, term: Term) -> anyhow::Result<Infallible> {
        self.complete().await;
        let mut losses = pin!(self.transitions.view().losses());
        let mut is_after_loss = false;
        loop {
            tokio::select! {
                biased;
                Some(()) = losses.next() => {
                    tracing::warn!("transitions were lost; the engine starts anew from those on record");
                    is_after_loss = true;
                }
                ended = self.run_engine(term.clone(), is_after_loss) => return ended,
            }
        }
    }

    /// Builds the engine from the record, and runs it without end.
    async fn run_engine(&self, term: Term, is_after_loss: bool) -> anyhow::Result<Infallible> {
        self.transitions.catch_up().await;
        let journal = TransitionJournal::new(self.transitions.clone(), term.clone());
        self.driver.keep(&journal.upstream_ids().all);
        // Writes and reports of the last holder have arrived before any decision.
        self.states.catch_up().await;
        let is_told = timeout(ANSWER, self.components.catch_up()).await.is_ok();
        let known = self.known(term.clone());
        known.withdraw_inherited(is_told).await;
        term.took_over();

        let _open = self.queues.open();
        let (runtime, inbox, poller) = self.engine(known, journal);
        let runtime = Arc::new(runtime);
        runtime.take_over(is_after_loss, is_told).await;
        tokio::try_join!(
            runtime.attend(),
            runtime.decide(),
            Arc::clone(&runtime).deliver(),
            Arc::clone(&runtime).ask(inbox),
            runtime.journal.keep_clear(),
            poller.run()
        )
        .map(|(never, ..)| never)
    }

    fn known(&self, term: Term) -> DecisionData {
        let (components, options) = (self.components.clone(), self.options.clone());
        DecisionData {
            components,
            options,
            states: self.states.clone(),
            term,
            freshness: ReadingFreshness::default(),
        }
    }

    /// Returns the parts of the engine, which have read the record: an attempt in the journal is not made again.
    fn engine(
        &self,
        known: DecisionData,
        journal: TransitionJournal,
    ) -> (PowerRuntime, PowerInbox, PowerPoller) {
        let EnginePauses { follow, longest, step, poll } = self.pauses;
        let driver = self.driver.clone();
        let queues = self.queues.clone();
        let upstream = UpstreamTraits {
            follows: driver.follows(),
            aborts: driver.aborts(),
            lists: driver.lists(),
            task_deadline: driver.task_deadline(),
        };
        let polls = PollSchedule::new(follow, longest, step);
        let engine = Arc::new(Mutex::new(PowerEngine::new(&journal.all(), polls, upstream)));
        let (results, shown) = mpsc::channel(MOST_RESULTS);
        let reporter = ActionReporter::new(self.registry.clone(), known.term.clone());
        let (outbox, inbox) = PowerOutbox::new();
        let guard = ReadingGuard::new(known.clone(), driver.clone(), Arc::clone(&engine), outbox.looks());
        let poller = PowerPoller::new(guard, queues.clone(), shown, poll);
        let latest_look = LatestLook::default();
        let runtime =
            PowerRuntime { known, queues, journal, driver, reporter, engine, results, outbox, latest_look };
        (runtime, inbox, poller)
    }
}

impl PowerRuntime {
    /// Continues every open transition, and queues every node. `is_told`: the components are as the registry has them.
    async fn take_over(&self, is_after_loss: bool, is_told: bool) {
        // The calls that the last engine has made may still arrive.
        let follows_another = is_after_loss || self.known.term.follows_another();
        self.handle(EngineEvent::TookOver { follows_another, is_told, is_after_loss }).await;
        let nodes = self.known.nodes();
        self.queues.unread.mark(nodes.iter().cloned());
        self.queues.undecided.mark(nodes);
    }

    /// Follows the record without end: operators abandon transitions there.
    async fn attend(&self) -> anyhow::Result<Infallible> {
        let mut recorded = pin!(self.journal.follow());
        while let Some(batch) = recorded.next().await {
            let waited_for = |one: &&Arc<PowerTransition>| is_open(one) || !one.upstream_id.is_empty();
            let waited_for = batch.changed.iter().filter(waited_for);
            for transition in waited_for.filter(|transition| transition.abandoned_at.is_some()) {
                self.handle(EngineEvent::Abandoned(Arc::clone(transition))).await;
            }
        }
        std::future::pending().await
    }
}
