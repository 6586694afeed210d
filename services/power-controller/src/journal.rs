//! The durable record of requests to the upstream.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Fault,
    lease::Term,
    process::{clock, failpoint, pause},
    store::{
        ledger::{Draft, Ledger},
        resource::Batch,
    },
};
use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery},
    core::time::Timestamp,
};
use futures_util::Stream;
use parking_lot::Mutex;

use crate::{convert, counters, driver::RecordedIds, finished::surplus, store::TransitionTable};

/// Time between deletions of old transitions where none finishes. Finished transitions are kept for days.
const BETWEEN_CLEARINGS: Duration = Duration::from_secs(60 * 60);

/// Error after the end of the term: another replica continues, or this one in a later term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the role was lost")]
pub(crate) struct RoleLost;

/// All recorded transitions: those under way, and the last finished ones.
pub(crate) struct TransitionJournal {
    ledger: Ledger<TransitionTable>,
    /// Term in which the journal is written.
    term: Term,
    /// Upstream ids that the upstream listed last; `None`: not known.
    listed: Arc<Mutex<Option<Arc<HashSet<String>>>>>,
}

/// Changes that are committed together.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalChanges {
    pub(crate) put: Vec<PowerTransition>,
    pub(crate) delete: Vec<String>,
}

impl TransitionJournal {
    pub(crate) fn new(ledger: Ledger<TransitionTable>, term: Term) -> Self {
        let journal = Self { ledger, term, listed: Arc::default() };
        // Our clock may have been set back before this term, and the time of sent transitions counts from their
        // recorded times.
        if let Some(newest) = journal.all().iter().map(|one| convert::sent_at(one)).max() {
            clock::not_before(newest);
        }
        journal
    }

