//! Finds out what became of transitions whose answer was lost.
//!
//! A transition is recognised by its action and its nodes. When the upstream took it, by its clock, says only where to
//! look first: before a call is made again, all that the upstream has on record is looked through. An upstream that has
//! forgotten what it took, as one does that loses its records when it restarts, is asked again: nobody can tell
//! that from a call that never arrived.

use std::collections::HashSet;

use chassis::{convert::time, lease::Fence};
use domain::{
    evaluation::WAITING_FOR,
    power,
    time::{SKEW, Timestamp},
};
use proto::power::{Delivery, Transition};
use tokio::time::Instant;

use crate::{
    act::Actor,
    convert,
    deliver::give_way,
    driver::{Accepted, Failure, Search},
    journal::Lost,
    plan::{self, Ours, Trace},
};

/// What the upstream has on record.
struct Records {
    accepted: Vec<Accepted>,
    /// The upstream's ids of those that were ours before it was asked.
    known: HashSet<String>,
}

impl Actor {
    /// Looks for transitions in the upstream. What is found was accepted; what is not found after a quiet
    /// period is sent again as the same attempt; `power::next_look` says how long that is.
    pub(crate) async fn resolve(&self, transitions: Vec<Transition>, fence: &Fence) {
        let looked_at = Instant::now();
        let since = transitions.iter().map(earliest).min().unwrap_or_default();
        match self.find(&transitions, since).await {
            Ok(records) => {
                for transition in transitions {
                    let (id, fence) = (transition.id.clone(), fence.of(&transition.id));
                    give_way(&id, self.conclude(transition, &records, looked_at, &fence).await);
                }
            }
            Err(failure) => {
                tracing::warn!(error = %failure, "cannot look for transitions in doubt, trying again");
                transitions.iter().for_each(|transition| self.postpone(transition));
            }
        }
    }

    /// What the upstream has on record since then and may be one of these.
    async fn find(&self, transitions: &[Transition], since: Timestamp) -> Result<Records, Failure> {
        let all = self.journal.all();
        let ids = |one: &Transition| Some(one.upstream_id.clone()).filter(|id| !id.is_empty());
        let search = Search {
            since,
            actions: transitions.iter().filter_map(convert::action).collect(),
            sizes: transitions.iter().map(|transition| transition.members.len()).collect(),
            known: all.iter().filter_map(|one| ids(one)).collect(),
        };
        let accepted = self.driver.find(&search, self.known.upstream_deadline()).await?;
        Ok(Records { accepted, known: search.known })
    }

    async fn conclude(
        &self,
        transition: Transition,
        records: &Records,
        looked_at: Instant,
        fence: &Fence,
    ) -> Result<(), Lost> {
        let Some(transition) = self.adopt(transition, records, fence).await? else { return Ok(()) };
        let (since, caller) = self.notes.doubt(&transition.id, looked_at);
        let look = power::next_look(caller, self.known.upstream_deadline(), looked_at.duration_since(since));
        if let Some(pause) = look {
            self.queues.undelivered.mark_at(transition.id.as_str().into(), looked_at + pause);
            return Ok(());
        }
        // The clock of the upstream may be any.
        let records = match self.find(std::slice::from_ref(&transition), Timestamp(i64::MIN)).await {
            Ok(records) => records,
            Err(failure) => {
                tracing::warn!(transition = transition.id, error = %failure, "cannot look for it, trying again");
                self.postpone(&transition);
                return Ok(());
            }
        };
        let Some(transition) = self.adopt(transition, &records, fence).await? else { return Ok(()) };
        tracing::info!(transition = transition.id, "transition did not arrive, sending it again");
        self.notes.no_longer_in_doubt(&transition.id);
        let id = transition.id.as_str().into();
        let error = Some(self.notes.shown(&transition.id)).filter(|text| text.starts_with(WAITING_FOR));
        let again = Transition {
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            error: error.unwrap_or_default(),
            ..transition
        };
        self.journal.put(again, fence).await?;
        self.queues.undelivered.mark([id]);
        Ok(())
    }

    /// Goes on with a transition that the upstream took, or may have taken; gives back one that it does not know.
    async fn adopt(
        &self,
        transition: Transition,
        records: &Records,
        fence: &Fence,
    ) -> Result<Option<Transition>, Lost> {
        let before = self.upstream_ids_with_nodes_of(&transition);
        let ours = Ours { known: &records.known, before: &before };
        match plan::trace(&transition, &records.accepted, &ours) {
            Trace::Found(upstream_id) => {
                self.accepted(transition, upstream_id, fence).await?;
                Ok(None)
            }
            Trace::Perhaps if self.may_still_show(&transition) => {
                self.postpone(&transition);
                Ok(None)
            }
            Trace::Perhaps | Trace::Missing => Ok(Some(transition)),
        }
    }

    /// No node is in two transitions at a time, so all others with nodes of this one were over when it began.
    fn upstream_ids_with_nodes_of(&self, transition: &Transition) -> HashSet<String> {
        let nodes: HashSet<&str> = transition.members.iter().map(|member| member.id.as_str()).collect();
        let all = self.journal.all().into_iter();
        let shares = |one: &Transition| one.members.iter().any(|member| nodes.contains(member.id.as_str()));
        let others = all.filter(|one| !one.upstream_id.is_empty() && shares(one));
        others.map(|one| one.upstream_id.clone()).collect()
    }

    /// Whether an upstream that took the transition may still be working out what it was asked for.
    fn may_still_show(&self, transition: &Transition) -> bool {
        !power::gives_up(convert::sent_at(transition), self.driver.task_deadline(), true, time::now())
    }
}

/// Where to look first: the time, by the upstream's clock, at which it can have taken the transition if the clocks agree.
fn earliest(transition: &Transition) -> Timestamp {
    let skew = i64::try_from(SKEW.as_millis()).unwrap_or(i64::MAX);
    Timestamp(convert::sent_at(transition).0.saturating_sub(skew))
}
