//! The engine of one term: built from the record when this replica acquires the role, and dropped when it loses the
//! role.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Channel,
    kinds::options::OptionsRecord,
    lease::{Role, Term},
    observe::mirror::Mirror,
    store::ledger::Ledger,
};
use domain::boot::component::Component;
use futures_util::StreamExt;
use parking_lot::Mutex;
use proto::power::Transition;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    driver::PowerUpstream,
    engine::{EngineEvent, PollSchedule, PowerEngine, UpstreamTraits},
    journal::TransitionJournal,
    known::{DecisionData, ReadingFreshness, complete},
    loss::{losses, make_good},
    memory::TransitionMemory,
    queues::EngineQueues,
    reporter::ActionReporter,
    runtime::{PowerInbox, PowerOutbox, PowerRuntime},
    sense::PowerPoller,
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
    /// Memory, held by the engine for its term, and by [`Self::stand_by`] otherwise.
    pub(crate) memory: tokio::sync::Mutex<TransitionMemory>,
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

    /// Remembers the open transitions, without end, while another replica holds the `role`.
    pub(crate) async fn stand_by(self: Arc<Self>, role: Role) -> anyhow::Result<Infallible> {
        let mut terms = std::pin::pin!(role.terms());
        let mut is_held = false;
        loop {
            let standing_by = async {
                match is_held {
                    true => std::future::pending().await,
                    false => self.memory.lock().await.stand_by().await,
                }
            };
            tokio::select! {
                biased;
                Some(term) = terms.next() => is_held = term.is_some(),
                () = standing_by => {}
            }
        }
    }

    /// Reads power, and decides and carries out actions, until the term is over and this future is dropped. It may stop
    /// anywhere: everything under way is on record.
    pub(crate) async fn act(self: Arc<Self>, term: Term) -> anyhow::Result<Infallible> {
        self.complete().await;
        let mut memory = self.memory.lock().await;
        let journal = TransitionJournal::new(self.transitions.clone(), term.clone());
        memory.catch_up().await;
        if make_good(&journal, losses(&memory, &journal, |_| false)).await.is_whole {
            memory.keep_recorded();
        }
        // Writes and reports of the last holder have arrived before any decision.
        self.states.catch_up().await;
        let is_told = timeout(ANSWER, self.components.catch_up()).await.is_ok();
        let known = self.known(term.clone());
        known.withdraw_inherited(is_told).await;
        term.took_over();

        let _open = self.queues.open();
        let (runtime, inbox, poller) = self.engine(known, journal);
        let runtime = Arc::new(runtime);
        runtime.take_over(is_told).await;
        tokio::try_join!(
            runtime.attend(&mut memory),
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
            task_deadline: driver.task_deadline(),
        };
        let polls = PollSchedule::new(follow, longest, step);
        let engine = Arc::new(Mutex::new(PowerEngine::new(&journal.all(), polls, upstream)));
        let (results, shown) = mpsc::channel(MOST_RESULTS);
        let poller =
            PowerPoller::new(known.clone(), driver.clone(), queues.clone(), Arc::clone(&engine), shown, poll);
        let reporter = ActionReporter::new(self.registry.clone(), known.term.clone());
        let (outbox, inbox) = PowerOutbox::new();
        let runtime = PowerRuntime { known, queues, journal, driver, reporter, engine, results, outbox };
        (runtime, inbox, poller)
    }
}

impl PowerRuntime {
    /// Continues every open transition, and queues every node. `is_told`: the components are as the registry has them.
    async fn take_over(&self, is_told: bool) {
        let follows_another = self.known.term.follows_another();
        self.handle(EngineEvent::TookOver { follows_another, is_told }).await;
        let nodes = self.known.nodes();
        self.queues.unread.mark(nodes.iter().cloned());
        self.queues.undecided.mark(nodes);
    }

    /// Follows the record without end: operators abandon transitions there, and commits may be lost.
    async fn attend(&self, memory: &mut TransitionMemory) -> anyhow::Result<Infallible> {
        loop {
            let mut is_restored = false;
            if memory.hear().await {
                let is_over = |transition: &Transition| self.engine.lock().nodes.are_over(transition);
                let losses = losses(memory, &self.journal, is_over);
                let restored = make_good(&self.journal, losses).await;
                self.handle(EngineEvent::Restored(restored.transitions)).await;
                is_restored = restored.is_whole;
            }
            let open = memory.learn();
            if is_restored {
                memory.keep_recorded();
            }
            for transition in open.into_iter().filter(|transition| transition.abandoned_at.is_some()) {
                self.handle(EngineEvent::Abandoned(transition)).await;
            }
        }
    }
}
