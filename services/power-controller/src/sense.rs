//! Keeps what is known about the power of every component current: asks when a component begins a new
//! generation, and listens for changes.
//!
//! One task does all of it, so that an older reading cannot overwrite a newer one.

use std::{collections::HashMap, convert::Infallible, time::Duration};

use anyhow::Context as _;
use chassis::{
    convert::time,
    kinds::OptionsRecord,
    ledger::{Draft, Ledger},
    mirror::Mirror,
    pause,
    work::WorkQueue,
};
use domain::{component::Component, id::ComponentId, options::Options, power::Outlook, time::Timestamp};
use futures_util::{Stream, StreamExt};
use proto::power::{PowerReading, PowerState};
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

use crate::{
    act::upstream_deadline,
    convert,
    driver::{Driver, Failure, Reading},
    effects::Effects,
    pushes::{Push, pushes},
    store::PowerStates,
};

/// Nodes in one question, like the members of a transition.
const MOST_NODES: usize = 2500;

/// Questions at a time: enough for the largest machine to be read in a few rounds.
const MOST_QUESTIONS: usize = 8;

/// Messages of the upstream that are stored together, so that a burst of single changes costs few commits.
const MOST_PUSHES: usize = 4096;

/// How soon a node is asked for again that was missing or whose power was not known. Not every upstream
/// tells when such a node is back.
const DOUBTFUL: Duration = Duration::from_secs(30);

/// What is shown of a power state while the upstream cannot be listened to.
const SILENT: &str = "the power upstream does not answer";

/// The task that reads power states.
pub(crate) struct Sense {
    states: Ledger<PowerStates>,
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    driver: Driver,
    /// Components that may need to be asked for.
    unread: WorkQueue<ComponentId>,
    /// Components that may need an action.
    undecided: WorkQueue<ComponentId>,
    effects: Effects,
    seen: HashMap<ComponentId, Seen>,
    /// Counts the times that listening began. Readings from before may have missed changes.
    listening: u64,
    /// Counts questions and pushes, to tell which came first.
    clock: u64,
    failures: u32,
}

/// When the stored reading of a component was obtained.
#[derive(Debug, Clone, Copy)]
struct Seen {
    listening: u64,
    clock: u64,
}

/// Nodes that were asked for together.
struct Question {
    nodes: Vec<(ComponentId, u64)>,
    seen: Seen,
}

type Answer = (Question, Result<Vec<(String, Reading)>, Failure>);

impl Sense {
    pub(crate) fn new(
        states: Ledger<PowerStates>,
        components: Mirror<Component>,
        options: Mirror<OptionsRecord>,
        driver: Driver,
        [unread, undecided]: [WorkQueue<ComponentId>; 2],
        effects: Effects,
    ) -> Self {
        let (seen, listening, clock, failures) = (HashMap::new(), 0, 0, 0);
        Self {
            states,
            components,
            options,
            driver,
            unread,
            undecided,
            effects,
            seen,
            listening,
            clock,
            failures,
        }
    }

    /// Reads and listens for ever.
    pub(crate) async fn run(mut self) -> anyhow::Result<Infallible> {
        self.components.reached(1).await;
        let states = self.states.view().all();
        let gone = states.iter().filter(|state| self.components.get(&state.id).is_none());
        self.forget(gone.map(|state| state.id.clone()).collect()).await;

        let mut pushes = std::pin::pin!(pushes(self.driver.clone()).ready_chunks(MOST_PUSHES));
        let mut questions = JoinSet::new();
        loop {
            tokio::select! {
                pushed = next(&mut pushes) => self.take_pushes(pushed).await,
                Some(answer) = questions.join_next() => self.take_answer(answer.context("a question")?).await,
                ids = self.unread.next(MOST_NODES), if questions.len() < MOST_QUESTIONS => {
                    self.ask(ids, &mut questions).await;
                }
            }
        }
    }

