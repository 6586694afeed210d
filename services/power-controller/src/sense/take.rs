//! What is made of answers, changes and results.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chassis::{clock, pause};
use domain::{
    boot::{
        bos::options::Options,
        power::{self, Outlook},
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use proto::power::{PowerReading, PowerState};
use tokio::time::Instant;

use super::{Answer, Asked, Question, Seen, Sense, is_doubtful};
use crate::{
    convert::{self, AskedFor},
    driver::{Failure, Reading},
    effects::OpenAction,
    pushes::Push,
};

/// Pause before a node is asked for again whose reading may be of before the end of an action.
const LEFT_OPEN: Duration = Duration::from_secs(1);

impl Sense {
    /// Answers that came at the same time are stored together. Of two about one node the one that was asked for
    /// last counts.
    pub(super) async fn take_answers(&mut self, mut answers: Vec<Answer>) {
        answers.sort_by_key(|(question, _)| question.clock);
        let mut states = HashMap::new();
        for (question, answer) in answers {
            match answer {
                Ok(readings) => {
                    self.failures = 0;
                    question.nodes.iter().for_each(|node| self.silence.heard(node.id.as_str()));
                    let read = self.weigh(question, readings.into_iter().collect());
                    states.extend(read.into_iter().map(|(id, state, seen)| (id, (state, seen))));
                }
                Err(failure) => self.take_failure(question, &failure).await,
            }
        }
        self.store(states.into_iter().map(|(id, (state, seen))| (id, state, seen)).collect()).await;
    }

    async fn take_failure(&mut self, question: Question, failure: &Failure) {
        if self.failures == 0 {
            tracing::warn!(error = %failure, "cannot read power states, trying again");
        }
        let ids: Vec<_> = question.nodes.into_iter().map(|node| node.id).collect();
        let lost = self.silence.unheard(&ids, question.asked_at, Instant::now());
        self.lose_touch(lost, &failure.to_string()).await;
        self.ask_again_later(ids);
    }

    /// What an answer is evidence for. Nodes of which it is none are asked for again.
    fn weigh(
        &mut self,
        question: Question,
        mut readings: HashMap<String, Reading>,
    ) -> Vec<(ComponentId, PowerState, Seen)> {
        let now = clock::now();
        let options = self.known.options.in_force();
        let seen = Seen { asked_at: question.asked_at, ..Self::seen_at(question.clock, question.listening) };
        let mut states = Vec::new();
        for Asked { id, asked_for, tenure } in question.nodes {
            // A new holder has its own questions.
            if self.known.custody.tenure(id.as_str()) != Some(tenure) {
                continue;
            }
            // Another generation has begun meanwhile: its own question is on the way.
            let generation = asked_for.generation;
            let component = self.known.components.get(id.as_str()).filter(|one| one.generation == generation);
            let Some(component) = component else { continue };
            let reading = readings.remove(id.as_str()).unwrap_or_else(Reading::missing);
            if self.is_outdated(&id, &reading, now) {
                self.seen.remove(&id);
                self.ask_at(&id, std::iter::once(self.fresh_until(&seen, &component)));
                continue;
            }
            let seen = Seen { as_of: reading.as_of, ..seen };
            let state = convert::power_state(&id, reading, asked_for, now);
            // Something newer came in while the upstream was asked; if it says otherwise, nobody knows which
            // of the two is true now.
            let overtaken = self.seen.get(&id).is_some_and(|seen| seen.clock > question.clock);
            if overtaken && self.contradicts(&state) {
                self.seen.remove(&id);
                self.queues.unread.mark([id]);
            } else {
                states.push((id, self.evidence(state, &options, now), seen));
            }
        }
        states
    }

    /// Whether the reading is of a time before the last action on the node had its result.
    fn is_outdated(&self, id: &ComponentId, reading: &Reading, now: Timestamp) -> bool {
        let rule_reading = convert::rule_reading(reading.reading);
        let shown = self.shown.get(id);
        shown.is_some_and(|shown| power::is_outdated(rule_reading, reading.as_of, *shown, now))
    }

    /// The answer to a question as what it is evidence for: the generation that it was asked for, or the one
    /// before while an older action may still change the power.
    fn evidence(&self, state: PowerState, options: &Options, now: Timestamp) -> PowerState {
        match self.effects.outlook(&state, state.generation, options, now) {
            Outlook::Settled => self.while_open(state, options, now),
            Outlook::Pending { .. } => {
                let AskedFor { generation, spent_power_ons, begun_actions } = self.asked_for(&state.id);
                let state = PowerState { generation, spent_power_ons, begun_actions, ..state };
                self.unless_open(self.effects.open_transition(&state.id), state)
            }
        }
    }

    /// The state as long as the upstream may still bring the effect that the reading lacks: it counts as read before the
    /// action. Once the time of an action is over that the upstream took, nothing is known.
    fn while_open(&self, state: PowerState, options: &Options, now: Timestamp) -> PowerState {
        let Some(open) = self.effects.open_against(&state.id, state.reading()) else { return state };
        let component = self.known.components.get(&state.id);
        let due = component.and_then(|component| power::effect_due(&component, options));
        match open {
            OpenAction::Taken(upstream_id) if due.is_none_or(|due| now >= due) => {
                self.unless_open(Some(upstream_id), state)
            }
            OpenAction::Taken(_) | OpenAction::InDoubt => convert::read_before_action(state),
        }
    }

    /// The state without its reading while a transition of the upstream may still change that.
    fn unless_open(&self, open: Option<Arc<str>>, state: PowerState) -> PowerState {
        let Some(upstream_id) = open else { return state };
        let error = convert::waiting_for_transition(&upstream_id).text().to_string();
        PowerState { reading: PowerReading::Unspecified.into(), error, ..state }
    }

    pub(super) async fn take_pushes(&mut self, pushes: Vec<Push>) {
        let now = clock::now();
        let mut newest = HashMap::new();
        for push in pushes {
            match push {
                Push::Lost(error) => {
                    let enabled = self.known.components.enabled().collect();
                    self.lose_touch(enabled, &error).await;
                }
                Push::Began => self.begin_to_listen(),
                Push::Changed(readings) => {
                    let seen = self.seen_now();
                    newest.extend(readings.into_iter().map(|(id, reading)| (id, (reading, seen))));
                }
            }
        }
        let states = newest.into_iter().filter_map(|(id, (reading, seen))| {
            let component = self.known.components.get(&id)?;
            let state = convert::power_state(&component.id, reading, self.asked_for(&id), now);
            Some((component.id.clone(), state, seen))
        });
        let states = states.collect();
        self.store(states).await;
    }

    /// What the results of actions show. They belong to the generation of their action; if a newer one has been
    /// read meanwhile, that is read again.
    pub(super) async fn take_results(&mut self, results: Vec<PowerState>) {
        let (options, now, seen) = (self.known.options.in_force(), clock::now(), self.seen_now());
        let mut states = Vec::new();
        for state in results {
            let Some(component) = self.known.components.get(&state.id) else { continue };
            let id = component.id.clone();
            self.shown.insert(id.clone(), convert::as_shown(&state));
            // The action began after every power-on attempt of before was over.
            let asked_for = AskedFor::of(&component);
            let same = asked_for.generation == state.generation;
            let AskedFor { spent_power_ons, begun_actions, .. } =
                if same { asked_for } else { AskedFor::default() };
            let state = PowerState { spent_power_ons, begun_actions, ..state };
            if self.is_overtaken(&id, &state, now) {
                self.effects.settle(&state, &options, now);
                self.seen.remove(&id);
                self.queues.unread.mark([id]);
            } else {
                states.push((id, state, seen));
            }
        }
        self.store(states).await;
    }

    /// Whether what is stored was read after the result, or for a newer generation, and says otherwise. What the upstream
    /// showed afterwards may be of a time before.
    fn is_overtaken(&self, id: &ComponentId, result: &PowerState, now: Timestamp) -> bool {
        let is_of_before = |known: &PowerState| {
            let as_of = self.seen.get(id).and_then(|seen| seen.as_of);
            let reading = convert::rule_reading(known.reading());
            power::is_outdated(reading, as_of, convert::as_shown(result), now)
        };
        self.known.states.view().get(&result.id).is_some_and(|known| {
            known.generation > result.generation
                || (self.contradicts(result)
                    && convert::observed_at(&known) > convert::observed_at(result)
                    && !is_of_before(&known))
        })
    }

    /// The state that a component was last asked for. A change that is told without a question may have been on its way
    /// since before the newest generation, and is no evidence for that until the answer to a question is here.
    fn asked_for(&self, id: &str) -> AskedFor {
        self.known.states.view().get(id).map(|state| AskedFor::by(&state)).unwrap_or_default()
    }

    /// Shows of nodes that have begun another generation for the end of which transition their power is not known.
    pub(super) async fn await_ends(&mut self, ids: Vec<ComponentId>) {
        let mut waiting: HashMap<_, Vec<_>> = HashMap::new();
        for id in ids {
            if let Some(upstream_id) = self.effects.open_transition(id.as_str()) {
                waiting.entry(upstream_id).or_default().push(id);
            }
        }
        for (upstream_id, ids) in waiting {
            self.withhold(ids, &convert::waiting_for_transition(&upstream_id)).await;
        }
    }

    /// What was read before the upstream fell silent is no evidence for what is so now. It is shown with its age,
    /// and with what the upstream's trouble was when that was found out.
    async fn lose_touch(&mut self, ids: Vec<ComponentId>, error: &str) {
        self.withhold(ids, &Trouble::waiting_for(error)).await;
    }

    /// Withdraws the readings of nodes whose power is not known because of some `trouble`.
    async fn withhold(&mut self, ids: Vec<ComponentId>, trouble: &Trouble) {
        let view = self.known.states.view();
        let ids = ids.into_iter().filter(|id| self.known.custody.has(id.as_str()));
        let lost = ids.filter_map(|id| match view.get(id.as_str()) {
            Some(state) if state.reading() == PowerReading::Unspecified => None,
            Some(state) => Some(PowerState::clone(&state)),
            None => Some(PowerState { id: id.as_str().to_owned(), ..PowerState::default() }),
        });
        let (reading, error) = (PowerReading::Unspecified.into(), trouble.text().to_string());
        let lost: Vec<_> = lost.map(|state| PowerState { reading, error: error.clone(), ..state }).collect();
        if lost.is_empty() {
            return;
        }
        if let Err(fault) = self.known.store(lost).await {
            tracing::warn!(%fault, "cannot record that the power upstream is silent");
        }
    }

    /// Whatever changed while nobody listened has to be asked for.
    fn begin_to_listen(&mut self) {
        self.listening += 1;
        self.queues.unread.mark(self.known.components.enabled());
    }

    fn seen_now(&mut self) -> Seen {
        self.clock += 1;
        Self::seen_at(self.clock, self.listening)
    }

    fn seen_at(clock: u64, listening: u64) -> Seen {
        let now = Instant::now();
        Seen { listening, clock, at: now, asked_at: now, as_of: None }
    }

    /// Stores what differs from what is known.
    async fn store(&mut self, mut states: Vec<(ComponentId, PowerState, Seen)>) {
        // Whoever has the others reads them.
        states.retain(|(id, ..)| self.known.custody.has(id.as_str()));
        let changed: Vec<_> =
            states.iter().map(|(_, state, _)| state).filter(|state| self.differs(state)).cloned().collect();
        if !changed.is_empty()
            && let Err(fault) = self.known.store(changed).await
        {
            tracing::debug!(%fault, "cannot store power states, asking again");
            let ids = states.into_iter().map(|(id, ..)| id).collect();
            return self.ask_again_later(ids);
        }
        let (options, now) = (self.known.options.in_force(), clock::now());
        let clock = self.driver.clock();
        states.iter().for_each(|(id, _, seen)| self.effects.read(id, seen.asked_at, seen.as_of, clock));
        // Also those that only confirm: what they confirm may come from a write that seemed to have failed.
        self.queues.undecided.mark(states.iter().map(|(id, ..)| id.clone()));
        for (id, state, seen) in states {
            self.look_again(&id, &state, seen, &options, now);
            self.note(id, seen);
        }
    }

    /// Has a component looked at again as soon as its power may be known, or known for its generation, or may
    /// have changed.
    fn look_again(
        &self,
        id: &ComponentId,
        state: &PowerState,
        seen: Seen,
        options: &Options,
        now: Timestamp,
    ) {
        let Some(component) = self.known.components.get(id.as_str()) else { return };
        let generation = component.generation;
        if self.effects.settle(state, options, now).is_some_and(|settled| settled < generation) {
            self.queues.unread.mark([id.clone()]);
        }
        let after = |pause| Instant::now() + pause;
        // Not every upstream tells when a node is back that was missing or whose power was not known.
        let left_open = self.effects.is_left_open(id.as_str()).then(|| after(LEFT_OPEN));
        let doubt = is_doubtful(state).then(|| after(options.polling_period()));
        let effect = match self.effects.outlook(state, generation, options, now) {
            Outlook::Pending { until } => until.map(|until| after(until.since(now))),
            Outlook::Settled => None,
        };
        let change = component.is_enabled().then(|| self.fresh_until(&seen, &component));
        let overdue = self.overdue_from(&component, state, Instant::now()).filter(|_| component.is_enabled());
        self.ask_at(id, left_open.into_iter().chain(doubt).chain(effect).chain(change).chain(overdue));
    }

    /// Has the component looked at again at the first of these times.
    fn ask_at(&self, id: &ComponentId, times: impl Iterator<Item = Instant>) {
        if let Some(at) = times.min() {
            self.queues.unread.mark_at(id.clone(), at);
        }
    }

    /// Remembers when a reading was obtained; one that only confirms a newer one does not make it older.
    fn note(&mut self, id: ComponentId, seen: Seen) {
        let known = self.seen.entry(id).or_insert(seen);
        if seen.clock >= known.clock {
            (known.asked_at, known.as_of) = (seen.asked_at, seen.as_of);
        }
        known.listening = known.listening.max(seen.listening);
        known.clock = known.clock.max(seen.clock);
        known.at = known.at.max(seen.at);
    }

    /// Whether what is stored, of whichever generation, says something else about the power of the node.
    fn contradicts(&self, state: &PowerState) -> bool {
        let known = self.known.states.view().get(&state.id);
        known.is_some_and(|known| (known.reading, &known.error) != (state.reading, &state.error))
    }

    fn differs(&self, state: &PowerState) -> bool {
        self.known.states.view().get(&state.id).is_none_or(|known| {
            (known.reading, &known.error, AskedFor::by(&known))
                != (state.reading, &state.error, AskedFor::by(state))
        })
    }

    fn ask_again_later(&mut self, ids: Vec<ComponentId>) {
        self.failures = self.failures.saturating_add(1);
        let at = Instant::now() + pause::after(self.failures);
        for id in ids {
            self.seen.remove(&id);
            self.queues.unread.mark_at(id, at);
        }
    }
}
