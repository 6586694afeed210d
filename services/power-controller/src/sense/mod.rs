//! Keeps what is known about the power of every component current: asks when a component begins a new
//! generation, listens for changes, and asks again and again about nodes that are being acted on. An upstream that
//! tells of changes is asked seldom: news are for speed, and a look for the truth.
//!
//! One task does all of it, so that an older reading cannot overwrite a newer one.

mod rhythm;
mod silence;
mod take;

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    mem,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{clock, lease::Handover, memory::leave_room};
use domain::{
    boot::{
        component::Component,
        power::{self, Shown},
    },
    core::{id::ComponentId, time::Timestamp},
};
use futures_util::{Stream, StreamExt};
use proto::power::{PowerReading, PowerState};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing::Instrument;

pub(crate) use self::silence::SILENCE;
use self::{rhythm::Rhythm, silence::Silence};
use crate::{
    act::Queues,
    convert::AskedFor,
    driver::{Driver, Failure, Reading},
    effects::Effects,
    known::Known,
    pushes::{Push, pushes},
};

/// Messages of the upstream that are stored together, so that a burst of single changes costs few commits.
const MOST_PUSHES: usize = 4096;

/// How many times longer nodes are left alone at most with which nothing is done, or where the upstream tells of changes.
/// What it failed to tell is then found long before an action that had its effect would be taken for one without. By
/// default it is as often as power services themselves read the power of a node.
const WHEN_QUIET: u32 = 6;

/// How often the task is seen to go on while nothing is read.
const BEAT: Duration = Duration::from_secs(1);

/// The task that reads power states.
pub(crate) struct Sense {
    known: Known,
    driver: Driver,
    queues: Queues,
    effects: Effects,
    /// What results of actions show.
    results: mpsc::Receiver<Vec<PowerState>>,
    /// When nodes are asked for again.
    rhythm: Rhythm,
    seen: HashMap<ComponentId, Seen>,
    /// Nodes whose power nobody needs to know any more.
    unwanted: HashSet<ComponentId>,
    /// What results of actions showed last, so that readings from before are recognised.
    shown: HashMap<ComponentId, Shown>,
    silence: Silence,
    /// Counts the times that listening began. Readings from before may have missed changes.
    listening: u64,
    /// Counts questions, pushes and results, to tell which came first.
    clock: u64,
    failures: u32,
}

/// When the stored reading of a component was obtained.
#[derive(Debug, Clone, Copy)]
struct Seen {
    listening: u64,
    clock: u64,
    at: Instant,
    /// When it was asked for.
    asked_at: Instant,
    /// Since when the upstream says that it is so; none: then.
    as_of: Option<Timestamp>,
}

/// A node that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    id: ComponentId,
    asked_for: AskedFor,
    /// For how long the node is this replica's without a break: an answer that comes after one may be older than what
    /// another replica has read.
    tenure: u64,
}

/// Nodes that were asked for together.
struct Question {
    nodes: Vec<Asked>,
    clock: u64,
    listening: u64,
    asked_at: Instant,
}

type Answer = (Question, Result<Vec<(String, Reading)>, Failure>);

impl Sense {
    /// `pause`: how long a node is left alone that was acted on just now. One with which nothing has been done for long is
    /// left alone for longer, and so is every one where the upstream tells of changes.
    pub(crate) fn new(
        known: Known,
        driver: Driver,
        queues: Queues,
        effects: Effects,
        results: mpsc::Receiver<Vec<PowerState>>,
        pause: Duration,
    ) -> Self {
        let longest = pause.saturating_mul(WHEN_QUIET);
        let rhythm = Rhythm::new(Instant::now(), if driver.tells() { longest } else { pause }, longest);
        let (seen, unwanted) = (HashMap::new(), HashSet::new());
        let (shown, silence) = (HashMap::new(), Silence::default());
        let (listening, clock, failures) = (0, 0, 0);
        Self {
            known,
            driver,
            queues,
            effects,
            results,
            rhythm,
            seen,
            unwanted,
            shown,
            silence,
            listening,
            clock,
            failures,
        }
    }

