//! Processing of answers, pushes and results.

use std::{collections::HashMap, time::Duration};

use chassis::process::{clock, pause};
use domain::{
    boot::{
        bos::options::Options,
        power::{self, Outlook},
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use proto::power::{PowerReading, PowerState};
use tokio::time::Instant;

use super::{
    NodeQuery, NodeQueryAnswer, NodeQueryBatch, PowerPoller, ReadingOrigin, is_doubtful, pushes::PushEvent,
};
use crate::{
    convert::{self, AskedFor},
    driver::{DriverFailure, NodeReading},
    engine::OpenAction,
};

/// Pause before polling a node again whose reading may be from before the end of an action.
const LEFT_OPEN: Duration = Duration::from_secs(1);

impl PowerPoller {
    /// Stores answers that arrived at the same time together. Of two answers about one node the later request counts.
    pub(super) async fn take_answers(&mut self, mut answers: Vec<NodeQueryAnswer>) {
        answers.sort_by_key(|(batch, _)| batch.clock);
        let mut states = HashMap::new();
        for (batch, answer) in answers {
            match answer {
                Ok(readings) => {
                    self.failures = 0;
                    batch.nodes.iter().for_each(|node| self.outages.end(node.id.as_str()));
                    let read = self.weigh(batch, readings.into_iter().collect());
                    states.extend(read.into_iter().map(|(id, state, seen)| (id, (state, seen))));
                }
                Err(failure) => self.take_failure(batch, &failure).await,
            }
        }
        self.store(states.into_iter().map(|(id, (state, seen))| (id, state, seen)).collect()).await;
    }

    async fn take_failure(&mut self, batch: NodeQueryBatch, failure: &DriverFailure) {
        if self.failures == 0 {
            tracing::warn!(error = %failure, "cannot read power states, trying again");
        }
        let ids: Vec<_> = batch.nodes.into_iter().map(|node| node.id).collect();
        let lost = self.outages.too_long(&ids, batch.asked_at, Instant::now());
        self.lose_touch(lost, &failure.to_string()).await;
        self.ask_again_later(ids);
    }

    /// Returns the states that an answer is evidence for. The other nodes are requested again.
    fn weigh(
        &mut self,
        batch: NodeQueryBatch,
        mut readings: HashMap<String, NodeReading>,
    ) -> Vec<(ComponentId, PowerState, ReadingOrigin)> {
        let now = clock::now();
        let options = self.known.options.in_force();
        let seen = ReadingOrigin { asked_at: batch.asked_at, ..Self::seen_at(batch.clock, batch.listening) };
        let mut states = Vec::new();
        for NodeQuery { id, asked_for } in batch.nodes {
            // Another generation has begun meanwhile, and has its own request.
            let generation = asked_for.generation;
            let component = self.known.components.get(id.as_str()).filter(|one| one.generation == generation);
            let Some(component) = component else { continue };
            let reading = readings.remove(id.as_str()).unwrap_or_else(NodeReading::missing);
            if self.is_outdated(&id, &reading, now) {
                self.seen.remove(&id);
                self.ask_at(&id, std::iter::once(self.fresh_until(&seen, &component)));
                continue;
            }
            let seen = ReadingOrigin { as_of: reading.as_of, ..seen };
            let state = convert::power_state(&id, reading, asked_for, now);
            // Something newer arrived during the request; if the two differ, it is unknown which of them is true now.
            let overtaken = self.seen.get(&id).is_some_and(|seen| seen.clock > batch.clock);
            if overtaken && self.contradicts(&state) {
                self.seen.remove(&id);
                self.queues.unread.mark([id]);
            } else {
                states.push((id, self.evidence(state, &options, now), seen));
            }
        }
        states
    }

    /// Returns whether the reading is from a time before the result of the last action on the node.
    fn is_outdated(&self, id: &ComponentId, reading: &NodeReading, now: Timestamp) -> bool {
        let rule_reading = convert::rule_reading(reading.reading);
        let shown = self.shown.get(id);
        shown.is_some_and(|shown| power::is_outdated(rule_reading, reading.as_of, *shown, now))
    }

    /// Returns an answer as evidence for a generation: the one that it was requested for, or the one before while an
    /// older action may still change the power.
    fn evidence(&self, state: PowerState, options: &Options, now: Timestamp) -> PowerState {
        let outlook = self.engine.lock().nodes.outlook(&state, state.generation, options, now);
        if outlook == Outlook::Settled {
            return self.while_held(self.while_open(state, options, now));
        }
        let trouble = self.engine.lock().waits_for_holder(&state.id, state.generation);
        let AskedFor { generation, spent_power_ons, begun_actions } = self.asked_for(&state.id);
        let state = PowerState { generation, spent_power_ons, begun_actions, ..state };
        match trouble {
            Some(trouble) => without_reading(state, &trouble),
            None => state,
        }
    }

    /// Returns the state with the transition that the next action waits for, if an older one still holds the node.
    fn while_held(&self, state: PowerState) -> PowerState {
        let waits_for = self.engine.lock().action_waits_for(&state.id, state.generation);
        let action_waits_for = waits_for.map(|trouble| trouble.text().to_string()).unwrap_or_default();
        PowerState { action_waits_for, ..state }
    }

    /// Returns the state while the upstream may still bring the effect that the reading lacks: the reading counts as
    /// one from before the action. Once the time of an accepted action is over, the power is unknown.
    fn while_open(&self, state: PowerState, options: &Options, now: Timestamp) -> PowerState {
        let open = self.engine.lock().nodes.open_against(&state.id, state.reading());
        let Some(open) = open else { return state };
        let component = self.known.components.get(&state.id);
        let due = component.and_then(|component| power::effect_due(&component, options));
        match open {
            OpenAction::Taken(holder) if due.is_none_or(|due| now >= due) => {
                without_reading(state, &self.engine.lock().waits_for(&holder))
            }
            OpenAction::Taken(_) | OpenAction::InDoubt => convert::read_before_action(state),
        }
    }

    pub(super) async fn take_pushes(&mut self, pushes: Vec<PushEvent>) {
        let now = clock::now();
        let mut newest = HashMap::new();
        for push in pushes {
            match push {
                PushEvent::Lost(error) => {
                    let enabled = self.known.components.enabled().collect();
                    self.lose_touch(enabled, &error).await;
                }
                PushEvent::Began => self.begin_to_listen(),
                PushEvent::Changed(readings) => {
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

    /// Stores the power that results of actions show. A result belongs to the generation of its action; if a newer
    /// generation has been read meanwhile, its power is read again.
    pub(super) async fn take_results(&mut self, results: Vec<PowerState>) {
        let (options, now, seen) = (self.known.options.in_force(), clock::now(), self.seen_now());
        let mut states = Vec::new();
        for state in results {
            let Some(component) = self.known.components.get(&state.id) else { continue };
            let id = component.id.clone();
            self.shown.insert(id.clone(), convert::as_shown(&state));
            // The action began after every earlier power-on attempt was over.
            let asked_for = AskedFor::of(&component);
            let same = asked_for.generation == state.generation;
            let AskedFor { spent_power_ons, begun_actions, .. } =
                if same { asked_for } else { AskedFor::default() };
            let state = PowerState { spent_power_ons, begun_actions, ..state };
            if self.is_overtaken(&id, &state, now) {
                self.engine.lock().nodes.settle(&state, &options, now);
                self.seen.remove(&id);
                self.queues.unread.mark([id]);
            } else {
                states.push((id, state, seen));
            }
        }
        self.store(states).await;
    }

    /// Returns whether the stored state was read after the result, or for a newer generation, and differs from it. A
    /// later answer of the upstream may show an earlier state.
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

    /// Returns the state that a component was last requested for. A push may have been on its way since before the
    /// newest generation, and is no evidence for that generation until the answer to a request is here.
    fn asked_for(&self, id: &str) -> AskedFor {
        self.known.states.view().get(id).map(|state| AskedFor::by(&state)).unwrap_or_default()
    }

    /// Shows on nodes with a new generation the open transition because of which their power is unknown.
    pub(super) async fn await_ends(&mut self, waiting: HashMap<Trouble, Vec<ComponentId>>) {
        for (trouble, ids) in waiting {
            self.withhold(ids, &trouble).await;
        }
    }

    /// Withdraws readings from before the upstream fell silent: they are no evidence for the present power. They are
    /// shown with their age, and with the upstream's trouble at the time of the discovery.
    pub(super) async fn lose_touch(&mut self, ids: Vec<ComponentId>, error: &str) {
        self.withhold(ids, &Trouble::waiting_for(error)).await;
    }

    /// Withdraws the readings of nodes whose power is unknown because of `trouble`.
    async fn withhold(&mut self, ids: Vec<ComponentId>, trouble: &Trouble) {
        let view = self.known.states.view();
        let lost = ids.into_iter().filter_map(|id| match view.get(id.as_str()) {
            Some(state) if state.reading() == PowerReading::Unspecified && !state.error.is_empty() => None,
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

    /// Begins to listen, and requests all power again that may have changed before.
    fn begin_to_listen(&mut self) {
        self.listening += 1;
        self.queues.unread.mark(self.known.components.enabled());
    }

    fn seen_now(&mut self) -> ReadingOrigin {
        self.clock += 1;
        Self::seen_at(self.clock, self.listening)
    }

    fn seen_at(clock: u64, listening: u64) -> ReadingOrigin {
        let now = Instant::now();
        ReadingOrigin { listening, clock, at: now, asked_at: now, as_of: None }
    }

    /// Stores the states that differ from the known ones.
    async fn store(&mut self, states: Vec<(ComponentId, PowerState, ReadingOrigin)>) {
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
        for (id, _, seen) in &states {
            self.engine.lock().nodes.read(id, seen.asked_at.into_std(), seen.as_of, clock);
        }
        // Confirmed states count too: the confirmed one may come from a write that seemed to have failed.
        self.queues.undecided.mark(states.iter().map(|(id, ..)| id.clone()));
        for (id, state, seen) in states {
            self.look_again(&id, &state, seen, &options, now);
            self.note(id, seen);
        }
    }

    /// Schedules the next poll of a component: as soon as its power may be known, or known for its generation, or may
    /// have changed.
    fn look_again(
        &self,
        id: &ComponentId,
        state: &PowerState,
        seen: ReadingOrigin,
        options: &Options,
        now: Timestamp,
    ) {
        let Some(component) = self.known.components.get(id.as_str()) else { return };
        let generation = component.generation;
        if self.engine.lock().nodes.settle(state, options, now).is_some_and(|settled| settled < generation) {
            self.queues.unread.mark([id.clone()]);
        }
        let after = |pause| Instant::now() + pause;
        // Not every upstream pushes the return of a node that was missing or whose power was unknown.
        let left_open = self.engine.lock().nodes.is_left_open(id.as_str()).then(|| after(LEFT_OPEN));
        let doubt = is_doubtful(state).then(|| after(options.polling_period()));
        let effect = match self.engine.lock().nodes.outlook(state, generation, options, now) {
            Outlook::Pending { until } => until.map(|until| after(until.since(now))),
            Outlook::Settled => None,
        };
        let change = component.is_enabled().then(|| self.fresh_until(&seen, &component));
        let overdue = self.overdue_from(&component, state, Instant::now()).filter(|_| component.is_enabled());
        self.ask_at(id, left_open.into_iter().chain(doubt).chain(effect).chain(change).chain(overdue));
    }

    /// Schedules a poll of the component at the first of these times.
    fn ask_at(&self, id: &ComponentId, times: impl Iterator<Item = Instant>) {
        if let Some(at) = times.min() {
            self.queues.unread.mark_at(id.clone(), at);
        }
    }

    /// Notes the origin of a reading; a reading that only confirms a newer one does not make it older.
    fn note(&mut self, id: ComponentId, seen: ReadingOrigin) {
        let known = self.seen.entry(id).or_insert(seen);
        if seen.clock >= known.clock {
            (known.asked_at, known.as_of) = (seen.asked_at, seen.as_of);
        }
        known.listening = known.listening.max(seen.listening);
        known.clock = known.clock.max(seen.clock);
        known.at = known.at.max(seen.at);
    }

    /// Returns whether the stored state, of whichever generation, differs in the power of the node.
    fn contradicts(&self, state: &PowerState) -> bool {
        let known = self.known.states.view().get(&state.id);
        known.is_some_and(|known| (known.reading, &known.error) != (state.reading, &state.error))
    }

    fn differs(&self, state: &PowerState) -> bool {
        self.known.states.view().get(&state.id).is_none_or(|known| {
            (known.reading, &known.error, &known.action_waits_for, AskedFor::by(&known))
                != (state.reading, &state.error, &state.action_waits_for, AskedFor::by(state))
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

/// Returns the state without its reading, which an action may still change, as the `trouble` says.
fn without_reading(state: PowerState, trouble: &Trouble) -> PowerState {
    PowerState { reading: PowerReading::Unspecified.into(), error: trouble.text().to_string(), ..state }
}
