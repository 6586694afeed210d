//! Processing of answers, pushes and results.

use std::{collections::HashMap, time::Duration};

use chassis::{
    mesh::time,
    observe::{listen::PushEvent, reading_clock::LogicalTime},
    process::{clock, pause},
};
use domain::{
    boot::{
        bos::options::Options,
        component::Component,
        power::{
            self, Outlook,
            standing::{ArrivingAnswer, ReadingStanding, RecordedReading, answer_standing, result_standing},
            transition::NO_GENERATION,
        },
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use proto::power::{PowerReading, PowerState, SeenOff};
use tokio::time::Instant;

use super::{NodeQuery, NodeQueryAnswer, NodeQueryBatch, PowerPoller, PowerPush, ReadingOrigin, is_doubtful};
use crate::{
    convert::{self, AskedFor},
    driver::{DriverFailure, NodeReading},
    engine::{OpenAction, ShownPower},
};

/// Pause before polling a node again whose reading may be from before the end of an action.
const LEFT_OPEN: Duration = Duration::from_secs(1);

/// Reading that stands beside those that arrived before.
struct ArrivedReading {
    id: ComponentId,
    state: PowerState,
    /// Time of the request, push or result.
    time: LogicalTime,
    origin: ReadingOrigin,
}

impl ReadingOrigin {
    /// Returns the origin of a reading that arrives without a request.
    fn now() -> Self {
        let now = Instant::now();
        Self { at: now, asked_at: now, as_of: None }
    }
}

impl PowerPoller {
    /// Stores answers that arrived at the same time together. Of two answers about one node the later request counts.
    pub(super) async fn take_answers(&mut self, mut answers: Vec<NodeQueryAnswer>) {
        answers.sort_by_key(|(batch, _)| batch.time);
        let (mut read, mut failed) = (HashMap::new(), Vec::new());
        for (batch, answer) in answers {
            match answer {
                Ok(readings) => {
                    self.failures.end();
                    batch.nodes.iter().for_each(|node| self.outages.end(&node.id));
                    let standing = self.weigh(batch, readings.into_iter().collect());
                    read.extend(standing.into_iter().map(|one| (one.id.clone(), one)));
                }
                Err(failure) => failed.push((batch, failure)),
            }
        }
        self.store(read.into_values().collect()).await;
        for (batch, failure) in failed {
            self.take_failure(batch, &failure).await;
        }
    }

    /// Withdraws the readings of nodes about which too long nothing was answered. Nodes of which a later request was
    /// answered meanwhile keep theirs.
    async fn take_failure(&mut self, batch: NodeQueryBatch, failure: &DriverFailure) {
        let NodeQueryBatch { nodes, time, asked_at } = batch;
        let ids = nodes.into_iter().map(|node| node.id);
        let ids: Vec<_> = ids.filter(|id| !self.readings.is_overtaken(id, time)).collect();
        if ids.is_empty() {
            return;
        }
        if self.failures.add() {
            tracing::warn!(error = %failure, "cannot read power states, trying again");
        }
        let lost = self.outages.too_long(&ids, asked_at, Instant::now());
        self.lose_touch(lost, &failure.to_string()).await;
        self.ask_again_later(ids);
    }

    /// Returns the readings of an answer that stand. The other nodes are requested again.
    fn weigh(
        &mut self,
        batch: NodeQueryBatch,
        mut answer: HashMap<String, NodeReading>,
    ) -> Vec<ArrivedReading> {
        let now = clock::now();
        let options = self.known.options.in_force();
        let mut standing = Vec::new();
        for NodeQuery { id, asked_for } in batch.nodes {
            let reading = answer.remove(id.as_str()).unwrap_or_else(NodeReading::missing);
            let component = self.known.components.get(id.as_str());
            let origin = ReadingOrigin { at: Instant::now(), asked_at: batch.asked_at, as_of: reading.as_of };
            let newer_than = component.as_ref().and_then(|component| self.newer_than(origin, component, now));
            let state = PowerState {
                newer_than_report: newer_than.map(time::to_wire),
                ..convert::power_state(&id, reading, asked_for, now)
            };
            let arriving = ArrivingAnswer {
                is_of_generation: component
                    .as_ref()
                    .is_some_and(|component| component.generation == asked_for.generation),
                reading: convert::rule_reading(state.reading()),
                as_of: origin.as_of,
                is_overtaken: self.readings.is_overtaken(&id, batch.time),
                contradicts: self.contradicts(&state),
            };
            match answer_standing(arriving, self.shown.get(&id).copied(), now) {
                ReadingStanding::Discarded => {}
                ReadingStanding::Outdated => {
                    self.readings.forget(&id);
                    let next = component.map(|component| self.fresh_until(origin, &component));
                    self.ask_at(&id, next.into_iter());
                }
                ReadingStanding::Contradicted => {
                    self.readings.forget(&id);
                    self.queues.unread.mark([id]);
                }
                ReadingStanding::Stands => {
                    let state = self.evidence(state, &options, now);
                    standing.push(ArrivedReading { id, state, time: batch.time, origin });
                }
            }
        }
        standing
    }

    /// Returns the report of the node that a reading is newer than, if the node was not switched off since.
    fn newer_than(&self, origin: ReadingOrigin, component: &Component, now: Timestamp) -> Option<Timestamp> {
        let asked_at = now.minus(origin.asked_at.elapsed());
        let (source, clock) = (self.driver.source(), self.driver.clock());
        let reported = component.reported.running_report?;
        power::is_after_report(reported, asked_at, origin.as_of, source, clock).then_some(reported)
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

    pub(super) async fn take_pushes(&mut self, pushes: Vec<PowerPush>) {
        let now = clock::now();
        let mut newest = HashMap::new();
        for push in pushes {
            match push {
                PushEvent::Lost(error) => {
                    let enabled = self.known.components.enabled().collect();
                    self.lose_touch(enabled, &error.to_string()).await;
                }
                PushEvent::Began => self.begin_to_listen(),
                PushEvent::Pushed(readings) => {
                    let (unguarded, readings): (Vec<_>, Vec<_>) =
                        readings.into_iter().partition(|(id, reading)| self.guard.is_unguarded(id, reading));
                    self.read_anew(unguarded.into_iter().map(|(id, _)| id));
                    let (time, origin) = (self.readings.tick(), ReadingOrigin::now());
                    newest.extend(readings.into_iter().map(|(id, reading)| (id, (reading, time, origin))));
                }
            }
        }
        let read = newest.into_iter().filter_map(|(id, (reading, time, origin))| {
            let id = self.known.components.get(&id)?.id.clone();
            let state = convert::power_state(&id, reading, self.asked_for(id.as_str()), now);
            Some(ArrivedReading { id, state, time, origin })
        });
        let read = read.collect();
        self.store(read).await;
    }

    /// Requests the power of nodes, whose readings so far do not count any more for the time of the next one.
    fn read_anew(&mut self, ids: impl Iterator<Item = String>) {
        for id in ids {
            let Some(component) = self.known.components.get(&id) else { continue };
            self.readings.forget(&component.id);
            self.queues.unread.mark([component.id.clone()]);
        }
    }

    /// Stores the power that results of actions show. A result belongs to the generation of its action; if a newer
    /// generation has been read meanwhile, its power is read again. An inherited result is evidence for no generation.
    pub(super) async fn take_results(&mut self, results: Vec<ShownPower>) {
        let (options, now) = (self.known.options.in_force(), clock::now());
        let (time, origin) = (self.readings.tick(), ReadingOrigin::now());
        let (mut standing, mut shut_down) = (Vec::new(), Vec::new());
        for ShownPower { state, is_inherited } in results {
            let Some(component) = self.known.components.get(&state.id) else { continue };
            let id = component.id.clone();
            let shown = convert::as_shown(&state);
            self.shown.insert(id.clone(), shown);
            // The action began after every earlier power-on attempt was over.
            let asked_for = AskedFor::of(&component);
            let same = asked_for.generation == state.generation;
            let seen_off = (same && state.reading() == PowerReading::Off)
                .then_some(SeenOff { generation: state.generation, begun_actions: asked_for.begun_actions });
            let AskedFor { generation, spent_power_ons, begun_actions } = match (is_inherited, same) {
                (true, _) => AskedFor { generation: NO_GENERATION, ..AskedFor::default() },
                (false, true) => asked_for,
                (false, false) => AskedFor { generation: state.generation, ..AskedFor::default() },
            };
            let state = PowerState { generation, spent_power_ons, begun_actions, ..state };
            shut_down.extend(seen_off.map(|seen_off| (id.clone(), seen_off)));
            let recorded = self.recorded(&id, &state);
            if result_standing(shown, state.generation, recorded, now) == ReadingStanding::Stands {
                standing.push(ArrivedReading { id, state, time, origin });
            } else {
                self.engine.lock().nodes.settle(&state, &options, now);
                self.readings.forget(&id);
                self.queues.unread.mark([id]);
            }
        }
        self.store(standing).await;
        self.note_seen_off(&shut_down).await;
    }

    /// Notes when nodes were off by the results of shutdowns, where no reading shows that: a later one may show another power.
    /// The write is retried until it is on record, because no result comes twice.
    async fn note_seen_off(&self, shut_down: &[(ComponentId, SeenOff)]) {
        let note = async || {
            let states = shut_down.iter().filter_map(|(id, seen_off)| {
                let known = self.known.state(id.as_str())?;
                let state = convert::with_seen_off(
                    PowerState { seen_off: Some(*seen_off), ..known.clone() },
                    Some(&known),
                );
                (state.seen_off != known.seen_off).then_some(state)
            });
            let states: Vec<_> = states.collect();
            if states.is_empty() { Ok(()) } else { self.known.store(states).await }
        };
        let warn = |fault, _| tracing::warn!(%fault, "cannot record that nodes were off, trying again");
        pause::until_done(note, warn).await;
    }

    /// Returns the reading on record beside the `result` of an action.
    fn recorded(&self, id: &ComponentId, result: &PowerState) -> Option<RecordedReading> {
        let known = self.known.state(id.as_str())?;
        Some(RecordedReading {
            generation: known.generation,
            reading: convert::rule_reading(known.reading()),
            observed_at: convert::observed_at(&known),
            as_of: self.readings.newest(id).and_then(|origin| origin.as_of),
            contradicts: self.contradicts(result),
        })
    }

    /// Returns the state that a component was last requested for. A push may have been on its way since before the
    /// newest generation, and is no evidence for that generation until the answer to a request is here.
    fn asked_for(&self, id: &str) -> AskedFor {
        self.known.state(id).map(|state| AskedFor::by(&state)).unwrap_or_default()
    }

    /// Shows on nodes with a new generation the open transition because of which their power is unknown.
    pub(super) async fn await_ends(&mut self, waiting: HashMap<Trouble, Vec<ComponentId>>) {
        for (trouble, ids) in waiting {
            self.withhold(&ids, &trouble, |_| true).await;
        }
    }

    /// Withdraws readings from before the upstream fell silent: they are no evidence for the present power. They are
    /// shown with their age, and with the upstream's trouble at the time of the discovery, which replaces any earlier
    /// reason for which the power is unknown.
    pub(super) async fn lose_touch(&mut self, ids: Vec<ComponentId>, error: &str) {
        let outages = &self.outages;
        if self.withhold(&ids, &Trouble::waiting_for(error), |id| outages.is_recorded(id)).await {
            self.outages.note_recorded(ids);
        }
    }

    /// Withdraws the readings of nodes whose power is unknown because of `trouble`. A node whose power is unknown already
    /// `keeps` the earlier reason or not. Returns false when the record cannot be written.
    async fn withhold(
        &self,
        ids: &[ComponentId],
        trouble: &Trouble,
        keeps: impl Fn(&ComponentId) -> bool,
    ) -> bool {
        let (reading, error) = (PowerReading::Unspecified, trouble.text().to_string());
        let lost = ids.iter().filter_map(|id| match self.known.state(id.as_str()) {
            Some(state) if state.reading() == reading && state.error == error => None,
            Some(state) if state.reading() == reading && !state.error.is_empty() && keeps(id) => None,
            Some(state) => Some(state),
            None => Some(PowerState { id: id.as_str().to_owned(), ..PowerState::default() }),
        });
        let reading = reading.into();
        let lost: Vec<_> = lost.map(|state| PowerState { reading, error: error.clone(), ..state }).collect();
        if lost.is_empty() {
            return true;
        }
        let stored = self.known.store(lost).await;
        if let Err(fault) = &stored {
            tracing::warn!(%fault, "cannot record that the power upstream is silent");
        }
        stored.is_ok()
    }

    /// Begins to listen, and requests all power again that may have changed before.
    fn begin_to_listen(&mut self) {
        self.readings.note_gap();
        self.queues.unread.mark(self.known.components.enabled());
    }

    /// Stores the states that differ from the known ones.
    async fn store(&mut self, read: Vec<ArrivedReading>) {
        let changed: Vec<_> =
            read.iter().map(|one| &one.state).filter(|state| self.differs(state)).cloned().collect();
        if !changed.is_empty()
            && let Err(fault) = self.known.store(changed).await
        {
            self.failures.add();
            tracing::debug!(%fault, "cannot store power states, asking again");
            return self.ask_again_later(read.into_iter().map(|one| one.id).collect());
        }
        let (options, now) = (self.known.options.in_force(), clock::now());
        let clock = self.driver.clock();
        for ArrivedReading { id, origin, .. } in &read {
            self.engine.lock().nodes.read(id, origin.asked_at.into_std(), origin.as_of, clock);
        }
        // Confirmed states count too: the confirmed one may come from a write that seemed to have failed.
        self.queues.undecided.mark(read.iter().map(|one| one.id.clone()));
        for ArrivedReading { id, state, time, origin } in read {
            self.look_again(&id, &state, origin, &options, now);
            self.note(id, time, origin);
        }
    }

    /// Schedules the next poll of a component: as soon as its power may be known, or known for its generation, or may
    /// have changed.
    fn look_again(
        &self,
        id: &ComponentId,
        state: &PowerState,
        origin: ReadingOrigin,
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
        let change = component.is_enabled().then(|| self.fresh_until(origin, &component));
        let (overdue, newer) = match component.is_enabled() {
            true => {
                let now = Instant::now();
                (self.overdue_from(&component, state, now), self.newer_from(&component, state, now))
            }
            false => (None, None),
        };
        self.ask_at(id, [left_open, doubt, effect, change, overdue, newer].into_iter().flatten());
    }

    /// Schedules a poll of the component at the first of these times.
    fn ask_at(&self, id: &ComponentId, times: impl Iterator<Item = Instant>) {
        if let Some(at) = times.min() {
            self.queues.unread.mark_at(id.clone(), at);
        }
    }

    /// Notes the origin of a reading. One that only confirms a newer one does not make it older.
    fn note(&mut self, id: ComponentId, time: LogicalTime, origin: ReadingOrigin) {
        let newer = self.readings.newest(&id).filter(|_| self.readings.is_overtaken(&id, time));
        let origin = newer.map_or(origin, |newer| ReadingOrigin { at: origin.at, ..*newer });
        self.readings.note(id, time, origin);
    }

    /// Returns whether the stored state, of whichever generation, differs in the power of the node.
    fn contradicts(&self, state: &PowerState) -> bool {
        let known = self.known.state(&state.id);
        known.is_some_and(|known| (known.reading, &known.error) != (state.reading, &state.error))
    }

    fn differs(&self, state: &PowerState) -> bool {
        self.known.state(&state.id).is_none_or(|known| {
            let facts = |state: &PowerState| (state.reading, AskedFor::by(state), newer_than_if_off(state));
            facts(&known) != facts(state)
                || (&known.error, &known.action_waits_for) != (&state.error, &state.action_waits_for)
        })
    }

    fn ask_again_later(&mut self, ids: Vec<ComponentId>) {
        let at = Instant::now() + self.failures.pause();
        for id in ids {
            self.readings.forget(&id);
            self.queues.unread.mark_at(id, at);
        }
    }
}

/// Returns the report that a reading is newer than, where that matters.
fn newer_than_if_off(state: &PowerState) -> Option<Timestamp> {
    state.newer_than_report.map(time::from_wire).filter(|_| state.reading() == PowerReading::Off)
}

/// Returns the state without its reading, which an action may still change, as the `trouble` says.
fn without_reading(state: PowerState, trouble: &Trouble) -> PowerState {
    PowerState { reading: PowerReading::Unspecified.into(), error: trouble.text().to_string(), ..state }
}
