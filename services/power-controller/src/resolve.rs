//! Searches the upstream for transitions whose answer was lost.
//!
//! A transition is recognised by its action, its nodes and the time at which the upstream took it, by the upstream's
//! clock as far as that was measured. A transition that began seconds before ours was sent belongs to another client. A
//! transition that began just before is undecidable, since our clock may have been ahead. An upstream that loses its
//! records when it restarts is asked again: that cannot be distinguished from a call that never arrived.

use std::time::Duration;

use chassis::process::clock;
use domain::{
    boot::power,
    core::{clock_offset::ClockOffset, refusal, time::Timestamp, trouble::TroubleKind},
};
use proto::power::{Delivery, Transition};
use tokio::time::Instant;

use crate::{
    act::Actor,
    convert,
    deliver::give_way,
    driver::{Accepted, Failure, Found, Search},
    journal::Lost,
    plan::{self, Trace, Window},
};

impl Actor {
    /// Searches the upstream for transitions. A transition that is found was accepted; one that is not found after a
    /// quiet period is sent again as the same attempt; `power::next_look` has the length of the period.
    pub(crate) async fn resolve(&self, transitions: Vec<Transition>) {
        let looked_at = Instant::now();
        match self.find(&transitions, looked_at).await {
            Ok(found) => {
                if let Some(failures) = self.engine.lock().searches.ends() {
                    tracing::info!(failures, "transitions in doubt can be looked for again");
                }
                for transition in transitions {
                    let id = transition.id.clone();
                    give_way(&id, self.conclude(transition, &found, looked_at).await);
                }
            }
            Err(failure) => {
                if self.engine.lock().searches.begins() {
                    tracing::warn!(error = %failure, "cannot look for transitions in doubt, trying again");
                } else {
                    tracing::debug!(error = %failure, "still cannot look for transitions in doubt");
                }
                for transition in &transitions {
                    self.engine.lock().transitions.look_failed(&transition.id);
                    self.postpone(transition);
                }
            }
        }
    }

    /// Returns the upstream's transitions that may be one of these.
    async fn find(&self, transitions: &[Transition], looked_at: Instant) -> Result<Found, Failure> {
        let windows = || transitions.iter().map(|one| self.window(one, looked_at, None));
        let all = self.journal.all();
        let is_known = |one: &Transition| {
            !one.upstream_id.is_empty()
                && (one.delivery() == Delivery::Finished
                    || self.engine.lock().transitions.is_read_back(&one.id))
        };
        let search = Search {
            from: windows().map(|window| window.earliest()).min().unwrap_or_default(),
            until: windows().map(|window| window.until).max().unwrap_or_default(),
            actions: transitions.iter().filter_map(convert::action).collect(),
            sizes: transitions.iter().map(|transition| transition.members.len()).collect(),
            known: all.iter().filter(|one| is_known(one)).map(|one| one.upstream_id.clone()).collect(),
        };
        self.driver.find(&search, self.known.upstream_deadline()).await
    }

    /// Returns the time in which the upstream can have taken a transition in doubt: from the moment at which its call
    /// was recorded until its caller was gone for good.
    fn window(&self, transition: &Transition, looked_at: Instant, clock: Option<ClockOffset>) -> Window {
        let (since, caller) = self.engine.lock().transitions.doubt(&transition.id, looked_at.into_std());
        let last = power::last_look(caller, self.known.upstream_deadline());
        let until = Timestamp(clock::now().0 - millis(since.elapsed())).plus(last);
        Window { from: convert::earliest(transition), until, clock }
    }

