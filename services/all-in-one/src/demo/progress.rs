//! How far a session is: what the changes of its components add up to.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use domain::{
    component::{Component, Phase},
    id::ComponentId,
    status::{ComponentProgress, ComponentStatus, computed_status},
};

/// Status that stands for every text that somebody wrote by hand.
const OTHER: ComponentStatus<'static> = ComponentStatus::Overridden("other");

/// The phases that take time, in the order in which a node goes through them.
pub(crate) const PHASES: [Phase; 3] = [Phase::PoweringOff, Phase::PoweringOn, Phase::Configuring];

/// The components of the fleet and of one session, as their records said when they were last seen.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Nodes of the fleet that are no components yet.
    missing: HashSet<ComponentId>,
    run: Option<Run>,
    nodes: HashMap<ComponentId, Node>,
}

#[derive(Debug)]
struct Run {
    session: String,
    began: Instant,
    members: Option<usize>,
    waiting_for: String,
}

/// How one member of the session fares.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its status, or `other`.
    pub(crate) status: ComponentStatus<'static>,
    /// What is wrong; empty: nothing.
    pub(crate) error: String,
    /// From the beginning of the session until it settled; `None`: it has not.
    pub(crate) settled: Option<Duration>,
    spent: [Option<Duration>; PHASES.len()],
    phase: Phase,
    since: Instant,
}

impl Tally {
    /// Of a fleet with these nodes.
    pub(crate) fn new(fleet: Vec<ComponentId>) -> Self {
        Self { missing: fleet.into_iter().collect(), ..Self::default() }
    }

    /// Whether every node of the fleet is a component.
    pub(crate) fn is_discovered(&self) -> bool {
        self.missing.is_empty()
    }

    /// Follows the components of `session` from now on.
    pub(crate) fn begin(&mut self, session: &str, began: Instant) {
        let (session, waiting_for) = (session.to_owned(), String::new());
        self.run = Some(Run { session, began, members: None, waiting_for });
        self.nodes.clear();
    }

    /// Notes how many members the session has, once that is known, and what it waits for until then.
    pub(crate) fn session(&mut self, members: Option<usize>, waiting_for: &str) {
        if let Some(run) = &mut self.run {
            run.members = members;
            run.waiting_for = waiting_for.to_owned();
        }
    }

    /// Notes what a component is like since `at`.
    pub(crate) fn note(&mut self, component: &Component, at: Instant) {
        self.missing.remove(&component.id);
        let Some(run) = &self.run else { return };
        if component.session_name() == run.session {
            let node = self.nodes.entry(component.id.clone()).or_insert_with(|| Node::new(at));
            node.note(component, run.began, at);
        } else {
            self.nodes.remove(&component.id);
        }
    }

    /// Every member that has been told what to run.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&ComponentId, &Node)> {
        self.nodes.iter()
    }

    /// Number of members; `None`: not known yet.
    pub(crate) fn members(&self) -> Option<usize> {
        self.run.as_ref().and_then(|run| run.members)
    }

    /// What keeps the session from running; empty: nothing.
    pub(crate) fn waiting_for(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.waiting_for)
    }

    /// Time from the beginning of the session until `at`.
    pub(crate) fn elapsed(&self, at: Instant) -> Duration {
        self.run.as_ref().map_or(Duration::ZERO, |run| at.saturating_duration_since(run.began))
    }

    /// Number of members that are finished, well or not.
    pub(crate) fn settled(&self) -> usize {
        self.nodes.values().filter(|node| node.settled.is_some()).count()
    }

    /// Number of members per status, without those that nobody has, in the order in which nodes go through them.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts = HashMap::<ComponentStatus<'_>, usize>::new();
        for node in self.nodes.values() {
            *counts.entry(node.status).or_default() += 1;
        }
        ORDER.into_iter().filter_map(|status| Some((status.word(), *counts.get(&status)?))).collect()
    }

    /// Members that something is wrong with, in the order of their ids.
    pub(crate) fn trouble(&self) -> Vec<(&ComponentId, &Node)> {
        let mut trouble: Vec<_> = self.nodes.iter().filter(|(_, node)| node.is_in_trouble()).collect();
        trouble.sort_unstable_by_key(|(id, _)| *id);
        trouble
    }
}

/// The order in which statuses are shown.
const ORDER: [ComponentStatus<'static>; ComponentStatus::OWN.len() + 1] = [
    ComponentStatus::OnHold,
    ComponentStatus::Progress(ComponentProgress::PowerOffPending),
    ComponentStatus::Progress(ComponentProgress::PowerOffGracefullyCalled),
    ComponentStatus::Progress(ComponentProgress::PowerOffForcefullyCalled),
    ComponentStatus::Progress(ComponentProgress::PowerOnPending),
    ComponentStatus::Progress(ComponentProgress::PowerOnCalled),
    ComponentStatus::Progress(ComponentProgress::Configuring),
    ComponentStatus::STABLE,
    OTHER,
    ComponentStatus::Failed,
];

impl Node {
    fn new(at: Instant) -> Self {
        let (status, error) = (ComponentStatus::STABLE, String::new());
        Self { status, error, settled: None, spent: Default::default(), phase: Phase::None, since: at }
    }

    fn note(&mut self, component: &Component, began: Instant, at: Instant) {
        self.status = match computed_status(component) {
            ComponentStatus::OnHold => ComponentStatus::OnHold,
            ComponentStatus::Failed => ComponentStatus::Failed,
            ComponentStatus::Progress(progress) => ComponentStatus::Progress(progress),
            ComponentStatus::Overridden(_) => OTHER,
        };
        if self.error != component.error_text() {
            component.error_text().clone_into(&mut self.error);
        }
        let settles = !component.is_enabled();
        if self.phase != component.phase() || self.settled.is_some() != settles {
            self.end_phase(at);
            self.phase = component.phase();
            self.since = at;
            self.settled = settles.then(|| at.saturating_duration_since(began));
        }
    }

    fn end_phase(&mut self, at: Instant) {
        let index = PHASES.iter().position(|phase| *phase == self.phase);
        if let (Some(index), None) = (index, self.settled) {
            let spent = self.spent[index].get_or_insert_default();
            *spent += at.saturating_duration_since(self.since);
        }
    }

    /// Time in the phase at that index of [`PHASES`], over all attempts; `None`: never in it.
    pub(crate) fn spent(&self, phase: usize) -> Option<Duration> {
        self.spent[phase]
    }

    /// Failed, or has an error while it is under way. A stable node may keep the text of what went wrong.
    fn is_in_trouble(&self) -> bool {
        self.status == ComponentStatus::Failed
            || (!self.error.is_empty() && self.status != ComponentStatus::STABLE)
    }
}

#[cfg(test)]
pub(crate) mod tests;