    /// Reads and listens for ever.
    pub(crate) async fn run(mut self) -> anyhow::Result<Infallible> {
        self.known.components.reached(1).await;
        self.known.pulse.beat();
        let mut handovers = std::pin::pin!(self.known.custody.changes());
        let mut pushes = std::pin::pin!(pushes(self.driver.clone()).ready_chunks(MOST_PUSHES));
        let mut questions = JoinSet::new();
        loop {
            self.notice_gaps().await;
            let most = self.known.options.in_force().batch_size(self.driver.most_nodes());
            tokio::select! {
                Some(handover) = handovers.next() => self.hand_over(&handover),
                pushed = next(&mut pushes) => self.take_pushes(pushed).await,
                Some(results) = self.results.recv() => self.take_results(results).await,
                Some(answer) = questions.join_next() => {
                    let mut answers = vec![answer.context("a question")?];
                    while let Some(more) = questions.try_join_next() {
                        answers.push(more.context("a question")?);
                    }
                    self.take_answers(answers).await;
                }
                () = sleep(BEAT) => {}
                ids = self.queues.unread.next(most), if questions.len() < self.driver.most_questions() => {
                    self.ask(ids, &mut questions).await;
                }
            }
            if questions.is_empty() {
                self.forget_unwanted();
            }
        }
    }

    /// Takes what was read before the process slept for history, and asks for all of it again. Until this task has looked,
    /// nothing is decided by it either.
    async fn notice_gaps(&mut self) {
        if self.known.pulse.lapsed() {
            tracing::warn!("power states were not read for a while, reading all of them again");
            let enabled: Vec<_> = self.known.components.enabled().collect();
            self.seen.clear();
            if let Err(fault) = self.known.withdraw(&enabled).await {
                tracing::warn!(%fault, "power states of before are not withdrawn, trying again");
                return sleep(BEAT).await;
            }
            self.queues.unread.mark(enabled);
        }
        self.known.pulse.beat();
    }

    /// Forgets when nodes were read that nobody asks about. While an answer is on its way it has to be known whether
    /// that is older than what was read.
    fn forget_unwanted(&mut self) {
        for id in mem::take(&mut self.unwanted) {
            let component = self.known.components.get(id.as_str());
            if component.is_some_and(|component| !component.is_enabled()) {
                self.seen.remove(&id);
                leave_room(&mut self.seen);
            }
        }
    }

    /// What was seen of nodes before they went or came is old: another replica has seen more since.
    fn hand_over(&mut self, handover: &Handover) {
        self.seen.retain(|id, _| !handover.concerns(id.as_str()));
        self.shown.retain(|id, _| !handover.concerns(id.as_str()));
        self.silence.forget(|id| handover.concerns(id));
        self.queues.unread.mark(self.known.nodes(|id| handover.concerns(id)));
    }

    /// Asks for those that need it. What is kept about components that are gone is deleted. What comes to this replica
    /// is marked when it has been taken over.
    async fn ask(&mut self, ids: Vec<ComponentId>, questions: &mut JoinSet<Answer>) {
        let (mut nodes, mut gone, mut overtaken, now) = (Vec::new(), Vec::new(), Vec::new(), Instant::now());
        for id in ids {
            let Some(tenure) = self.known.custody.tenure(id.as_str()) else { continue };
            let Some(component) = self.known.components.get(id.as_str()) else {
                gone.push(id.as_str().to_owned());
                continue;
            };
            if self.effects.is_older_followed(id.as_str(), component.generation) {
                overtaken.push(component.id.clone());
            }
            match self.wanted_from(&component, now) {
                Some(at) if at <= now => {
                    // What is kept by the id for long has it in the memory of the component.
                    let (id, asked_for) = (component.id.clone(), AskedFor::of(&component));
                    nodes.push(Asked { id, asked_for, tenure });
                }
                Some(at) => self.queues.unread.mark_at(id, at),
                None if !component.is_enabled() => self.unwanted.extend([component.id.clone()]),
                None => {}
            }
        }
        self.forget(gone).await;
        self.await_ends(overtaken).await;
        if nodes.is_empty() {
            return;
        }
        self.clock += 1;
        let (clock, listening, asked_at) = (self.clock, self.listening, Instant::now());
        for nodes in self.driver.apart(nodes, |node| node.id.as_str()) {
            let question = Question { nodes, clock, listening, asked_at };
            let (driver, deadline) = (self.driver.clone(), self.known.upstream_deadline());
            let ask = async move {
                let ids = question.nodes.iter().map(|node| node.id.as_str().to_owned()).collect();
                let answer = driver.power(ids, deadline).await;
                (question, answer)
            };
            questions.spawn(ask.in_current_span());
        }
    }

