//! The durable record of what was asked of the upstream.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Fault, clock,
    convert::time,
    failpoint,
    lease::Fence,
    ledger::{Draft, Ledger},
    pause,
    resource::Batch,
};
use domain::core::time::Timestamp;
use futures_util::Stream;
use proto::power::{Delivery, Transition};

use crate::{convert, finished::surplus, store::Transitions};

/// How often old transitions are looked for where none finishes. They are kept for days.
const BETWEEN_CLEARINGS: Duration = Duration::from_secs(60 * 60);

/// The transition belongs to another replica by now, which goes on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another replica goes on with it")]
pub(crate) struct Lost;

/// All transitions: those under way, and the last ones that are not.
pub(crate) struct Journal {
    ledger: Ledger<Transitions>,
    /// Revision from which on changes are news.
    opened_at: u64,
}

/// Changes that belong together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) put: Vec<Transition>,
    pub(crate) delete: Vec<String>,
}

impl Journal {
    pub(crate) fn new(ledger: Ledger<Transitions>) -> Self {
        let journal = Self { opened_at: ledger.view().revision(), ledger };
        // Our clock may have been set back while nobody looked, and what was sent has its time from then on.
        if let Some(newest) = journal.all().iter().map(|one| convert::sent_at(one)).max() {
            clock::not_before(newest);
        }
        journal
    }

    /// Every transition, then every change, whichever replica made it.
    pub(crate) fn follow(&self) -> impl Stream<Item = Arc<Batch<Transition>>> + Send + use<> {
        self.ledger.follow()
    }

    /// Waits until everything is known that any replica has written until now, and gives its revision.
    pub(crate) async fn catch_up(&self) -> u64 {
        self.ledger.catch_up().await;
        self.ledger.view().revision()
    }

    /// Up to where everything was known when the journal was opened.
    pub(crate) fn opened_at(&self) -> u64 {
        self.opened_at
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

    /// Records how a transition stands.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn put(&self, transition: Transition, fence: &Fence) -> Result<(), Lost> {
        self.write(Changes { put: vec![transition], delete: Vec::new() }, fence).await
    }

    /// Records how a transition stands, unless something newer is on record, or another one is open of which one of its
    /// nodes is a member. Those that `returned` although they were over are not open.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn restore(
        &self,
        transition: &Transition,
        returned: &HashSet<String>,
        fence: &Fence,
    ) -> Result<(), Lost> {
        self.insist(fence, || {
            let (transition, returned) = (transition.clone(), returned.clone());
            move |draft: &mut Draft<'_, Transition>| {
                let is_newest =
                    draft.get(&transition.id).is_none_or(|held| held.revision <= transition.revision);
                let nodes: HashSet<&str> =
                    transition.members.iter().map(|member| member.id.as_str()).collect();
                let is_in_the_way = |one: &Transition| {
                    let mut members = one.members.iter();
                    is_open(one)
                        && one.id != transition.id
                        && !returned.contains(&one.id)
                        && members.any(|one| nodes.contains(one.id.as_str()))
                };
                if is_newest && draft.select(is_in_the_way).is_empty() {
                    draft.put(transition);
                }
            }
        })
        .await
    }

    /// Records a transition that is over, and what is left to be done of it. The oldest of its kind give way to it.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn close(
        &self,
        transition: Transition,
        left: Vec<Transition>,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let (recorded, now) = (transition.delivery(), clock::now());
        self.insist(fence, move || {
            let (transition, left) = (transition.clone(), left.clone());
            move |draft: &mut Draft<'_, Transition>| {
                put(draft, transition);
                left.into_iter().for_each(|left| draft.put(left));
                clear(draft, now);
            }
        })
        .await?;
        passed([recorded]);
        Ok(())
    }

    /// Deletes finished transitions when they were kept long enough, also where no others come, for ever.
    pub(crate) async fn keep_clear(&self) -> anyhow::Result<Infallible> {
        loop {
            let now = clock::now();
            let clear = move |draft: &mut Draft<'_, Transition>| {
                clear(draft, now);
                Ok(())
            };
            if let Err(fault) = self.ledger.write(clear).await {
                tracing::warn!(%fault, "finished transitions could not be deleted, trying again later");
            }
            tokio::time::sleep(BETWEEN_CLEARINGS).await;
        }
    }

    /// Writes to the ledger and does not give up: without a durable record nothing may be done, and with
    /// the same records a repetition changes nothing.
    ///
    /// # Errors
    /// When another replica goes on with them. Nothing is written then.
    pub(crate) async fn write(&self, changes: Changes, fence: &Fence) -> Result<(), Lost> {
        if changes.put.is_empty() && changes.delete.is_empty() {
            return Ok(());
        }
        let write = |draft: &mut Draft<'_, Transition>, Changes { put: changed, delete }: Changes| {
            delete.iter().for_each(|id| draft.delete(id));
            changed.into_iter().for_each(|transition| put(draft, transition));
        };
        let recorded: Vec<_> = changes.put.iter().map(Transition::delivery).collect();
        self.insist(fence, move || {
            let changes = changes.clone();
            move |draft: &mut Draft<'_, Transition>| write(draft, changes)
        })
        .await?;
        passed(recorded);
        Ok(())
    }

    /// Writes down transitions that begin, without the members of which another transition is open: whoever wrote that,
    /// nothing is asked of a node before it is known what became of the last thing. Gives the transitions as
    /// they are on record.
    ///
    /// # Errors
    /// When a member belongs to another replica by now. Nothing is written then.
    pub(crate) async fn begin(
        &self,
        transitions: Vec<Transition>,
        fence: &Fence,
    ) -> Result<Vec<Transition>, Lost> {
        let begun = self.insist(fence, move || {
            let transitions = transitions.clone();
            move |draft: &mut Draft<'_, Transition>| {
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
        passed(begun.iter().map(Transition::delivery));
        Ok(begun)
    }

    async fn insist<A, F>(&self, fence: &Fence, change: impl Fn() -> F) -> Result<A, Lost>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, Transition>) -> A + Send + 'static,
    {
        let mut failures = 0;
        loop {
            let change = change();
            match self.ledger.write_fenced(fence.clone(), move |draft| Ok(change(draft))).await {
                Ok((answer, _)) => return Ok(answer),
                Err(Fault::Stale { .. }) => return Err(Lost),
                Err(fault) => {
                    failures += 1;
                    tracing::debug!(%fault, failures, "cannot write transitions, trying again");
                    tokio::time::sleep(pause::after(failures)).await;
                }
            }
        }
    }
}