    /// Asks for those that need it. What is kept about components that are gone is deleted.
    async fn ask(&mut self, ids: Vec<ComponentId>, questions: &mut JoinSet<Answer>) {
        let (mut nodes, mut gone) = (Vec::new(), Vec::new());
        for id in ids {
            match self.components.get(id.as_str()) {
                Some(component) if self.is_wanted(&component) => nodes.push((id, component.generation)),
                Some(_) => {}
                None => gone.push(id.as_str().to_owned()),
            }
        }
        self.forget(gone).await;
        if nodes.is_empty() {
            return;
        }
        self.clock += 1;
        let question = Question { nodes, seen: Seen { listening: self.listening, clock: self.clock } };
        let (driver, deadline) = (self.driver.clone(), upstream_deadline(&self.options));
        let ask = async move {
            let ids = question.nodes.iter().map(|(id, _)| id.as_str().to_owned()).collect();
            let answer = driver.power(ids, deadline).await;
            (question, answer)
        };
        questions.spawn(ask.in_current_span());
    }

    /// Whether the stored reading is no evidence for the component as it is now.
    fn is_wanted(&self, component: &Component) -> bool {
        let known = self
            .states
            .view()
            .get(component.id.as_str())
            .is_some_and(|state| state.generation == component.generation && !is_doubtful(&state));
        let heard = self.seen.get(&component.id).is_some_and(|seen| seen.listening == self.listening);
        component.is_enabled() && !(known && heard)
    }

    async fn take_answer(&mut self, (question, answer): Answer) {
        match answer {
            Ok(readings) => {
                self.failures = 0;
                self.take_readings(question, readings.into_iter().collect()).await;
            }
            Err(failure) => {
                if self.failures == 0 {
                    tracing::warn!(error = %failure, "cannot read power states, trying again");
                }
                let ids = question.nodes.into_iter().map(|(id, _)| id);
                self.ask_again_later(ids.collect());
            }
        }
    }

    async fn take_readings(&mut self, question: Question, mut readings: HashMap<String, Reading>) {
        let now = time::now();
        let options = self.options.in_force();
        let mut states = Vec::new();
        for (id, generation) in question.nodes {
            // Another generation has begun meanwhile: its own question is on the way.
            if self.components.get(id.as_str()).is_none_or(|one| one.generation != generation) {
                continue;
            }
            let reading = readings.remove(id.as_str()).unwrap_or_else(Reading::missing);
            let state = convert::power_state(&id, reading, generation, now);
            // Something newer came in while the upstream was asked; if it says otherwise, nobody knows which
            // of the two is true now.
            let overtaken = self.seen.get(&id).is_some_and(|seen| seen.clock > question.seen.clock);
            if overtaken && self.contradicts(&state) {
                self.seen.remove(&id);
                self.unread.mark([id]);
            } else {
                states.push((id, self.evidence(state, &options, now), question.seen));
            }
        }
        self.store(states).await;
    }

    /// The answer to a question as what it is evidence for: the generation that it was asked for, or the one
    /// before while an older action may still change the power.
    fn evidence(&self, state: PowerState, options: &Options, now: Timestamp) -> PowerState {
        match self.effects.outlook(&state, state.generation, options, now) {
            Outlook::Settled => state,
            Outlook::Pending { .. } => PowerState { generation: self.read_generation(&state.id), ..state },
        }
    }

    async fn take_pushes(&mut self, pushes: Vec<Push>) {
        let now = time::now();
        let mut newest = HashMap::new();
        for push in pushes {
            match push {
                Push::Lost => self.lose_touch().await,
                Push::Began => self.begin_to_listen(),
                Push::Changed(readings) => {
                    self.clock += 1;
                    let seen = Seen { listening: self.listening, clock: self.clock };
                    newest.extend(readings.into_iter().map(|(id, reading)| (id, (reading, seen))));
                }
            }
        }
        let states = newest.into_iter().filter_map(|(id, (reading, seen))| {
            let component = self.components.get(&id)?;
            let state = convert::power_state(&component.id, reading, self.read_generation(&id), now);
            Some((component.id.clone(), state, seen))
        });
        let states = states.collect();
        self.store(states).await;
    }

    /// The generation for which a component was asked for last. What is told without being asked may have been
    /// on its way since before the newest generation, and so is no evidence for it until its answer is here.
    fn read_generation(&self, id: &str) -> u64 {
        self.states.view().get(id).map_or(0, |state| state.generation)
    }

