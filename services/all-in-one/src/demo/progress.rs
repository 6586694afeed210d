//! Progress of a session, from the changes of its components.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use domain::{
    boot::component::{
        Component, Phase,
        status::{ComponentProgress, ComponentStatus, computed_status},
    },
    core::id::ComponentId,
};

/// Status that stands for every unknown text.
const OTHER: ComponentStatus<'static> = ComponentStatus::Overridden("other");

/// Phases that take time, in the order of a boot.
pub(crate) const PHASES: [Phase; 3] = [Phase::PoweringOff, Phase::PoweringOn, Phase::Configuring];

/// Latest components of the fleet and of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionTally {
    /// Nodes of the fleet without a component.
    missing: HashSet<ComponentId>,
    run: Option<SessionRun>,
    nodes: HashMap<ComponentId, MemberProgress>,
}

#[derive(Debug)]
struct SessionRun {
    session: String,
    began: Instant,
    members: Option<usize>,
    waiting_for: String,
}

/// Progress of one member.
#[derive(Debug)]
pub(crate) struct MemberProgress {
    /// Status, or `other`.
    pub(crate) status: ComponentStatus<'static>,
    /// Error text; empty: none.
    pub(crate) error: String,
    /// Time from the beginning of the session until the node settled; `None`: not settled yet.
    pub(crate) settled: Option<Duration>,
    spent: [Option<Duration>; PHASES.len()],
    phase: Phase,
    since: Instant,
}

impl SessionTally {
    /// Creates a tally of a fleet with these nodes.
    pub(crate) fn new(fleet: Vec<ComponentId>) -> Self {
        Self { missing: fleet.into_iter().collect(), ..Self::default() }
    }

    /// Whether every node of the fleet is a component.
    pub(crate) fn is_discovered(&self) -> bool {
        self.missing.is_empty()
    }

    /// Begins to count the components of `session`.
    pub(crate) fn begin(&mut self, session: &str, began: Instant) {
        let session = session.to_owned();
        let waiting_for = String::new();
        self.run = Some(SessionRun { session, began, members: None, waiting_for });
        self.nodes.clear();
    }

    /// Sets the number of members, once it is known, and the reason of a wait until then.
    pub(crate) fn session(&mut self, members: Option<usize>, waiting_for: &str) {
        if let Some(run) = &mut self.run {
            run.members = members;
            run.waiting_for = waiting_for.to_owned();
        }
    }

    /// Applies the state of a component at `at`.
    pub(crate) fn note(&mut self, component: &Component, at: Instant) {
        self.missing.remove(&component.id);
        let Some(run) = &self.run else { return };
        if component.session_name() == run.session {
            let node = self.nodes.entry(component.id.clone()).or_insert_with(|| MemberProgress::new(at));
            node.note(component, run.began, at);
        } else {
            self.nodes.remove(&component.id);
        }
    }

    /// Returns every member with a target state.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&ComponentId, &MemberProgress)> {
        self.nodes.iter()
    }

    /// Returns the number of members; `None`: not known yet.
    pub(crate) fn members(&self) -> Option<usize> {
        self.run.as_ref().and_then(|run| run.members)
    }

    /// Returns the reason of a wait; empty: none.
    pub(crate) fn waiting_for(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.waiting_for)
    }

    /// Returns the time from the beginning of the session until `at`.
    pub(crate) fn elapsed(&self, at: Instant) -> Duration {
        self.run.as_ref().map_or(Duration::ZERO, |run| at.saturating_duration_since(run.began))
    }

    /// Returns the number of settled members, successful or not.
    pub(crate) fn settled(&self) -> usize {
        self.nodes.values().filter(|node| node.settled.is_some()).count()
    }

    /// Returns the number of members by status, without unused statuses, in the order of a boot.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts = HashMap::<ComponentStatus<'_>, usize>::new();
        for node in self.nodes.values() {
            *counts.entry(node.status).or_default() += 1;
        }
        ORDER.into_iter().filter_map(|status| Some((status.word(), *counts.get(&status)?))).collect()
    }

    /// Returns the members with errors, in the order of their ids.
    pub(crate) fn trouble(&self) -> Vec<(&ComponentId, &MemberProgress)> {
        let mut trouble: Vec<_> = self.nodes.iter().filter(|(_, node)| node.is_in_trouble()).collect();
        trouble.sort_unstable_by_key(|(id, _)| *id);
        trouble
    }
}

/// Order of statuses in texts.
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

impl MemberProgress {
    fn new(at: Instant) -> Self {
        let status = ComponentStatus::STABLE;
        let error = String::new();
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

    /// Returns the time in the phase with that index in [`PHASES`], over all attempts; `None`: never in it.
    pub(crate) fn spent(&self, phase: usize) -> Option<Duration> {
        self.spent[phase]
    }

    /// Whether the node has failed, or has an error before it is stable. A stable node may keep an old error text.
    fn is_in_trouble(&self) -> bool {
        self.status == ComponentStatus::Failed
            || (!self.error.is_empty() && self.status != ComponentStatus::STABLE)
    }
}

#[cfg(test)]
pub(crate) mod tests;
