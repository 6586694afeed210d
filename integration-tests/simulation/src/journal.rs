//! The history of a run, as an omniscient observer records it: the states that each host has stored, with their times,
//! and the actions that the machine took.

mod foreign;
mod shutdowns;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use chassis::{
    kinds::{configuration::ConfigurationStateRecord, options::OptionsRecord, power::PowerStateRecord},
    store::{
        disk::KeptCommit,
        resource::{Batch, Resource},
    },
};
use domain::boot::{
    component::Component,
    power::transition::{PowerTransition, TransitionDelivery},
    session::Progress,
};
use parking_lot::Mutex;
use proto::{
    component::Action,
    configuration::ConfigurationReading,
    power::{PowerReading, PowerState},
};
use session_manager::SessionRecord;
use tokio::{sync::Notify, time::Instant};

use self::{foreign::ForeignHold, shutdowns::ShutdownRecords};
use crate::{
    invariants::{self, Acceptance, Asked, Open, Prepared, Violation},
    trace,
    world::Part,
};

/// Most age of the knowledge that an action rests on: the time of a call from its decision to its arrival, with
/// partitions of the network on the way.
pub const GRACE: Duration = Duration::from_secs(45);

/// Most time that a call is on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// History of a run.
#[derive(Default)]
pub struct Journal {
    state: Mutex<State>,
    bad: Notify,
}

#[derive(Default)]
struct State {
    components: BTreeMap<String, History<Component>>,
    /// Components before the last restore, and its time.
    before_restore: Option<(Instant, BTreeMap<String, Arc<Component>>)>,
    powers: BTreeMap<String, History<PowerStateRecord>>,
    transitions: BTreeMap<String, Arc<PowerTransition>>,
    /// Transitions that the power service has taken.
    arrived: BTreeSet<String>,
    /// Transitions that a loss of commits took, and whose calls may still arrive.
    lost: BTreeSet<String>,
    options: Option<Arc<OptionsRecord>>,
    boot: BTreeMap<String, VecDeque<(Instant, Prepared)>>,
    configured: BTreeMap<String, VecDeque<(Instant, String)>>,
    /// Tokens with which each node has booted.
    booted: BTreeMap<String, BTreeSet<String>>,
    attempts: BTreeMap<Asked, Vec<String>>,
    /// Transition of the power service under each id.
    took: BTreeMap<String, (Action, BTreeSet<String>)>,
    /// Starts that have read the power of each node.
    readers: BTreeMap<String, BTreeSet<u64>>,
    /// Generations of each node for which its configuration was read.
    configurations_read: BTreeMap<String, BTreeSet<u64>>,
    /// Generations of each node that older rules have decided about, which the present ones do not bind.
    decided_by_older: BTreeSet<(String, u64)>,
    /// Start that was about to send each transition last: a call that arrives late is its call.
    senders: BTreeMap<String, u64>,
    /// Times at which the inventory lacked each node.
    lacked: BTreeMap<String, Vec<Instant>>,
    /// Foreign transitions recorded as holders of a node.
    holders: BTreeMap<String, BTreeSet<String>>,
    revisions: BTreeMap<(Part, &'static str), u64>,
    /// Transitions of other clients that hold nodes, by node.
    foreign: BTreeMap<String, ForeignHold>,
    shutdowns: ShutdownRecords,
    /// Upstream ids of transitions that are abandoned on record or by a promise of the power controller, with the time.
    abandoned: BTreeMap<String, Instant>,
    /// Whether nothing keeps the power controller from learning of the transitions of other clients.
    is_calm: bool,
    /// Completion times of sessions by id, as long as they are complete.
    completed: BTreeMap<Arc<str>, Instant>,
    /// Parts whose database has lost commits.
    set_back: BTreeSet<Part>,
    violations: Vec<Violation>,
}

/// States of a resource with their times, oldest first; `None` where it was deleted.
struct History<R>(VecDeque<(Instant, Option<Arc<R>>)>);

impl<R> Default for History<R> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<R> History<R> {
    fn push(&mut self, state: Option<Arc<R>>) {
        let now = Instant::now();
        self.0.push_back((now, state));
        // The last state that is older than the grace was in force within it.
        while self.0.get(1).is_some_and(|(since, _)| *since + GRACE < now) {
            self.0.pop_front();
        }
    }

