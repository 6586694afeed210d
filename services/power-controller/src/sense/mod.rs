//! Keeps the known power of every component current: requests it when a component begins a new generation, listens for
//! changes, and polls nodes that are being acted on. An upstream that pushes changes is polled seldom: pushes are for
//! speed, and polls for the truth.
//!
//! A single task does all of it, so that readings have an order. [`power::standing`] says which of two readings stands.

mod guard;
mod take;

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    mem,
    pin::pin,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{
    kinds::observation,
    lease::EngineTurn,
    observe::{
        beat::PollBeats,
        freshness::BEAT,
        listen::{PushEvent, listen},
        outage::KeyOutages,
        reading_clock::{LogicalTime, ReadingClock},
    },
    process::{clock, pause::FailureStreak},
};
use domain::{
    boot::{
        component::Component,
        power::{self, PowerObservation, Shown},
    },
    core::{id::ComponentId, looks, time::Timestamp},
};
use futures_util::{Stream, StreamExt};
use proto::power::{PowerReading, PowerState};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing::Instrument;

pub(crate) use self::guard::ReadingGuard;
use crate::{
    convert::AskedFor,
    driver::{DriverFailure, NodeReading, PowerUpstream},
    engine::{ForeignListing, SharedEngine, ShownPower},
    known::DecisionData,
    queues::EngineQueues,
};

/// Pushes that are stored together, so that a burst of single changes costs few commits.
const MOST_PUSHES: usize = 4096;

/// Most times by which the pause between polls is longer for idle nodes, or where the upstream pushes changes. A change
/// that was not pushed is then found long before an action that had its effect would be taken for one without. By
/// default that is as often as power services themselves poll a node.
const WHEN_QUIET: u32 = 6;

/// Shortest pause between polls of a node: beats have a length.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// Pause before nodes are read while the upstream was asked for its open transitions.
const LISTED_SOON: Duration = Duration::from_millis(50);

/// Task that reads power states.
pub(crate) struct PowerPoller {
    known: DecisionData,
    driver: PowerUpstream,
    queues: EngineQueues,
    engine: SharedEngine,
    guard: ReadingGuard,
    /// Power that results of actions show.
    results: mpsc::Receiver<Vec<ShownPower>>,
    /// Moments of polls.
    beats: PollBeats,
    /// Least time between polls of a node.
    pause: Duration,
    /// Most time between polls of a node.
    longest: Duration,
    /// Order of readings. Those from before listening began may have missed changes.
    readings: ReadingClock<ComponentId, ReadingOrigin>,
    /// Nodes whose power is not needed any more.
    unwanted: HashSet<ComponentId>,
    /// Power that results of actions showed last, so that earlier readings are recognised.
    shown: HashMap<ComponentId, Shown>,
    outages: KeyOutages<ComponentId>,
    /// Failures in a row to read power, or to store it.
    failures: FailureStreak,
}

/// Origin of the stored reading of a component.
#[derive(Debug, Clone, Copy)]
struct ReadingOrigin {
    /// Time of arrival.
    at: Instant,
    /// Time of the request.
    asked_at: Instant,
    /// Time since which the reading holds, as reported by the upstream; `None`: the time of the reading.
    as_of: Option<Timestamp>,
}

/// Node whose power is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeQuery {
    id: ComponentId,
    asked_for: AskedFor,
}

/// Queries about nodes that were sent together.
struct NodeQueryBatch {
    nodes: Vec<NodeQuery>,
    time: LogicalTime,
    asked_at: Instant,
}

/// Event of the stream of pushed readings.
type PowerPush = PushEvent<Vec<(String, NodeReading)>, DriverFailure>;

type NodeQueryAnswer = (NodeQueryBatch, Result<Vec<(String, NodeReading)>, DriverFailure>);

impl PowerPoller {
    /// Creates the task. `pause`: the time between polls of a node that was just acted on. An idle node is polled less
    /// often, and so is every node where the upstream pushes changes.
    pub(crate) fn new(
        guard: ReadingGuard,
        queues: EngineQueues,
        results: mpsc::Receiver<Vec<ShownPower>>,
        pause: Duration,
    ) -> Self {
        let ReadingGuard { known, driver, engine, .. } = guard.clone();
        let longest = pause.saturating_mul(WHEN_QUIET);
        let pause = if driver.tells() { longest } else { pause.max(SHORTEST_PAUSE) };
        Self {
            known,
            driver,
            queues,
            engine,
            guard,
            results,
            beats: PollBeats::new(Instant::now()),
            pause,
            longest,
            readings: ReadingClock::default(),
            unwanted: HashSet::new(),
            shown: HashMap::new(),
            outages: KeyOutages::default(),
            failures: FailureStreak::default(),
        }
    }