    /// Returns every transition, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<PowerTransition>> {
        let mut all = self.ledger.view().all();
        all.sort_by_key(|one| one.created_at);
        all
    }

    /// Yields everything on record, then every change, without end.
    pub(crate) fn follow(&self) -> impl Stream<Item = Arc<Batch<PowerTransition>>> + use<> {
        self.ledger.follow()
    }

    /// Returns the upstream ids of the transitions that the upstream took.
    pub(crate) fn upstream_ids(&self) -> RecordedIds {
        let view = self.ledger.view().all();
        let taken = || view.iter().filter(|one| !one.upstream_id.is_empty());
        let accounted = taken().filter(|one| is_open(one) || one.abandoned_at.is_some());
        RecordedIds {
            all: taken().map(|one| one.upstream_id.clone()).collect(),
            accounted: accounted.map(|one| one.upstream_id.clone()).collect(),
        }
    }

    /// Returns the upstream ids of transitions that an operator has abandoned.
    pub(crate) fn abandoned(&self) -> HashSet<String> {
        let all = self.ledger.view().all();
        let abandoned = all.iter().filter(|one| one.abandoned_at.is_some() && !one.upstream_id.is_empty());
        abandoned.map(|one| one.upstream_id.clone()).collect()
    }

    /// Notes which upstream ids the upstream lists: an abandoned transition is kept until its id is not among them.
    pub(crate) fn note_listed(&self, listed: &Arc<HashSet<String>>) {
        *self.listed.lock() = Some(Arc::clone(listed));
    }

    /// Deletes finished transitions at the end of their time without end, even if no others finish.
    pub(crate) async fn keep_clear(&self) -> anyhow::Result<Infallible> {
        loop {
            let (now, listed) = (clock::now(), self.listed.lock().clone());
            let clear = move |draft: &mut Draft<'_, PowerTransition>| {
                clear(draft, listed.as_deref(), now);
                Ok(())
            };
            if let Err(fault) = self.ledger.write(clear).await {
                tracing::warn!(%fault, "finished transitions could not be deleted, trying again later");
            }
            tokio::time::sleep(BETWEEN_CLEARINGS).await;
        }
    }

    /// Writes to the ledger and retries without end: no action is allowed without a durable record, and a repetition
    /// with the same records changes nothing. The oldest finished transitions are deleted in exchange for others.
    ///
    /// # Errors
    /// When the role was lost. Nothing is written then.
    pub(crate) async fn write(&self, changes: JournalChanges) -> Result<(), RoleLost> {
        if changes.put.is_empty() && changes.delete.is_empty() {
            return Ok(());
        }
        let (now, listed) = (clock::now(), self.listed.lock().clone());
        let write = move |draft: &mut Draft<'_, PowerTransition>,
                          JournalChanges { put: changed, delete }: JournalChanges| {
            let finishes = changed.iter().any(|transition| !is_open(transition));
            delete.iter().for_each(|id| draft.delete(id));
            changed.into_iter().for_each(|transition| put(draft, transition));
            if finishes {
                clear(draft, listed.as_deref(), now);
            }
        };
        let ended: Vec<_> = changes.put.iter().filter(|one| counters::has_ended(one)).cloned().collect();
        let recorded: Vec<_> = changes.put.iter().map(|transition| transition.delivery).collect();
        self.insist(move || {
            let changes = changes.clone();
            let write = write.clone();
            move |draft: &mut Draft<'_, PowerTransition>| write(draft, changes)
        })
        .await?;
        ended.iter().for_each(|transition| counters::count(transition, now));
        passed(recorded);
        Ok(())
    }

    /// Records transitions that begin, without members that are in another open transition: no action is requested for
    /// a node before the outcome of the last one is known. Returns the transitions as they are on record.
    ///
    /// # Errors
    /// When the role was lost. Nothing is written then.
    pub(crate) async fn begin(
        &self,
        transitions: Vec<PowerTransition>,
    ) -> Result<Vec<PowerTransition>, RoleLost> {
        let begun = self.insist(move || {
            let transitions = transitions.clone();
            move |draft: &mut Draft<'_, PowerTransition>| {
                let ours: HashSet<_> = transitions.iter().map(|transition| transition.id.clone()).collect();
                let open = draft.select(|one| is_open(one) && !ours.contains(&one.id));
                let busy: HashSet<&str> =
                    open.iter().flat_map(|one| &one.members).map(|member| member.id.as_str()).collect();
                let mut begun = Vec::with_capacity(transitions.len());
                for mut transition in transitions {
                    transition.members.retain(|member| !busy.contains(member.id.as_str()));
                    if !transition.members.is_empty() {
                        draft.put(transition.clone());
                        begun.push(transition);
                    }
                }
                begun
            }
        });
        let begun = begun.await?;
        passed(begun.iter().map(|transition| transition.delivery));
        Ok(begun)
    }

    async fn insist<A, F>(&self, change: impl Fn() -> F) -> Result<A, RoleLost>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, PowerTransition>) -> A + Send + 'static,
    {
        let mut failures = 0;
        loop {
            let change = change();
            match self.ledger.write_fenced(self.term.fence(), move |draft| Ok(change(draft))).await {
                Ok((answer, _)) => return Ok(answer),
                Err(Fault::Stale { .. }) => return Err(RoleLost),
                Err(fault) => {
                    failures += 1;
                    self.term.make_progress();
                    tracing::debug!(%fault, failures, "cannot write transitions, trying again");
                    tokio::time::sleep(pause::after(failures)).await;
                }
            }
        }
    }
}

/// Records the state of a transition, unless the transition is over on record: a write that was retried, or that waited for
/// a report, may arrive after the end. Marks of an operator on it are kept.
fn put(draft: &mut Draft<'_, PowerTransition>, mut transition: PowerTransition) {
    if let Some(held) = draft.get(&transition.id) {
        if is_open(&transition) && !is_open(&held) {
            return;
        }
        transition.abandoned_at = held.abandoned_at.or(transition.abandoned_at);
        transition.abandoned_by.clone_from(&held.abandoned_by);
    }
    draft.put(transition);
}

/// Deletes surplus finished transitions. Any replica may do so, because no replica changes a finished transition any
/// more.
fn clear(draft: &mut Draft<'_, PowerTransition>, listed: Option<&HashSet<String>>, now: Timestamp) {
    let finished = draft.select(|transition| !is_open(transition));
    surplus(finished, listed, now).iter().for_each(|id| draft.delete(id));
}

/// Passes the failpoints of these durable steps.
fn passed(steps: impl IntoIterator<Item = TransitionDelivery>) {
    for delivery in steps {
        failpoint::pass(format_args!("transition.{}", convert::delivery_name(delivery)));
    }
}

/// Returns whether the transition may still change the upstream, or holds its nodes there.
pub(crate) fn is_open(transition: &PowerTransition) -> bool {
    match transition.delivery {
        TransitionDelivery::Prepared
        | TransitionDelivery::Sent
        | TransitionDelivery::Unknown
        | TransitionDelivery::Accepted => true,
        TransitionDelivery::Unspecified | TransitionDelivery::Refused | TransitionDelivery::Finished => false,
    }
}

#[cfg(test)]
mod tests;