    fn last(&self) -> Option<Arc<R>> {
        self.0.back().and_then(|(_, state)| state.clone())
    }

    /// Returns the states that were in force at some time within the grace, oldest first.
    fn recent(&self) -> Vec<Arc<R>> {
        let now = Instant::now();
        let outdated = |index: usize| self.0.get(index + 1).is_some_and(|(since, _)| *since + GRACE < now);
        let states = self.0.iter().enumerate().filter(|(index, _)| !outdated(*index));
        states.filter_map(|(_, (_, state))| state.clone()).collect()
    }
}

/// Returns the power states that were in force within the grace.
fn power_states(history: &History<PowerStateRecord>) -> Vec<PowerState> {
    history.recent().iter().map(|state| state.message()).collect()
}

impl Journal {
    /// Records a commit of a host.
    pub fn kept(&self, part: Part, commit: &KeptCommit<'_>) {
        let KeptCommit { kind, batch, start, .. } = *commit;
        let mut state = self.state.lock();
        let foreign = state.without_marks(commit);
        state.judge("I10", invariants::written_by_who_holds_it(kind, &foreign));
        if let Some(batch) = batch.downcast_ref::<Batch<Component>>() {
            state.told(part, batch);
            batch.changed.iter().for_each(|one| state.judge("I17", invariants::own_failures(one)));
            for one in &batch.changed {
                let stable = {
                    let booted = state.booted.entry(one.id.as_str().to_owned()).or_default();
                    invariants::stable_by_own_report(one, booted)
                };
                state.judge("I5", stable);
            }
            for one in &batch.changed {
                let before = state.components.get(one.id.as_str()).and_then(History::last);
                state.judge("I10", invariants::newest_rules_decide(before.as_deref(), one));
                let lacked = state.lacked.get(one.id.as_str()).into_iter().flatten();
                let ages: Vec<_> = lacked.map(Instant::elapsed).collect();
                state.judge("I15", invariants::absence_is_confirmed(one, &ages));
                if invariants::is_decided_by_older_rules(one) {
                    state.decided_by_older.insert((one.id.as_str().to_owned(), one.generation));
                }
            }
            note(&mut state.components, batch);
        } else if let Some(batch) = batch.downcast_ref::<Batch<PowerStateRecord>>() {
            state.told(part, batch);
            for power in &batch.changed {
                if power.content().reading() != PowerReading::Unspecified {
                    state.readers.entry(power.id().to_owned()).or_default().insert(start);
                }
                state.note_belief(power);
                state.judge_wait(power);
            }
            note(&mut state.powers, batch);
        } else if let Some(batch) = batch.downcast_ref::<Batch<ConfigurationStateRecord>>() {
            state.told(part, batch);
            for one in &batch.changed {
                if one.content().reading() != ConfigurationReading::Unspecified {
                    let read = state.configurations_read.entry(one.id().to_owned()).or_default();
                    read.insert(one.content().generation);
                }
            }
        } else if let Some(batch) = batch.downcast_ref::<Batch<PowerTransition>>() {
            state.told(part, batch);
            for deletion in &batch.deleted {
                state.transitions.remove(&*deletion.key);
            }
            for transition in &batch.changed {
                let policy = state.policy();
                let checked = invariants::attempts_within_policy(transition, policy);
                state.judge("I7", checked);
                let own = invariants::own_end(transition, state.took.get(&transition.upstream_id));
                state.judge("I1", own);
                if transition.abandoned_at.is_some() && !transition.upstream_id.is_empty() {
                    state.abandoned.entry(transition.upstream_id.clone()).or_insert_with(Instant::now);
                }
                if transition.delivery == TransitionDelivery::Sent {
                    state.senders.insert(transition.id.clone(), start);
                }
                for member in transition.members.iter().filter(|member| !member.held_by.is_empty()) {
                    let holders = state.holders.entry(member.id.clone()).or_default();
                    holders.insert(member.held_by.clone());
                }
                state.transitions.insert(transition.id.clone(), Arc::clone(transition));
            }
        } else if let Some(batch) = batch.downcast_ref::<Batch<OptionsRecord>>() {
            state.told(part, batch);
            state.options = batch.changed.last().cloned();
        } else {
            if let Some(batch) = batch.downcast_ref::<Batch<SessionRecord>>() {
                batch.changed.iter().for_each(|record| state.note_completion(record));
            }
            trace::note(|| format!("{} keeps some {kind}", part.name()));
        }
        self.tell(&state);
    }

