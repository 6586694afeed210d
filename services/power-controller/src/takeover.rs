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
use domain::{
    boot::component::{Component, loss::may_have_been_sent},
    core::trouble::TroubleKind,
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use proto::power::{Delivery, Transition, TransitionMember};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use crate::{
    act::{Actor, Queues, unknown},
    convert,
    driver::Driver,
    engine::{NodeRecords, PollSchedule, PowerEngine},
    journal::{Journal, is_open},
    known::{Known, Pulse, complete},
    loss::{losses, make_good},
    memory::TransitionMemory,
    reporter::Reporter,
    sense::Sense,
    store::{PowerStates, Transitions},
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
    pub(crate) states: Ledger<PowerStates>,
    pub(crate) transitions: Ledger<Transitions>,
    pub(crate) queues: Queues,
    pub(crate) driver: Driver,
    pub(crate) registry: Channel,
    pub(crate) pauses: Pauses,
    /// Memory, held by the engine for its term, and by [`Self::stand_by`] otherwise.
    pub(crate) memory: tokio::sync::Mutex<TransitionMemory>,
}

/// Pauses of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
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
        let journal = Journal::new(self.transitions.clone(), term.clone());
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
        let (actor, sense) = self.engine(known, journal);
        let actor = Arc::new(actor);
        actor.take_over().await;
        let (delivering, following) = (Arc::clone(&actor).deliver(), Arc::clone(&actor).follow());
        tokio::try_join!(
            actor.attend(&mut memory),
            actor.decide(),
            delivering,
            following,
            actor.journal.keep_clear(),
            sense.run()
        )
        .map(|(never, ..)| never)
    }

    fn known(&self, term: Term) -> Known {
        let (components, options) = (self.components.clone(), self.options.clone());
        Known { components, options, states: self.states.clone(), term, pulse: Pulse::default() }
    }

    /// Returns the parts of the engine, which have read the record: an attempt in the journal is not made again.
    fn engine(&self, known: Known, journal: Journal) -> (Actor, Sense) {
        let Pauses { follow, longest, step, poll } = self.pauses;
        let polls = PollSchedule::new(follow, longest, step);
        let engine = Arc::new(Mutex::new(PowerEngine::new(NodeRecords::recall(journal.all()), polls)));
        let (results, shown) = mpsc::channel(MOST_RESULTS);
        let (driver, queues) = (self.driver.clone(), self.queues.clone());
        let sense = Sense::new(known.clone(), driver, queues, Arc::clone(&engine), shown, poll);
        let reporter = Reporter::new(self.registry.clone(), known.term.clone());
        let actor = Actor {
            known,
            queues: self.queues.clone(),
            journal,
            driver: self.driver.clone(),
            reporter,
            engine,
            results,
        };
        (actor, sense)
    }
}

impl Actor {
    /// Puts transitions that were being sent in doubt, continues every open transition, and queues every node.
    async fn take_over(&self) {
        let open: Vec<_> = self.journal.all().into_iter().filter(|one| is_open(one)).collect();
        let in_doubt: Vec<_> = open.iter().filter(|one| self.is_in_doubt(one)).collect();
        for one in in_doubt.iter().filter(|one| one.delivery() != Delivery::Unknown) {
            self.doubt(one).await;
        }
        if self.known.term.follows_another() {
            in_doubt.iter().for_each(|one| {
                self.engine.lock().transitions.inherit_doubt(&one.id, Instant::now().into_std())
            });
        }
        open.iter().for_each(|transition| self.go_on_with(transition));
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
                restored.transitions.iter().for_each(|transition| self.take_up(transition));
                is_restored = restored.is_whole;
            }
            let open = memory.learn();
            if is_restored {
                memory.keep_recorded();
            }
            let abandoned = open.iter().filter(|transition| transition.abandoned_at.is_some());
            abandoned.for_each(|transition| self.go_on_with(transition));
        }
    }

    /// Continues a transition that may have been passed over while it was missing. A transition in doubt is left out,
    /// because this engine may be searching for it right now, and must not do so twice at a time.
    fn take_up(&self, transition: &Transition) {
        if transition.delivery() != Delivery::Unknown {
            self.go_on_with(transition);
        }
    }

    /// Returns whether a call may have been made whose answer is not on record.
    fn is_in_doubt(&self, transition: &Transition) -> bool {
        match transition.delivery() {
            Delivery::Sent | Delivery::Unknown => true,
            Delivery::Prepared => {
                transition.members.iter().any(|member| self.may_have_been_sent(transition, member))
            }
            Delivery::Unspecified | Delivery::Accepted | Delivery::Refused | Delivery::Finished => false,
        }
    }

    fn may_have_been_sent(&self, transition: &Transition, member: &TransitionMember) -> bool {
        let component = self.known.components.get(&member.id);
        convert::action(transition).is_none_or(|action| {
            may_have_been_sent(component.as_deref(), action, member.generation, member.attempt)
        })
    }

    /// Puts a transition in doubt that was being sent.
    async fn doubt(&self, sent: &Transition) {
        let text = match sent.delivery() {
            Delivery::Prepared => "it is not known whether this was sent",
            _ => "the service stopped before the answer came",
        };
        if let Err(lost) = self.journal.put(unknown(sent, text)).await {
            tracing::info!(transition = sent.id, why = %lost, "role lost during take-over");
        }
    }

    fn go_on_with(&self, transition: &Transition) {
        let id = [transition.id.as_str().into()];
        match transition.delivery() {
            Delivery::Prepared => {
                let trouble = convert::trouble(transition);
                if let Some(waits) = trouble.filter(|trouble| trouble.kind() == TroubleKind::Waiting) {
                    self.engine.lock().transitions.show(&transition.id, &waits, Instant::now().into_std());
                }
                self.queues.undelivered.mark(id);
            }
            Delivery::Sent | Delivery::Unknown => self.queues.undelivered.mark(id),
            Delivery::Accepted => self.queues.unfollowed.mark(id),
            Delivery::Unspecified | Delivery::Refused | Delivery::Finished => {}
        }
    }
}