    async fn conclude(&self, transition: Transition, found: &Found, looked_at: Instant) -> Result<(), Lost> {
        let Some(transition) = self.adopt(transition, found, looked_at).await? else { return Ok(()) };
        let (since, caller) = self.engine.lock().transitions.doubt(&transition.id, looked_at.into_std());
        let look = power::next_look(
            caller,
            self.known.upstream_deadline(),
            looked_at.into_std().duration_since(since),
        );
        if let Some(pause) = look {
            self.queues.undelivered.mark_at(transition.id.as_str().into(), looked_at + pause);
            return Ok(());
        }
        if transition.accepted_at.is_some() {
            let error = "the upstream took it and does not know it any more";
            return self.end_unless_held(transition, error).await;
        }
        if self.engine.lock().transitions.doubt_recurs(&transition.id) {
            tracing::debug!(transition = transition.id, "transition did not arrive again, sending it again");
        } else {
            tracing::info!(transition = transition.id, "transition did not arrive, sending it again");
        }
        self.engine.lock().transitions.no_longer_in_doubt(&transition.id);
        let id = transition.id.as_str().into();
        let shown = self
            .engine
            .lock()
            .transitions
            .shown(&transition.id)
            .filter(|shown| shown.kind() == TroubleKind::Waiting);
        let again = Transition {
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            ..convert::with_trouble(transition, shown.as_ref())
        };
        self.journal.put(again).await?;
        self.queues.undelivered.mark([id]);
        Ok(())
    }

    /// Ends a transition that the upstream took, or may have taken, and does not show any more. A clock that was set
    /// may hide it from the search, so it stays open as long as the upstream works on a transition that holds one of
    /// its nodes.
    async fn end_unless_held(&self, transition: Transition, error: &str) -> Result<(), Lost> {
        let ids = transition.members.iter().map(|member| member.id.clone()).collect();
        match self.driver.holders(&ids, self.known.upstream_deadline()).await {
            Ok(holders) if holders.is_empty() => {
                self.holders_known();
                self.end(transition, error).await
            }
            Ok(_) => {
                self.holders_known();
                let at =
                    Instant::now() + refusal::pause(self.engine.lock().transitions.failed(&transition.id));
                self.queues.undelivered.mark_at(transition.id.as_str().into(), at);
                Ok(())
            }
            Err(failure) => {
                self.holders_unknown(transition.members.len(), &failure);
                self.postpone(&transition);
                Ok(())
            }
        }
    }

    /// Logs that holders of nodes cannot be searched for.
    pub(crate) fn holders_unknown(&self, nodes: usize, failure: &Failure) {
        if self.engine.lock().holder_searches.begins() {
            tracing::warn!(nodes, %failure, "cannot look for who holds nodes");
        } else {
            tracing::debug!(nodes, %failure, "still cannot look for who holds nodes");
        }
    }

    /// Logs that holders of nodes can be searched for again.
    pub(crate) fn holders_known(&self) {
        if let Some(failures) = self.engine.lock().holder_searches.ends() {
            tracing::info!(failures, "who holds nodes can be looked for again");
        }
    }

    /// Continues a transition that the upstream took, or may have taken; returns one that the upstream does not know.
    async fn adopt(
        &self,
        transition: Transition,
        found: &Found,
        looked_at: Instant,
    ) -> Result<Option<Transition>, Lost> {
        let window = self.window(&transition, looked_at, found.clock);
        let is_claimed = |one: &Accepted| self.is_claimed(one, &transition.id);
        match plan::trace(&transition, &found.accepted, &window, is_claimed) {
            Trace::Found(upstream_id) => {
                self.accepted(transition, upstream_id).await?;
                Ok(None)
            }
            Trace::Perhaps => {
                self.postpone(&transition);
                Ok(None)
            }
            // Its owner cannot be determined, so it is not touched; its effect on the power shows when it is over.
            Trace::Undated { id, open: true } => {
                tracing::debug!(
                    transition = transition.id,
                    upstream_id = id,
                    "waiting for one that may be ours"
                );
                let at =
                    Instant::now() + refusal::pause(self.engine.lock().transitions.failed(&transition.id));
                self.queues.undelivered.mark_at(transition.id.as_str().into(), at);
                Ok(None)
            }
            Trace::Undated { id, open: false } => {
                let error = format!("transition {id} of the upstream may have been this one, and is over");
                self.end_unless_held(transition, &error).await?;
                Ok(None)
            }
            Trace::Missing => Ok(Some(transition)),
        }
    }

    /// Returns whether another transition of ours with the same request was taken under the id. A transition with a
    /// different request has the id by mistake, and a poll will show that.
    fn is_claimed(&self, accepted: &Accepted, id: &str) -> bool {
        self.journal.all().iter().any(|one| {
            one.id != id
                && one.upstream_id == accepted.id
                && convert::action(one) == accepted.action
                && convert::sorted_ids(one) == accepted.ids
        })
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