    /// Records that the boot script server took boot data.
    pub fn prepared(&self, nodes: &[String], kernel: &str, params: &str, token: &str) {
        let prepared = Prepared { kernel: kernel.into(), params: params.into(), token: token.into() };
        let mut state = self.state.lock();
        for node in nodes {
            remember(state.boot.entry(node.clone()).or_default(), prepared.clone());
        }
    }

    /// Records that the configuration service took a configuration.
    pub fn configured(&self, nodes: &[String], name: &str) {
        let mut state = self.state.lock();
        for node in nodes {
            remember(state.configured.entry(node.clone()).or_default(), name.to_owned());
        }
    }

    /// Records that a node has booted with a token.
    pub fn booted(&self, node: &str, token: &str) {
        self.state.lock().booted.entry(node.to_owned()).or_default().insert(token.to_owned());
    }

    /// Records that the power service has a transition under an id.
    pub fn took(&self, upstream_id: &str, action: Action, nodes: &[String]) {
        let nodes = nodes.iter().cloned().collect();
        self.state.lock().took.insert(upstream_id.to_owned(), (action, nodes));
    }

    /// Records that the inventory was read without a node.
    pub fn left_out(&self, node: &str) {
        self.state.lock().lacked.entry(node.to_owned()).or_default().push(Instant::now());
    }

    /// Records that the power service took a transition.
    pub fn accepted(&self, upstream_id: &str, action: Action, nodes: &[String]) {
        let mut state = self.state.lock();
        for node in nodes {
            let acceptance = state.acceptance(node, action);
            if let Some(asked) = &acceptance.asked {
                state.attempts.entry(asked.clone()).or_default().push(upstream_id.to_owned());
            }
            let times = acceptance.asked.as_ref().map_or(0, |asked| state.attempts[asked].len());
            for (name, checked) in invariants::of_acceptance(&acceptance, times) {
                state.judge(name, checked);
            }
            let read = state.configurations_read.get(node).cloned().unwrap_or_default();
            let checked = invariants::off_after_configuration(&acceptance, &read, &state.decided_by_older);
            state.judge("I4", checked);
            if let Some(actor) = state.actor(node, action) {
                let readers = state.readers.get(node).cloned().unwrap_or_default();
                state.judge("I5", invariants::read_by_actor(node, actor, &readers));
            }
        }
        state.note_arrival(action, nodes);
        self.tell(&state);
    }

    /// Returns the transition that the power service is asked for now.
    pub fn asked(&self, action: Action, nodes: &[String]) -> Option<String> {
        self.state.lock().asked(action, nodes)
    }

    /// Records that the database of a part has lost commits.
    pub fn set_back(&self, part: Part) {
        let mut state = self.state.lock();
        state.set_back.insert(part);
        if part == Part::Power {
            state.holders.clear();
            state.abandoned.clear();
            state.shutdowns.lost = Some(Instant::now());
        }
    }

