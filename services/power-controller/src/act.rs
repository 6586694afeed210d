//! Decides which power actions begin and writes them down. Carrying them out is the business of `deliver`.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Channel,
    convert::{observation, time},
    kinds::OptionsRecord,
    ledger::Ledger,
    mirror::Mirror,
    pause,
    work::WorkQueue,
};
use domain::{
    component::{Action, Component},
    evaluation::PowerObservation,
    id::ComponentId,
    options::Options,
    power::{self, PowerDecision},
    time::Timestamp,
};
use parking_lot::Mutex;
use proto::{
    component::report_service_client::ReportServiceClient,
    power::{Delivery, Transition, TransitionMember},
};
use tokio::time::Instant;

use crate::{
    convert,
    driver::Driver,
    effects::Effects,
    finished::Finished,
    plan::{self, Attempt, Intents},
    store::{PowerStates, Transitions},
};

/// Components that are decided on at once: a whole machine, so that its nodes share few transitions.
const MOST_DECISIONS: usize = 20_000;

/// What deciding and delivering share.
pub(crate) struct Actor {
    pub(crate) transitions: Ledger<Transitions>,
    pub(crate) states: Ledger<PowerStates>,
    pub(crate) components: Mirror<Component>,
    pub(crate) options: Mirror<OptionsRecord>,
    /// Components that may need an action.
    pub(crate) undecided: WorkQueue<ComponentId>,
    /// Components whose power may have to be read.
    pub(crate) unread: WorkQueue<ComponentId>,
    /// Open transitions that can be taken a step further.
    pub(crate) undelivered: WorkQueue<Arc<str>>,
    pub(crate) driver: Driver,
    pub(crate) registry: ReportServiceClient<Channel>,
    pub(crate) intents: Mutex<Intents>,
    pub(crate) effects: Effects,
    pub(crate) finished: Mutex<Finished>,
    pub(crate) notes: Mutex<HashMap<String, Note>>,
}

/// What is remembered of an open transition beside its record. A restart forgets it, which costs no more
/// than a repeated look or report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    /// How often the upstream was not reached.
    pub(crate) failures: u32,
    /// Error that the members show now; empty: none.
    pub(crate) shown: String,
    /// Since when nobody knows whether the upstream took the transition.
    pub(crate) unknown_since: Option<Instant>,
}

/// Changes of the ledger that belong together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) put: Vec<Transition>,
    pub(crate) delete: Vec<String>,
}

impl Actor {
    /// Picks up what a previous run left: an attempt that is in the ledger is not made again, and what was
    /// being sent may have arrived or not.
    pub(crate) async fn recover(&self) {
        let mut transitions = self.transitions.view().all();
        transitions.sort_by_key(|one| one.created_at.map(time::from_wire));
        let mut interrupted = Vec::new();
        for transition in transitions {
            let open = is_open(&transition);
            self.recall(&transition, open);
            if transition.delivery() == Delivery::Sent {
                interrupted.push(unknown(&transition, "the service stopped before the answer came"));
            }
            if open {
                self.undelivered.mark([transition.id.as_str().into()]);
            } else {
                self.finished.lock().add(&transition);
            }
        }
        self.write(Changes { put: interrupted, delete: Vec::new() }).await;
    }

    fn recall(&self, transition: &Transition, open: bool) {
        let Some(action) = convert::action(transition) else { return };
        let mut intents = self.intents.lock();
        for member in &transition.members {
            let Ok(id) = ComponentId::parse(&member.id) else { continue };
            let attempt = Attempt { generation: member.generation, action, number: member.attempt };
            intents.recall(id, attempt, open);
        }
    }

    /// Decides on components whenever they change or their time has come.
    pub(crate) async fn decide(&self) -> anyhow::Result<Infallible> {
        loop {
            let ids = self.undecided.next(MOST_DECISIONS).await;
            // Without the options nothing is known about waits and retries. Once they arrive every component
            // is marked.
            let Some(record) = self.options.get(OptionsRecord::KEY) else { continue };
            let attempts = self.due(&ids, &record.options, time::now());
            if !attempts.is_empty() {
                self.prepare(plan::batches(attempts, &record.options)).await;
            }
        }
    }

    /// The attempts to make now. Those that come later are looked at again at their time.
    fn due(&self, ids: &[ComponentId], options: &Options, now: Timestamp) -> Vec<(ComponentId, Attempt)> {
        let mut intents = self.intents.lock();
        let mut due = Vec::new();
        for id in ids {
            let Some(component) = self.components.get(id.as_str()) else {
                intents.forget(id);
                continue;
            };
            match power::decide(&component, &self.power(&component), options, now) {
                PowerDecision::Act { action, attempt } => {
                    let attempt = Attempt { generation: component.generation, action, number: attempt };
                    if intents.open(id, attempt) {
                        due.push((id.clone(), attempt));
                    }
                }
                PowerDecision::Wait { until } => {
                    self.undecided.mark_at(id.clone(), Instant::now() + until.since(now));
                }
                PowerDecision::Nothing { .. } => {}
            }
        }
        due
    }

    /// What is known about the power of a component in its generation.
    pub(crate) fn power(&self, component: &Component) -> PowerObservation {
        observation::power(self.states.view().get(component.id.as_str()).as_deref(), component.generation)
    }

    /// Writes transitions down, so that a crash from here on leaves a trace of them.
    async fn prepare(&self, batches: Vec<(Action, Vec<TransitionMember>)>) {
        let now = time::now();
        let put: Vec<_> =
            batches.into_iter().map(|(action, members)| convert::prepared(action, members, now)).collect();
        let ids: Vec<Arc<str>> = put.iter().map(|transition| transition.id.as_str().into()).collect();
        self.write(Changes { put, delete: Vec::new() }).await;
        self.undelivered.mark(ids);
    }

    /// Writes to the ledger and does not give up: without a durable record nothing may be done, and with
    /// the same records a repetition changes nothing.
    pub(crate) async fn write(&self, changes: Changes) {
        let mut failures = 0;
        loop {
            let Changes { put, delete } = changes.clone();
            let written = self.transitions.write(move |draft| {
                delete.iter().for_each(|id| draft.delete(id));
                put.into_iter().for_each(|transition| draft.put(transition));
                Ok(())
            });
            let Err(fault) = written.await else { return };
            failures += 1;
            tracing::debug!(%fault, failures, "cannot write transitions, trying again");
            tokio::time::sleep(pause::after(failures)).await;
        }
    }
}

/// How long an answer of the upstream may take (BOS reference 4, `pcs_read_timeout`).
pub(crate) fn upstream_deadline(options: &Mirror<OptionsRecord>) -> Duration {
    Duration::from_secs(options.in_force().pcs_read_timeout.into())
}

/// Whether it is not known yet what became of a transition.
fn is_open(transition: &Transition) -> bool {
    match transition.delivery() {
        Delivery::Prepared | Delivery::Sent | Delivery::Unknown => true,
        Delivery::Unspecified | Delivery::Accepted | Delivery::Refused => false,
    }
}

/// The transition when nobody knows whether the upstream took it.
pub(crate) fn unknown(transition: &Transition, error: &str) -> Transition {
    Transition { delivery: Delivery::Unknown.into(), error: error.to_owned(), ..transition.clone() }
}
