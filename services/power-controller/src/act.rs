//! Decides which power actions begin and records them. `deliver` carries them out.

use std::{collections::HashSet, convert::Infallible, sync::Arc};

use chassis::{
    kinds::options::OptionsRecord,
    observe::work::{OpenQueue, WorkQueue},
    process::clock,
};
use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component},
        power::{self, PowerDecision, PowerObservation},
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use proto::power::{Delivery, PowerState, Transition, TransitionMember};
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::{
    convert,
    driver::Driver,
    engine::{Attempt, Opening, SharedEngine, attempts},
    journal::Journal,
    known::Known,
    plan,
    reporter::Reporter,
};

/// Components decided on in one round: a whole machine, so that its nodes share few transitions.
const MOST_DECISIONS: usize = 20_000;

/// Delay before a new decision about a component whose report came back stale. The newer record normally arrives first
/// and queues the component; this delay covers the race.
pub(crate) const BEHIND: Duration = Duration::from_millis(100);

/// Work that is queued for the engine. Clones share the queues.
#[derive(Clone)]
pub(crate) struct Queues {
    /// Components that may need an action.
    pub(crate) undecided: WorkQueue<ComponentId>,
    /// Components whose power may have to be read.
    pub(crate) unread: WorkQueue<ComponentId>,
    /// Transitions without an answer of the upstream on record that can go a step further.
    pub(crate) undelivered: WorkQueue<Arc<str>>,
    /// Transitions that the upstream is working on and that are due for a poll.
    pub(crate) unfollowed: WorkQueue<Arc<str>>,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            undecided: WorkQueue::closed(),
            unread: WorkQueue::closed(),
            undelivered: WorkQueue::closed(),
            unfollowed: WorkQueue::closed(),
        }
    }
}

/// Keeps the queues open for a term.
pub(crate) type OpenQueues = ([OpenQueue<ComponentId>; 2], [OpenQueue<Arc<str>>; 2]);

impl Queues {
    pub(crate) fn open(&self) -> OpenQueues {
        ([self.undecided.open(), self.unread.open()], [self.undelivered.open(), self.unfollowed.open()])
    }
}

/// State shared by deciding, delivering and following for one term.
pub(crate) struct Actor {
    pub(crate) known: Known,
    pub(crate) queues: Queues,
    pub(crate) journal: Journal,
    pub(crate) driver: Driver,
    pub(crate) reporter: Reporter,
    pub(crate) engine: SharedEngine,
    /// Channel for power states that results of actions show.
    pub(crate) results: mpsc::Sender<Vec<PowerState>>,
}

impl Actor {
    /// Decides on components whenever they change or their time has come.
    pub(crate) async fn decide(&self) -> anyhow::Result<Infallible> {
        loop {
            let ids = self.queues.undecided.next(MOST_DECISIONS).await;
            // The registry may have begun another incarnation, of which no component is known yet.
            self.known.complete().await;
            let _turn = self.known.term.turn("decide");
            // Waits and retry limits are unknown without the options. Every component is queued once they arrive.
            let Some(record) = self.known.options.get(OptionsRecord::KEY) else { continue };
            let due = self.due(&ids, &record.options, clock::now());
            if !due.is_empty() {
                let batches = plan::batches(due, &record.options, self.driver.most_nodes());
                self.prepare(batches).await;
            }
        }
    }

    /// Returns the attempts to make now. Components whose attempt comes later are queued for that time.
    fn due(&self, ids: &[ComponentId], options: &Options, now: Timestamp) -> Vec<(ComponentId, Attempt)> {
        let mut due = Vec::new();
        for id in ids {
            let Some(component) = self.known.components.get(id.as_str()) else {
                self.engine.lock().nodes.forget(id);
                continue;
            };
            self.engine.lock().nodes.note_report(&component);
            match power::decide(&component, &self.power(&component), options, now) {
                PowerDecision::Act { action, attempt } => {
                    let attempt = Attempt { generation: component.generation, action, number: attempt };
                    let opening = self.engine.lock().nodes.open(&component.id, attempt);
                    match opening {
                        Opening::Opened => due.push((component.id.clone(), attempt)),
                        Opening::Blocked | Opening::Repeated => {}
                    }
                }
                PowerDecision::Wait { until } => {
                    self.queues.undecided.mark_at(id.clone(), Instant::now() + until.since(now));
                }
                PowerDecision::Nothing { .. } => self.queues.undecided.unmark(id),
            }
        }
        due
    }

    /// Returns the known power of a component: unknown after an action that may have changed it unseen.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        if self.engine.lock().nodes.is_left_open(component.id.as_str()) {
            return PowerObservation::Unknown;
        }
        self.known.power(component)
    }

    /// Records transitions, so that a crash from here on leaves a trace of them. Members that are not recorded are
    /// decided on again: another attempt on them is still under way.
    async fn prepare(&self, batches: Vec<(Action, Vec<TransitionMember>)>) {
        let now = clock::now();
        let wanted: Vec<_> =
            batches.into_iter().map(|(action, members)| convert::prepared(action, members, now)).collect();
        let begun = self.journal.begin(wanted.clone()).await.unwrap_or_else(|lost| {
            tracing::info!(transitions = wanted.len(), why = %lost, "transitions were not begun");
            Vec::new()
        });
        let written: HashSet<_> = begun.iter().flat_map(attempts).collect();
        let left: Vec<_> = wanted.iter().flat_map(attempts).filter(|one| !written.contains(one)).collect();
        {
            let nodes = &mut self.engine.lock().nodes;
            for (id, attempt) in &left {
                nodes.withdraw_attempt(id, *attempt);
            }
        }
        let later = Instant::now() + BEHIND;
        left.into_iter().for_each(|(id, _)| self.queues.undecided.mark_at(id, later));
        self.queues.undelivered.mark(begun.iter().map(|transition| transition.id.as_str().into()));
    }
}

/// Returns the transition as one in doubt: the upstream may have taken it or not.
pub(crate) fn unknown(transition: &Transition, error: &str) -> Transition {
    let in_doubt = Transition { delivery: Delivery::Unknown.into(), ..transition.clone() };
    convert::with_trouble(in_doubt, Trouble::failed(error).as_ref())
}