    /// Replaces the components by those of a backup.
    pub fn restored(&self, components: &BTreeMap<Arc<str>, Arc<Component>>) {
        let mut state = self.state.lock();
        let before = mem::take(&mut state.components).into_iter();
        let before = before.filter_map(|(id, history)| Some((id, history.last()?)));
        state.before_restore = Some((Instant::now(), before.collect()));
        for (id, component) in components {
            state.components.entry(id.to_string()).or_default().push(Some(Arc::clone(component)));
        }
    }

    /// I9: judges that a watch has shown a session as complete. Components with `unreadable` rows are invisible, and
    /// deleted ones keep no session.
    pub fn completed(&self, name: &str, id: &str, unreadable: &[String]) {
        let mut state = self.state.lock();
        let there = state.components.iter().filter(|(_, history)| history.last().is_some());
        let readable = there.filter(|(key, _)| !unreadable.contains(key));
        let ended = state.completed.get(id).copied();
        let histories = readable.map(|(key, _)| state.records(key, ended)).collect::<Vec<_>>();
        for history in histories {
            state.judge("I9", invariants::completed_without_nodes(name, id, &history));
        }
        self.tell(&state);
    }

    /// Drops lost transitions: those of which the power controller has no record any more. One whose call may still
    /// arrive stays until then. Whether an accepted one is open at the power service is judged there.
    pub fn forget_lost(&self, on_record: &BTreeSet<Arc<str>>) {
        let is_sent = |one: &PowerTransition| {
            matches!(one.delivery, TransitionDelivery::Sent | TransitionDelivery::Unknown)
        };
        let mut state = self.state.lock();
        let State { transitions, arrived, lost, .. } = &mut *state;
        transitions.retain(|id, one| {
            let is_on_record = on_record.contains(id.as_str());
            let may_arrive = is_sent(one) && !arrived.contains(id);
            if may_arrive && !is_on_record {
                lost.insert(id.clone());
            }
            may_arrive || is_on_record
        });
    }

    /// Returns whether the database of a part has lost commits.
    pub fn was_set_back(&self, part: Part) -> bool {
        self.state.lock().set_back.contains(&part)
    }

    /// Records a violation.
    pub fn violated(&self, invariant: &'static str, what: String) {
        let mut state = self.state.lock();
        state.judge(invariant, Err(what));
        self.tell(&state);
    }

    /// Returns the violations.
    pub fn violations(&self) -> Vec<Violation> {
        self.state.lock().violations.clone()
    }

    /// Waits until a violation.
    pub async fn bad(&self) {
        loop {
            let bad = self.bad.notified();
            if !self.state.lock().violations.is_empty() {
                return;
            }
            bad.await;
        }
    }

    fn tell(&self, state: &State) {
        if !state.violations.is_empty() {
            self.bad.notify_waiters();
        }
    }
}

impl State {
    fn judge(&mut self, invariant: &'static str, checked: Result<(), String>) {
        if let Err(what) = checked {
            trace::note(|| format!("VIOLATION of {invariant}: {what}"));
            self.violations.push(Violation { invariant, at: trace::now(), what });
        }
    }

    fn told<R: Resource>(&mut self, part: Part, batch: &Batch<R>) {
        trace::note(|| {
            let keys: Vec<_> = batch.changed.iter().map(|one| one.key()).collect();
            format!("{} keeps {} {} {keys:?}", part.name(), R::KIND, batch.revision)
        });
        let last = self.revisions.insert((part, R::KIND), batch.revision).unwrap_or(0);
        let revisions: Vec<u64> = batch
            .deleted
            .iter()
            .map(|deletion| deletion.revision)
            .chain(batch.changed.iter().map(|one| one.revision()))
            .collect();
        // A writer that notices a loss of commits continues above all revisions that it ever showed.
        if !self.set_back.contains(&part) {
            self.judge("I8", invariants::revisions_without_gap(last, batch.revision, revisions));
        }
    }

    fn policy(&self) -> u32 {
        self.options.as_ref().map_or(3, |record| record.options.default_retry_policy)
    }