    /// Reads and listens for ever.
    pub(crate) async fn run(mut self) -> anyhow::Result<Infallible> {
        self.known.components.reached(1).await;
        self.known.freshness.beat();
        let driver = self.driver.clone();
        let pushes = listen("power", || driver.watch_power());
        let mut pushes = pin!(pushes.ready_chunks(MOST_PUSHES));
        let mut queries = JoinSet::new();
        loop {
            self.notice_gap().await;
            let most = self.known.options.in_force().batch_size(self.driver.most_nodes());
            tokio::select! {
                pushed = next(&mut pushes) => {
                    let _turn = self.turn();
                    self.take_pushes(pushed).await;
                }
                Some(results) = self.results.recv() => {
                    let _turn = self.turn();
                    self.take_results(results).await;
                }
                Some(answer) = queries.join_next() => {
                    let _turn = self.turn();
                    let mut answers = vec![answer.context("a question")?];
                    while let Some(more) = queries.try_join_next() {
                        answers.push(more.context("a question")?);
                    }
                    self.take_answers(answers).await;
                }
                () = sleep(BEAT) => {}
                ids = self.queues.unread.next(most), if queries.len() < self.driver.most_queries() => {
                    let _turn = self.turn();
                    self.ask(ids, &mut queries).await;
                }
            }
            if queries.is_empty() {
                self.forget_unwanted();
            }
        }
    }

    fn turn(&self) -> EngineTurn {
        self.known.term.turn("read power")
    }

    /// Withdraws all readings after a sleep of the process or a loss of power states, and reads every node again. Until
    /// then, no decision rests on the readings.
    async fn notice_gap(&mut self) {
        if self.known.is_out_of_date() {
            tracing::warn!("power states are of before a gap or a loss, reading all of them again");
            let enabled: Vec<_> = self.known.components.enabled().collect();
            self.readings.clear();
            if let Err(fault) = self.known.withdraw(&enabled).await {
                tracing::warn!(%fault, "power states of before are not withdrawn, trying again");
                return sleep(BEAT).await;
            }
            self.queues.unread.mark(enabled);
        }
        self.known.freshness.beat();
    }

    /// Forgets when nodes were read whose power is not needed any more. While an answer is on its way, the time is
    /// needed to see whether the answer is older than the stored reading.
    fn forget_unwanted(&mut self) {
        for id in mem::take(&mut self.unwanted) {
            let component = self.known.components.get(id.as_str());
            if component.is_some_and(|component| !component.is_enabled()) {
                self.readings.forget(&id);
            }
        }
    }

