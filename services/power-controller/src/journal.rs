//! The durable record of what was asked of the upstream.

use std::sync::Arc;

use chassis::{ledger::Ledger, pause};
use parking_lot::Mutex;
use proto::power::{Delivery, Transition};

use crate::{finished::Finished, store::Transitions};

/// All transitions: those under way, and the last ones that are not.
pub(crate) struct Journal {
    ledger: Ledger<Transitions>,
    finished: Mutex<Finished>,
}

/// Changes that belong together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) put: Vec<Transition>,
    pub(crate) delete: Vec<String>,
}

impl Journal {
    pub(crate) fn new(ledger: Ledger<Transitions>) -> Self {
        let journal = Self { ledger, finished: Mutex::default() };
        let over = journal.all().into_iter().filter(|transition| !is_open(transition));
        over.for_each(|transition| journal.finished.lock().add(&transition));
        journal
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Transition>> {
        self.ledger.view().get(id)
    }

    /// Every transition, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Transition>> {
        let mut all = self.ledger.view().all();
        all.sort_by_key(|one| one.created_at.map(chassis::convert::time::from_wire));
        all
    }

    /// Whether the record does not say so already.
    pub(crate) fn differs(&self, transition: &Transition) -> bool {
        self.get(&transition.id).is_none_or(|known| *known != *transition)
    }

    pub(crate) async fn put(&self, transition: Transition) {
        self.write(Changes { put: vec![transition], delete: Vec::new() }).await;
    }

    /// Records a transition that is over. The oldest of its kind give way to it.
    pub(crate) async fn close(&self, transition: Transition) {
        let delete = {
            let mut finished = self.finished.lock();
            finished.add(&transition);
            finished.surplus()
        };
        self.write(Changes { put: vec![transition], delete }).await;
    }

    /// Writes to the ledger and does not give up: without a durable record nothing may be done, and with
    /// the same records a repetition changes nothing.
    pub(crate) async fn write(&self, changes: Changes) {
        if changes.put.is_empty() && changes.delete.is_empty() {
            return;
        }
        let mut failures = 0;
        loop {
            let Changes { put, delete } = changes.clone();
            let written = self.ledger.write(move |draft| {
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

/// Whether the transition may still change something in the upstream, or holds its nodes there.
pub(crate) fn is_open(transition: &Transition) -> bool {
    match transition.delivery() {
        Delivery::Prepared | Delivery::Sent | Delivery::Unknown | Delivery::Accepted => true,
        Delivery::Unspecified | Delivery::Refused | Delivery::Finished => false,
    }
}