    /// Returns the transition that the power service is asked for now.
    fn asked(&self, action: Action, nodes: &[String]) -> Option<String> {
        let is_it = |open: Open| open.action == action && open.delivery.may_be_asked();
        let asked = |transition: &&Arc<PowerTransition>| Open::of(transition, nodes.first()?).map(is_it);
        let mut all = self.transitions.values();
        all.find(|transition| asked(transition).unwrap_or(false)).map(|transition| transition.id.clone())
    }

    /// Notes that the power service has taken the transition that it is asked for now. No other call of a lost one comes.
    fn note_arrival(&mut self, action: Action, nodes: &[String]) {
        let Some(id) = self.asked(action, nodes) else { return };
        if self.lost.remove(&id) {
            self.transitions.remove(&id);
        }
        self.arrived.insert(id);
    }

    /// Returns the start that requests an action on a node now.
    fn actor(&self, node: &str, action: Action) -> Option<u64> {
        let is_it = |open: Open| open.action == action && open.delivery.may_be_asked();
        let mut all = self.transitions.values();
        let asked = all.find(|transition| Open::of(transition, node).is_some_and(is_it))?;
        self.senders.get(&asked.id).copied()
    }

    /// Notes when the session completed.
    fn note_completion(&mut self, record: &SessionRecord) {
        let id = &record.session.id;
        if record.session.progress == Progress::Complete {
            self.completed.entry(id.as_str().into()).or_insert_with(Instant::now);
        } else {
            self.completed.remove(id.as_str());
        }
    }

    /// Returns the states of a component within the grace, oldest first. A call that is on its way while a backup is
    /// restored rests on the earlier states, and so does a decision that was `made` before.
    fn records(&self, node: &str, made: Option<Instant>) -> Vec<Arc<Component>> {
        let counts = |at: Instant| at.elapsed() < ON_ITS_WAY || made.is_some_and(|made| made <= at);
        let before = self.before_restore.as_ref().filter(|(at, _)| counts(*at));
        let before = before.and_then(|(_, components)| components.get(node)).cloned();
        let since = self.components.get(node).map(History::recent).unwrap_or_default();
        before.into_iter().chain(since).collect()
    }

    /// Returns the facts about an action that the machine takes now.
    fn acceptance(&self, node: &str, action: Action) -> Acceptance {
        let of_node =
            |transition: &&Arc<PowerTransition>| transition.members.iter().any(|member| member.id == node);
        let open: Vec<Open> =
            self.transitions.values().filter(of_node).filter_map(|one| Open::of(one, node)).collect();
        let asked = open.iter().find(|open| open.action == action && open.delivery.may_be_asked());
        Acceptance {
            node: node.to_owned(),
            action,
            asked: asked.map(|open| open.asked(node)),
            open,
            records: self.records(node, None),
            powers: self.powers.get(node).map(power_states).unwrap_or_default(),
            boot: recent(self.boot.get(node)),
            configured: recent(self.configured.get(node)),
        }
    }
}

fn note<R: Resource>(histories: &mut BTreeMap<String, History<R>>, batch: &Batch<R>) {
    for deletion in &batch.deleted {
        histories.entry(deletion.key.to_string()).or_default().push(None);
    }
    for resource in &batch.changed {
        histories.entry(resource.key().to_owned()).or_default().push(Some(Arc::clone(resource)));
    }
}

fn remember<T>(history: &mut VecDeque<(Instant, T)>, state: T) {
    let now = Instant::now();
    history.push_back((now, state));
    while history.get(1).is_some_and(|(since, _)| *since + GRACE < now) {
        history.pop_front();
    }
}

/// Returns the values that held within the grace, oldest first.
fn recent<T: Clone>(history: Option<&VecDeque<(Instant, T)>>) -> Vec<T> {
    let Some(history) = history else { return Vec::new() };
    let now = Instant::now();
    let outdated = |index: usize| history.get(index + 1).is_some_and(|(since, _)| *since + GRACE < now);
    history
        .iter()
        .enumerate()
        .filter(|(index, _)| !outdated(*index))
        .map(|(_, (_, state))| state.clone())
        .collect()
}
