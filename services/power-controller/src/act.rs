//! Decides which power actions begin and writes them down. Carrying them out is the business of `deliver`.

use std::{collections::HashSet, convert::Infallible, sync::Arc};

use chassis::{clock, kinds::OptionsRecord, lease::Fence, work::WorkQueue};
use domain::{
    boot::{
        bos::options::Options,
        component::{Action, Component},
        power::{self, PowerDecision, PowerObservation},
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};
use parking_lot::Mutex;
use proto::power::{Delivery, PowerState, Transition, TransitionMember};
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::{
    convert,
    driver::Driver,
    effects::Effects,
    following::Following,
    journal::Journal,
    known::Known,
    notes::Notes,
    plan::{self, Attempt, Intents, Opening},
    reporter::Reporter,
};

/// Components that are decided on at once: a whole machine, so that its nodes share few transitions.
const MOST_DECISIONS: usize = 20_000;

/// Pause before a component is decided on anew that looks otherwise to those who were told of the decision. What they
/// know marks it when it arrives here; this only covers what arrived in between.
pub(crate) const BEHIND: Duration = Duration::from_millis(100);

/// What has to be looked at. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// Components that may need an action.
    pub(crate) undecided: WorkQueue<ComponentId>,
    /// Components whose power may have to be read.
    pub(crate) unread: WorkQueue<ComponentId>,
    /// Transitions of which it is not known yet whether the upstream takes them, that can go a step further.
    pub(crate) undelivered: WorkQueue<Arc<str>>,
    /// Transitions that the upstream is working on and that are to be looked at.
    pub(crate) unfollowed: WorkQueue<Arc<str>>,
}

/// What deciding, delivering and following share.
pub(crate) struct Actor {
    pub(crate) known: Known,
    pub(crate) queues: Queues,
    pub(crate) journal: Journal,
    pub(crate) driver: Driver,
    /// Transitions that are under way, and how long they are left alone between looks.
    pub(crate) following: Following,
    pub(crate) reporter: Reporter,
    pub(crate) intents: Mutex<Intents>,
    pub(crate) effects: Effects,
    pub(crate) notes: Notes,
    /// Where to tell what results of actions show about power.
    pub(crate) results: mpsc::Sender<Vec<PowerState>>,
}

impl Actor {
    /// Decides on components whenever they change or their time has come.
    pub(crate) async fn decide(&self) -> anyhow::Result<Infallible> {
        loop {
            let ids = self.queues.undecided.next(MOST_DECISIONS).await;
            // The registry may have begun another incarnation, of which nothing is known yet.
            self.known.complete().await;
            // Without the options nothing is known about waits and retries. Once they arrive every component
            // is marked.
            let Some(record) = self.known.options.get(OptionsRecord::KEY) else { continue };
            // What comes to this replica is marked when it has been taken over.
            let ids: Vec<_> = ids.into_iter().filter(|id| self.known.custody.has(id.as_str())).collect();
            let Some(fence) = self.known.custody.fence(ids.iter().map(ComponentId::as_str)) else {
                self.queues.undecided.mark(ids);
                continue;
            };
            let due = self.due(&ids, &record.options, clock::now());
            if !due.is_empty() {
                let batches = plan::batches(due, &record.options, self.driver.most_nodes());
                self.prepare(batches, &fence).await;
            }
        }
    }

    /// The attempts to make now. Those that come later are looked at again at their time.
    fn due(&self, ids: &[ComponentId], options: &Options, now: Timestamp) -> Vec<(ComponentId, Attempt)> {
        let mut intents = self.intents.lock();
        let mut due = Vec::new();
        for id in ids {
            let Some(component) = self.known.components.get(id.as_str()) else {
                intents.forget(id);
                continue;
            };
            self.effects.note_report(&component);
            match power::decide(&component, &self.power(&component), options, now) {
                PowerDecision::Act { action, attempt } => {
                    let attempt = Attempt { generation: component.generation, action, number: attempt };
                    match intents.open(&component.id, attempt) {
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

    /// The power of a component as far as it is known: not at all after an action that may have changed it unseen.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        if self.effects.is_left_open(component.id.as_str()) {
            return PowerObservation::Unknown;
        }
        self.known.power(component)
    }

    /// Writes transitions down, so that a crash from here on leaves a trace of them. Members that are not written down
    /// are decided on anew: another replica acts on them, or something of theirs is still under way.
    async fn prepare(&self, batches: Vec<(Action, Vec<TransitionMember>)>, fence: &Fence) {
        let now = clock::now();
        let wanted: Vec<_> =
            batches.into_iter().map(|(action, members)| convert::prepared(action, members, now)).collect();
        let begun = self.journal.begin(wanted.clone(), fence).await.unwrap_or_else(|lost| {
            tracing::info!(transitions = wanted.len(), why = %lost, "transitions were not begun");
            Vec::new()
        });
        let written: HashSet<_> = begun.iter().flat_map(convert::attempts).collect();
        let left: Vec<_> =
            wanted.iter().flat_map(convert::attempts).filter(|one| !written.contains(one)).collect();
        {
            let mut intents = self.intents.lock();
            for (id, attempt) in &left {
                intents.withdraw_attempt(id, *attempt);
            }
        }
        let later = Instant::now() + BEHIND;
        left.into_iter().for_each(|(id, _)| self.queues.undecided.mark_at(id, later));
        self.queues.undelivered.mark(begun.iter().map(|transition| transition.id.as_str().into()));
    }
}

/// The transition when nobody knows whether the upstream took it.
pub(crate) fn unknown(transition: &Transition, error: &str) -> Transition {
    let in_doubt = Transition { delivery: Delivery::Unknown.into(), ..transition.clone() };
    convert::with_trouble(in_doubt, Trouble::failed(error).as_ref())
}