    /// What was read before the upstream fell silent is no evidence for what is so now. It is shown with its age.
    async fn lose_touch(&mut self) {
        let enabled: Vec<_> = self.components.enabled().collect();
        let lose = move |draft: &mut Draft<'_, PowerState>| {
            for id in enabled {
                let Some(state) = draft.get(id.as_str()) else { continue };
                if state.reading() != PowerReading::Unspecified {
                    let (reading, error) = (PowerReading::Unspecified.into(), SILENT.to_owned());
                    draft.put(PowerState { reading, error, ..PowerState::clone(&state) });
                }
            }
            Ok(())
        };
        if let Err(fault) = self.states.write(lose).await {
            tracing::warn!(%fault, "cannot record that the power upstream is silent");
        }
    }

    /// Whatever changed while nobody listened has to be asked for.
    fn begin_to_listen(&mut self) {
        self.listening += 1;
        self.unread.mark(self.components.enabled());
    }

    /// Stores what differs from what is known.
    async fn store(&mut self, states: Vec<(ComponentId, PowerState, Seen)>) {
        let changed: Vec<_> =
            states.iter().map(|(_, state, _)| state).filter(|state| self.differs(state)).cloned().collect();
        if !changed.is_empty() {
            let written = self.states.write(move |draft| {
                changed.into_iter().for_each(|state| draft.put(state));
                Ok(())
            });
            if let Err(fault) = written.await {
                tracing::debug!(%fault, "cannot store power states, asking again");
                let ids = states.into_iter().map(|(id, ..)| id).collect();
                return self.ask_again_later(ids);
            }
        }
        let (options, now) = (self.options.in_force(), time::now());
        // Also those that only confirm: what they confirm may come from a write that seemed to have failed.
        self.undecided.mark(states.iter().map(|(id, ..)| id.clone()));
        for (id, state, seen) in states {
            self.look_again(&id, &state, &options, now);
            self.note(id, seen);
        }
    }

    /// Has a component looked at again as soon as its power may be known, or known for its generation.
    fn look_again(&self, id: &ComponentId, state: &PowerState, options: &Options, now: Timestamp) {
        let generation = self.components.get(id.as_str()).map_or(0, |component| component.generation);
        if self.effects.settle(state, options, now).is_some_and(|settled| settled < generation) {
            self.unread.mark([id.clone()]);
        }
        let doubt = is_doubtful(state).then_some(DOUBTFUL);
        let effect = match self.effects.outlook(state, generation, options, now) {
            Outlook::Pending { until } => until.map(|until| until.since(now)),
            Outlook::Settled => None,
        };
        if let Some(pause) = doubt.into_iter().chain(effect).min() {
            self.unread.mark_at(id.clone(), Instant::now() + pause);
        }
    }

    /// Remembers when a reading was obtained; one that only confirms a newer one does not make it older.
    fn note(&mut self, id: ComponentId, seen: Seen) {
        let known = self.seen.entry(id).or_insert(seen);
        known.listening = known.listening.max(seen.listening);
        known.clock = known.clock.max(seen.clock);
    }

    /// Whether what is stored, of whichever generation, says something else about the power of the node.
    fn contradicts(&self, state: &PowerState) -> bool {
        let known = self.states.view().get(&state.id);
        known.is_some_and(|known| (known.reading, &known.error) != (state.reading, &state.error))
    }

    fn differs(&self, state: &PowerState) -> bool {
        self.states.view().get(&state.id).is_none_or(|known| {
            (known.reading, &known.error, known.generation) != (state.reading, &state.error, state.generation)
        })
    }

    fn ask_again_later(&mut self, ids: Vec<ComponentId>) {
        self.failures = self.failures.saturating_add(1);
        let at = Instant::now() + pause::after(self.failures);
        for id in ids {
            self.seen.remove(&id);
            self.unread.mark_at(id, at);
        }
    }

    /// Deletes the states of components that are gone. Where that fails, the next start does it.
    async fn forget(&mut self, ids: Vec<String>) {
        if ids.is_empty() {
            return;
        }
        ids.iter().for_each(|id| {
            self.seen.remove(id.as_str());
        });
        let deleted = self.states.write(move |draft| {
            ids.iter().for_each(|id| draft.delete(id));
            Ok(())
        });
        if let Err(fault) = deleted.await {
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