    /// Requests the power of nodes that need it. Stored states of components that are gone are deleted.
    async fn ask(&mut self, ids: Vec<ComponentId>, queries: &mut JoinSet<NodeQueryAnswer>) {
        let listing = self.engine.lock().foreign.listing();
        let error = match &listing {
            ForeignListing::Known => None,
            ForeignListing::Awaited => Some(""),
            ForeignListing::Failed(error) => Some(&**error),
        };
        if let Some(error) = error {
            return self.await_listing(ids, error).await;
        }
        let (mut nodes, mut gone, now) = (Vec::new(), Vec::new(), Instant::now());
        let mut overtaken: HashMap<_, Vec<_>> = HashMap::new();
        for id in ids {
            let Some(component) = self.known.components.get(id.as_str()) else {
                gone.push(id);
                continue;
            };
            if let Some(trouble) = self.engine.lock().waits_for_holder(id.as_str(), component.generation) {
                overtaken.entry(trouble).or_default().push(component.id.clone());
            }
            match self.wanted_from(&component, now) {
                Some(at) if at <= now => {
                    // Long-lived keys use the id in the memory of the component.
                    let (id, asked_for) = (component.id.clone(), AskedFor::of(&component));
                    nodes.push(NodeQuery { id, asked_for });
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
        let (time, asked_at) = (self.readings.tick(), Instant::now());
        for nodes in self.driver.apart(nodes, |node| node.id.as_str()) {
            let batch = NodeQueryBatch { nodes, time, asked_at };
            let guard = self.guard.clone();
            let ask = async move {
                let answer = guard.read(&batch.nodes).await;
                (batch, answer)
            };
            queries.spawn(ask.in_current_span());
        }
    }

    /// Queues nodes until the upstream has named its open transitions: until then no reading is evidence. `error`: reason
    /// why it has not; empty: it was only just asked.
    async fn await_listing(&mut self, ids: Vec<ComponentId>, error: &str) {
        let pause = if error.is_empty() { LISTED_SOON } else { BEAT };
        let at = Instant::now() + pause;
        ids.iter().for_each(|id| self.queues.unread.mark_at(id.clone(), at));
        if !error.is_empty() {
            self.lose_touch(ids, error).await;
        }
    }

    /// Returns when, `now` or later, the stored reading stops being evidence for the component as it is now; `None`
    /// while its power is not needed, or a result will report it.
    fn wanted_from(&self, component: &Component, now: Instant) -> Option<Instant> {
        let id = component.id.as_str();
        let state = self.known.state(id);
        let state = state.as_ref();
        // A followed action brings its own result, but not the news that the upstream answers power requests again.
        let told = self.engine.lock().nodes.is_followed(id)
            && state.is_some_and(|state| state.reading() != PowerReading::Unspecified);
        if !component.is_enabled() {
            return None;
        }
        let overdue = state.and_then(|state| self.overdue_from(component, state, now));
        if told {
            return overdue;
        }
        if self.engine.lock().nodes.is_left_open(id) {
            return Some(now);
        }
        let is_held = self.engine.lock().nodes.holder_before(id, component.generation).is_some();
        let known = state.is_some_and(|state| {
            AskedFor::by(state).is_same_attempt(AskedFor::of(component))
                && !is_doubtful(state)
                && state.action_waits_for.is_empty() != is_held
        });
        let seen = self.readings.fresh(&component.id).filter(|_| known);
        let stale_from = seen.map_or(now, |seen| self.fresh_until(*seen, component));
        let newer_from = state.and_then(|state| self.newer_from(component, state, now));
        [overdue, newer_from].into_iter().flatten().chain([stale_from]).min()
    }

    /// Returns when a node is read because "off" was read before its last report; `None`: that is not so.
    fn newer_from(&self, component: &Component, state: &PowerState, now: Instant) -> Option<Instant> {
        match observation::power_of(component, Some(state)) {
            PowerObservation::OffInDoubt => {
                let ends = power::doubt_ends(component.reported.running_report?, self.driver.source());
                Some(now + ends.since(clock::now()))
            }
            PowerObservation::Unknown
            | PowerObservation::Missing
            | PowerObservation::Undefined { .. }
            | PowerObservation::On
            | PowerObservation::OnAgain
            | PowerObservation::Off => None,
        }
    }

    /// Returns when a node is read although a result is expected: the time of its last action is over then, and a
    /// reading from before the action does not show that it had no effect.
    fn overdue_from(&self, component: &Component, state: &PowerState, now: Instant) -> Option<Instant> {
        let is_read_since = AskedFor::by(state).begun_actions >= AskedFor::of(component).begun_actions;
        // The time of an action that may not have been taken is not over.
        if is_read_since
            || component.last_action_failed()
            || self.engine.lock().nodes.is_in_doubt(component.id.as_str())
        {
            return None;
        }
        let until = power::effect_due(component, &self.known.options.in_force())?;
        Some(now + until.since(clock::now()))
    }

    /// Returns until when a component need not be polled.
    fn fresh_until(&self, seen: ReadingOrigin, component: &Component) -> Instant {
        let quiet = component.last_action_at().map_or(Duration::MAX, |at| clock::now().since(at));
        self.beats.closest(seen.at, looks::at_leisure(quiet, self.pause, self.longest))
    }

    /// Deletes the states of components that are gone. Where that fails, the next start does it.
    async fn forget(&mut self, ids: Vec<ComponentId>) {
        if ids.is_empty() {
            return;
        }
        for id in &ids {
            self.readings.forget(id);
            self.shown.remove(id);
            self.outages.end(id);
        }
        if let Err(fault) = self.known.forget(ids).await {
            tracing::debug!(%fault, "cannot delete the power states of components that are gone");
        }
    }
}

/// Returns the next pushes; waits for ever if the stream ends, which it never does.
async fn next(pushes: &mut (impl Stream<Item = Vec<PowerPush>> + Unpin)) -> Vec<PowerPush> {
    match pushes.next().await {
        Some(pushes) => pushes,
        None => std::future::pending().await,
    }
}

/// Returns whether a reading does not show the power of a node.
fn is_doubtful(state: &PowerState) -> bool {
    let read = match state.reading() {
        PowerReading::On | PowerReading::Off => true,
        PowerReading::Unspecified | PowerReading::Undefined | PowerReading::Missing => false,
    };
    !read || !state.error.is_empty()
}
