//! Carries out the commands of the engine and feeds their outcomes back as events. Nothing is decided here.

mod ask;
mod look;
mod polls;

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{kinds::options::OptionsRecord, process::pause};
use domain::{
    boot::{bos::options::Options, component::Component, power::PowerObservation},
    core::id::ComponentId,
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::Instrument;

pub(crate) use self::look::{LatestLook, LookRequests, look};
use self::{
    look::{LookRequest, MOST_LOOKS},
    polls::PollAnswers,
};
use crate::{
    driver::PowerUpstream,
    engine::{
        EngineCommand, EngineEvent, PointInTime, PollAnswer, PowerFacts, SharedEngine, ShownPower, StepPause,
        TransitionId, UpstreamCall,
    },
    journal::{RoleLost, TransitionJournal},
    known::DecisionData,
    queues::EngineQueues,
    reporter::ActionReporter,
};

/// Components decided on in one round: a whole machine, so that its nodes share few transitions.
const MOST_DECISIONS: usize = 20_000;

/// Transitions that take a step together.
const MOST_STEPS: usize = 64;

/// Calls to the upstream at a time. A machine of 100,000 nodes needs 40 for one action on all nodes; further calls
/// would only wait in the upstream.
const MOST_CALLS: usize = 64;

/// Polls at a time; the upstream's own limit of calls is lower.
const MOST_POLLS: usize = 64;

/// Runtime of the engine for one term.
pub(crate) struct PowerRuntime {
    pub(crate) known: DecisionData,
    pub(crate) queues: EngineQueues,
    pub(crate) journal: TransitionJournal,
    pub(crate) driver: PowerUpstream,
    pub(crate) reporter: ActionReporter,
    pub(crate) engine: SharedEngine,
    /// Channel for the power that results of actions show.
    pub(crate) results: mpsc::Sender<Vec<ShownPower>>,
    pub(crate) outbox: PowerOutbox,
    /// Newest look at the transitions that are not on record.
    pub(crate) latest_look: LatestLook,
}

/// Upstream calls on their way to the task that makes them, and answers on their way back to it.
pub(crate) struct PowerOutbox {
    /// At most some for each open transition.
    upstream_calls: mpsc::UnboundedSender<UpstreamCall>,
    /// Answers to polls that wait for others, at most one for each open transition.
    heard: mpsc::UnboundedSender<PollAnswer>,
    /// Requests for looks.
    looks: LookRequests,
    calls: Semaphore,
    polls: Semaphore,
}

/// Ends of the channels of [`PowerOutbox`], for the task that makes the calls.
pub(crate) struct PowerInbox {
    upstream_calls: mpsc::UnboundedReceiver<UpstreamCall>,
    heard: mpsc::UnboundedReceiver<PollAnswer>,
    looks: mpsc::Receiver<LookRequest>,
}

impl PowerOutbox {
    pub(crate) fn new() -> (Self, PowerInbox) {
        let (upstream_calls, requested) = mpsc::unbounded_channel();
        let (heard, answers) = mpsc::unbounded_channel();
        let (looks, wanted) = mpsc::channel(MOST_LOOKS);
        let outbox = Self {
            upstream_calls,
            heard,
            looks,
            calls: Semaphore::new(MOST_CALLS),
            polls: Semaphore::new(MOST_POLLS),
        };
        (outbox, PowerInbox { upstream_calls: requested, heard: answers, looks: wanted })
    }

    /// Returns the way to ask for looks at transitions that are not on record.
    pub(crate) fn looks(&self) -> LookRequests {
        self.looks.clone()
    }
}

impl PowerFacts for PowerRuntime {
    fn component(&self, id: &str) -> Option<Arc<Component>> {
        self.known.components.get(id)
    }

    fn reading(&self, component: &Component) -> PowerObservation {
        self.known.power(component)
    }

    fn options(&self) -> Option<Options> {
        self.known.options.get(OptionsRecord::KEY).map(|record| record.options.clone())
    }

    fn most_nodes(&self) -> usize {
        self.driver.most_nodes()
    }
}

impl PowerRuntime {
    /// Has components decided on whenever they change or their time has come.
    pub(crate) async fn decide(&self) -> anyhow::Result<Infallible> {
        loop {
            let ids = self.queues.undecided.next(MOST_DECISIONS).await;
            // The registry may have begun another incarnation, of which no component is known yet.
            self.known.complete().await;
            let _turn = self.known.term.turn("decide");
            self.handle(EngineEvent::Changed(ids)).await;
        }
    }

    /// Has open transitions take a step whenever they are queued. A step may wait for the registry, which must not delay
    /// others: transitions in doubt are searched for and abandoned ones end meanwhile.
    pub(crate) async fn deliver(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let mut steps = JoinSet::new();
        loop {
            tokio::select! {
                ids = self.queues.undelivered.next(MOST_STEPS) => {
                    steps.spawn(Arc::clone(&self).step(ids).in_current_span());
                }
                Some(done) = steps.join_next() => done.context("a step of transitions")?,
            }
        }
    }

    async fn step(self: Arc<Self>, ids: Vec<TransitionId>) {
        let _turn = self.known.term.turn("deliver");
        self.handle(EngineEvent::Due(ids)).await;
    }

    /// Makes the upstream calls of the engine, and polls transitions when they are due.
    pub(crate) async fn ask(self: Arc<Self>, mut inbox: PowerInbox) -> anyhow::Result<Infallible> {
        let mut answers = PollAnswers::default();
        let mut polling = JoinSet::new();
        let mut others = JoinSet::new();
        loop {
            let due = answers.due(polling.is_empty());
            tokio::select! {
                // A call that a poll leads to counts before the end of the poll does.
                biased;
                Some(call) = inbox.upstream_calls.recv() => match call {
                    UpstreamCall::Poll { .. } => {
                        drop(polling.spawn(Arc::clone(&self).pursue(call).in_current_span()));
                    }
                    other => drop(others.spawn(Arc::clone(&self).pursue(other).in_current_span())),
                },
                Some(request) = inbox.looks.recv() => {
                    let runtime = Arc::clone(&self);
                    others.spawn(async move { runtime.answer_look(request).await }.in_current_span());
                }
                Some(answer) = inbox.heard.recv() => {
                    answers.add(answer, self.engine.lock().polls.patience());
                }
                ids = self.queues.unfollowed.next(MOST_POLLS), if polling.len() < MOST_POLLS => {
                    for id in ids {
                        polling.spawn(Arc::clone(&self).apply(EngineEvent::PollDue(id)).in_current_span());
                    }
                }
                Some(polled) = polling.join_next() => polled.context("a poll of a transition")?,
                Some(done) = others.join_next() => done.context("a question to the upstream")?,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let heard = EngineEvent::Heard(answers.take());
                    others.spawn(Arc::clone(&self).apply(heard).in_current_span());
                }
            }
        }
    }

    async fn apply(self: Arc<Self>, event: EngineEvent) {
        let _turn = matches!(event, EngineEvent::Heard(_)).then(|| self.known.term.turn("follow"));
        self.handle(event).await;
    }

    /// Tells the engine of an event and carries out its commands.
    pub(crate) async fn handle(&self, event: EngineEvent) {
        if let Err(lost) = self.try_to_handle(event).await {
            tracing::info!(why = %lost, "transitions are left to the holder of the role");
        }
    }

    /// As [`Self::handle`].
    ///
    /// # Errors
    /// When the term is over. The commands that were left are void then.
    async fn try_to_handle(&self, event: EngineEvent) -> Result<(), RoleLost> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let commands = self.engine.lock().apply(event, self, PointInTime::now());
            for command in commands {
                events.extend(self.carry_out(command).await?);
            }
        }
        Ok(())
    }

    /// Carries out one command. Returns the event that answers it, if one does at once.
    async fn carry_out(&self, command: EngineCommand) -> Result<Option<EngineEvent>, RoleLost> {
        match command {
            EngineCommand::Begin(wanted) => {
                let begun = self.journal.begin(wanted.clone()).await?;
                return Ok(Some(EngineEvent::Begun { wanted, begun }));
            }
            EngineCommand::Announce { reports, announcement } => {
                let stale = self.reporter.report(reports).await;
                return Ok(Some(EngineEvent::Announced { announcement, stale }));
            }
            EngineCommand::Report(reports) => drop(self.reporter.report(reports).await),
            EngineCommand::Write(changes) => self.journal.write(changes).await?,
            EngineCommand::Tell(event) => return Ok(Some(event)),
            // The receivers are gone only when the term ends, and the next one reads all power again.
            EngineCommand::Ask(call) => drop(self.outbox.upstream_calls.send(call)),
            EngineCommand::Collect(answer) => drop(self.outbox.heard.send(answer)),
            EngineCommand::ShowPower(states) if states.is_empty() => {}
            EngineCommand::ShowPower(states) => drop(self.results.send(states).await),
            EngineCommand::Step { ids, pause } => self.queue_steps(ids, pause),
            EngineCommand::Poll { ids, at, failures } => self.queue_polls(ids, at.into(), failures),
            EngineCommand::Decide { ids, pause } if pause.is_zero() => self.queues.undecided.mark(ids),
            EngineCommand::Decide { ids, pause } => {
                let at = Instant::now() + pause;
                ids.into_iter().for_each(|id: ComponentId| self.queues.undecided.mark_at(id, at));
            }
            EngineCommand::Rest(ids) => ids.iter().for_each(|id| self.queues.undecided.unmark(id)),
            EngineCommand::Read(ids) => self.queues.unread.mark(ids),
            EngineCommand::GiveUp(upstream_id) => self.driver.give_up(&upstream_id),
        }
        Ok(None)
    }

    fn queue_steps(&self, ids: Vec<TransitionId>, step_pause: StepPause) {
        for id in ids {
            let pause = wait(step_pause);
            match pause.is_zero() {
                true => self.queues.undelivered.mark([id]),
                false => self.queues.undelivered.mark_at(id, Instant::now() + pause),
            }
        }
    }

    fn queue_polls(&self, ids: Vec<TransitionId>, at: Instant, failures: u32) {
        let now = Instant::now();
        let earliest = if failures == 0 { now } else { now + pause::after(failures) };
        for id in ids {
            match at.max(earliest) <= now {
                true => self.queues.unfollowed.mark([id]),
                false => self.queues.unfollowed.mark_at(id, at.max(earliest)),
            }
        }
    }
}

/// Returns the time until a step.
fn wait(step_pause: StepPause) -> Duration {
    match step_pause {
        StepPause::Backoff { failures } => pause::after(failures),
        StepPause::Fixed(pause) => pause,
    }
}
