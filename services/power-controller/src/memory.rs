//! Memory of the open transitions in every replica, including standbys: the record may lose them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    mem,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use chassis::store::{ledger::Ledger, resource::Batch};
use domain::boot::power::transition::{PowerTransition, TransitionMember};
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until, timeout};

use crate::{journal::is_open, outcome, store::TransitionTable};

/// Most ends that are remembered: more transitions than end within the moments that a failover may lose.
const MOST_ENDS: usize = 1_000;

/// Least time that the holder of the role has to record lost transitions again: longer than the take-over by another
/// replica takes.
const RECORDED_AGAIN: Duration = Duration::from_secs(30);

/// Deadline for one answer of the database.
const ANSWER: Duration = Duration::from_secs(2);

/// Open transitions by id, as far as the record was followed.
pub(crate) struct TransitionMemory {
    ledger: Ledger<TransitionTable>,
    written: Pin<Box<dyn Stream<Item = Arc<Batch<PowerTransition>>> + Send>>,
    transitions: HashMap<String, Arc<PowerTransition>>,
    /// Revision up to which the record was followed.
    revision: u64,
    /// Last transitions that were open and are not, the oldest first: a loss may bring them back.
    ends: VecDeque<TransitionEnd>,
    /// Batches that arrived and are not learnt yet, of a stream that restarted.
    parts: Vec<Arc<Batch<PowerTransition>>>,
    /// Time that a holder has to record missing transitions again.
    recorded_again: Duration,
    /// The end of that time.
    missing_until: Option<Instant>,
}

/// End of a transition that was open.
pub(crate) struct TransitionEnd {
    pub(crate) id: String,
    /// Whether the record has the end; otherwise the transition was deleted: withdrawn, or split.
    pub(crate) is_on_record: bool,
    /// Members without an outcome at the end: their effect may still come.
    pub(crate) unresolved: HashSet<String>,
}

impl TransitionMemory {
    /// Recalls the open transitions on record. `lease`: the duration of leases.
    pub(crate) fn new(ledger: Ledger<TransitionTable>, lease: Duration) -> Self {
        let written = Box::pin(ledger.follow());
        let view = ledger.view();
        let open = view.all().into_iter().filter(|transition| is_open(transition));
        Self {
            written,
            transitions: open.map(|transition| (transition.id.clone(), transition)).collect(),
            revision: view.revision(),
            ends: VecDeque::new(),
            parts: Vec::new(),
            recorded_again: RECORDED_AGAIN.max(lease.saturating_mul(3)),
            missing_until: None,
            ledger,
        }
    }

    /// Returns the transition with that id, if it is open.
    pub(crate) fn get(&self, id: &str) -> Option<&PowerTransition> {
        self.transitions.get(id).map(|one| &**one)
    }

    /// Returns all open transitions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<PowerTransition>> {
        self.transitions.values()
    }

    /// Returns the end of the transition with that id, if it was open and has ended.
    pub(crate) fn end_of(&self, id: &str) -> Option<&TransitionEnd> {
        self.ends.iter().rev().find(|end| end.id == id)
    }

    /// Follows the record without end while another replica holds the role. May be dropped anywhere.
    pub(crate) async fn stand_by(&mut self) {
        loop {
            let missing_until = self.missing_until;
            tokio::select! {
                () = sleep_until(missing_until.unwrap_or_else(Instant::now)), if missing_until.is_some() => {
                    self.forget_missing().await;
                }
                is_whole = self.hear() => {
                    self.learn();
                    if is_whole {
                        // A complete list does not show the deletions of the gap. The holder records lost transitions
                        // again.
                        self.missing_until = Some(Instant::now() + self.recorded_again);
                    }
                }
            }
        }
    }

    /// Learns every commit of any replica until now.
    pub(crate) async fn catch_up(&mut self) {
        self.ledger.catch_up().await;
        let revision = self.ledger.view().revision();
        while self.revision < revision || !self.parts.is_empty() {
            self.hear().await;
            self.learn();
        }
    }

    /// Waits for changes that can be learnt now. Returns whether they are a complete list: the stream restarted,
    /// because the database has lost commits. A complete list must be compared with this memory before it is learnt.
    pub(crate) async fn hear(&mut self) -> bool {
        loop {
            if let Some(last) = self.parts.last() {
                if last.synced {
                    return true;
                }
                let is_old = last.changed.iter().any(|transition| transition.revision <= self.revision);
                if !is_old && self.parts.len() == 1 {
                    return false;
                }
            }
            match self.written.next().await {
                Some(batch) => self.parts.push(batch),
                None => std::future::pending().await,
            }
        }
    }

    /// Learns the batches that have arrived, and returns the open transitions in them.
    pub(crate) fn learn(&mut self) -> Vec<Arc<PowerTransition>> {
        let parts = mem::take(&mut self.parts);
        parts.into_iter().flat_map(|part| self.learn_part(&part)).collect()
    }

    /// Forgets the transitions that are not on record: they are over, as the holder of the role knows once it has
    /// restored every loss.
    pub(crate) fn keep_recorded(&mut self) {
        let view = self.ledger.view();
        self.transitions.retain(|id, _| view.get(id).is_some());
        self.missing_until = None;
    }

    fn learn_part(&mut self, batch: &Batch<PowerTransition>) -> Vec<Arc<PowerTransition>> {
        for deletion in &batch.deleted {
            if self.transitions.remove(&*deletion.key).is_some() {
                self.end(&deletion.key, false, &[]);
            }
        }
        let mut open = Vec::new();
        for transition in &batch.changed {
            match (self.transitions.remove(&transition.id), is_open(transition)) {
                // The transition was over and reappeared after a loss. The current or next holder of the role ends it
                // again.
                (None, true) if self.end_of(&transition.id).is_some() => {}
                (before, true) => {
                    // An older state reappeared after a loss, and will be corrected.
                    let newest = before.filter(|before| before.revision > transition.revision);
                    let newest = newest.unwrap_or_else(|| Arc::clone(transition));
                    self.transitions.insert(transition.id.clone(), newest);
                    open.push(Arc::clone(transition));
                }
                (Some(_), false) => self.end(&transition.id, true, &transition.members),
                (None, false) => {}
            }
        }
        // The stream repeats recalled transitions at its start.
        self.revision = self.revision.max(batch.revision);
        open
    }

    fn end(&mut self, id: &str, is_on_record: bool, members: &[TransitionMember]) {
        if self.ends.len() >= MOST_ENDS {
            self.ends.pop_front();
        }
        let unresolved = members.iter().filter(|member| outcome::is_unresolved(member));
        let unresolved = unresolved.map(|member| member.id.clone()).collect();
        self.ends.push_back(TransitionEnd { id: id.to_owned(), is_on_record, unresolved });
    }

    /// Forgets missing transitions: one that no holder re-recorded in time was deleted during a gap of the stream, not
    /// lost.
    async fn forget_missing(&mut self) {
        // While the database is away no replica can record anything, and its losses have to arrive here first.
        let caught_up = timeout(ANSWER, self.ledger.catch_up()).await;
        let is_behind = self.ledger.view().revision() > self.revision || !self.parts.is_empty();
        match caught_up {
            Ok(()) if !is_behind => self.keep_recorded(),
            Ok(()) => self.missing_until = Some(Instant::now() + ANSWER),
            Err(_) => self.missing_until = Some(Instant::now() + self.recorded_again),
        }
    }
}