/// Records how a transition stands. What an operator has said of it meanwhile stays.
fn put(draft: &mut Draft<'_, Transition>, mut transition: Transition) {
    if let Some(held) = draft.get(&transition.id) {
        transition.abandoned_at = held.abandoned_at.or(transition.abandoned_at);
        transition.abandoned_by.clone_from(&held.abandoned_by);
    }
    draft.put(transition);
}

/// Marks a transition as given up by an operator, unless it is over or was given up before. Gives it as it is on record
/// from then on.
///
/// # Errors
/// When there is no such transition, or the database does not answer.
pub(crate) async fn abandon(
    ledger: &Ledger<Transitions>,
    id: String,
    request_id: String,
) -> Result<Transition, Fault> {
    let now = Some(time::to_wire(clock::now()));
    let write = ledger.write(move |draft| {
        let held = draft.get(&id).or_else(|| known_upstream(draft, &id));
        let held = held.ok_or_else(|| Fault::not_found("transition", &id))?;
        if !is_open(&held) || held.abandoned_at.is_some() {
            return Ok(Transition::clone(&held));
        }
        let given_up = Transition { abandoned_at: now, abandoned_by: request_id, ..Transition::clone(&held) };
        draft.put(given_up.clone());
        Ok(given_up)
    });
    write.await.map(|(transition, _)| transition)
}

/// The transition that the upstream has under this id, which is the one that people read in texts.
fn known_upstream(draft: &Draft<'_, Transition>, upstream_id: &str) -> Option<Arc<Transition>> {
    // One that was not sent has no such id.
    let named = draft.select(|one| !upstream_id.is_empty() && one.upstream_id == upstream_id);
    named.into_iter().max_by_key(|one| is_open(one))
}

/// Nobody changes a finished transition any more, so that any replica may delete it.
fn clear(draft: &mut Draft<'_, Transition>, now: Timestamp) {
    let finished = draft.select(|transition| !is_open(transition));
    surplus(finished, now).iter().for_each(|id| draft.delete(id));
}

/// A step of each of these transitions is durable.
fn passed(steps: impl IntoIterator<Item = Delivery>) {
    for delivery in steps {
        failpoint::pass(format_args!("transition.{}", delivery.as_str_name()));
    }
}

/// Whether the transition may still change something in the upstream, or holds its nodes there.
pub(crate) fn is_open(transition: &Transition) -> bool {
    match transition.delivery() {
        Delivery::Prepared | Delivery::Sent | Delivery::Unknown | Delivery::Accepted => true,
        Delivery::Unspecified | Delivery::Refused | Delivery::Finished => false,
    }
}

#[cfg(test)]
mod tests;