    /// From when on, `now` or later, the stored reading is no evidence for the component as it is now; none as long as
    /// nobody needs to know, or somebody will tell.
    fn wanted_from(&self, component: &Component, now: Instant) -> Option<Instant> {
        let id = component.id.as_str();
        let state = self.known.states.view().get(id);
        let state = state.as_deref();
        // Whoever follows an action hears its result, and not that the upstream can be asked for power again.
        let told = self.effects.is_followed(id)
            && state.is_none_or(|state| state.reading() != PowerReading::Unspecified);
        if !component.is_enabled() {
            return None;
        }
        let overdue = state.and_then(|state| self.overdue_from(component, state, now));
        if told {
            return overdue;
        }
        if self.effects.is_left_open(id) {
            return Some(now);
        }
        let known = state.is_some_and(|state| {
            AskedFor::by(state).is_same_attempt(AskedFor::of(component)) && !is_doubtful(state)
        });
        let seen = self.seen.get(id).filter(|seen| known && seen.listening == self.listening);
        let stale_from = seen.map_or(now, |seen| self.fresh_until(seen, component));
        Some(overdue.map_or(stale_from, |overdue| overdue.min(stale_from)))
    }

    /// From when on a node is read whoever tells of it: the time of its last action is over then, and what was read before
    /// the action does not tell that it had no effect.
    fn overdue_from(&self, component: &Component, state: &PowerState, now: Instant) -> Option<Instant> {
        let is_read_since = AskedFor::by(state).begun_actions >= AskedFor::of(component).begun_actions;
        // The time of an action that may not have been taken is not over.
        if is_read_since || component.last_action_failed() || self.effects.is_in_doubt(component.id.as_str())
        {
            return None;
        }
        let until = power::effect_due(component, &self.known.options.in_force())?;
        Some(now + until.since(clock::now()))
    }

    /// Until when a component need not be asked for again.
    fn fresh_until(&self, seen: &Seen, component: &Component) -> Instant {
        let quiet = component.last_action_at().map_or(Duration::MAX, |at| clock::now().since(at));
        self.rhythm.after(seen.at, quiet)
    }

    /// Deletes the states of components that are gone. Where that fails, the next start does it.
    async fn forget(&mut self, ids: Vec<String>) {
        if ids.is_empty() {
            return;
        }
        for id in &ids {
            self.seen.remove(id.as_str());
            self.shown.remove(id.as_str());
            self.silence.heard(id);
        }
        if let Err(fault) = self.known.forget(ids).await {
            tracing::debug!(%fault, "cannot delete the power states of components that are gone");
        }
    }
}

/// The next pushes; waits for ever if there are none, which the stream rules out by not ending.
async fn next(pushes: &mut (impl Stream<Item = Vec<Push>> + Unpin)) -> Vec<Push> {
    match pushes.next().await {
        Some(pushes) => pushes,
        None => std::future::pending().await,
    }
}

/// Whether a reading says nothing about the power of a node.
fn is_doubtful(state: &PowerState) -> bool {
    let read = match state.reading() {
        PowerReading::On | PowerReading::Off => true,
        PowerReading::Unspecified | PowerReading::Undefined | PowerReading::Missing => false,
    };
    !read || !state.error.is_empty()
}
