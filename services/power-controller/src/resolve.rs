//! Finds out what became of transitions whose answer was lost.

use std::time::Duration;

use chassis::convert::time;
use domain::{evaluation::WAITING_FOR, power, time::Timestamp};
use proto::power::{Delivery, Transition};
use tokio::time::Instant;

use crate::{
    act::Actor,
    convert,
    driver::{Accepted, Search},
    plan::{self, Trace},
};

/// How far the upstream's clock may be behind ours, and how much coarser it may tell the time. Clocks of one site
/// agree within milliseconds; seconds cost nothing, since a match needs the same nodes too.
const SKEW: Duration = Duration::from_secs(5);

/// How long a call may still take effect in the upstream after we lost it. A call is handled within
/// milliseconds of its arrival, and one that is still on its way by then was lost with its connection.
const QUIET: Duration = Duration::from_secs(2);

impl Actor {
    /// Looks for transitions in the upstream. What is found was accepted; what is not found after a quiet
    /// period is sent again as the same attempt.
    pub(crate) async fn resolve(&self, transitions: Vec<Transition>) {
        let looked_at = Instant::now();
        let search = self.search(&transitions);
        match self.driver.find(&search, self.known.upstream_deadline()).await {
            Ok(accepted) => {
                for transition in transitions {
                    self.conclude(transition, &accepted, &search, looked_at).await;
                }
            }
            Err(failure) => {
                tracing::warn!(error = %failure, "cannot look for transitions in doubt, trying again");
                transitions.iter().for_each(|transition| self.postpone(transition));
            }
        }
    }

    fn search(&self, transitions: &[Transition]) -> Search {
        Search {
            since: transitions.iter().map(earliest).min().unwrap_or_default(),
            actions: transitions.iter().filter_map(convert::action).collect(),
            sizes: transitions.iter().map(|transition| transition.members.len()).collect(),
            known: self.journal.all().iter().map(|one| one.upstream_id.clone()).collect(),
        }
    }

    async fn conclude(
        &self,
        transition: Transition,
        accepted: &[Accepted],
        search: &Search,
        looked_at: Instant,
    ) {
        let taken = |id: &str| search.known.contains(id);
        match plan::trace(&transition, earliest(&transition), accepted, taken) {
            Trace::Found(upstream_id) => return self.accepted(transition, upstream_id).await,
            Trace::Perhaps if self.may_still_show(&transition) => return self.postpone(&transition),
            Trace::Perhaps | Trace::Missing => {}
        }
        let quiet_at = self.notes.unknown_since(&transition.id, looked_at) + QUIET;
        if looked_at < quiet_at {
            return self.queues.undelivered.mark_at(transition.id.as_str().into(), quiet_at);
        }
        tracing::info!(transition = transition.id, "transition did not arrive, sending it again");
        self.notes.no_longer_unknown(&transition.id);
        let id = transition.id.as_str().into();
        let error = Some(self.notes.shown(&transition.id)).filter(|text| text.starts_with(WAITING_FOR));
        let again = Transition {
            delivery: Delivery::Prepared.into(),
            sent_at: None,
            error: error.unwrap_or_default(),
            ..transition
        };
        self.journal.put(again).await;
        self.queues.undelivered.mark([id]);
    }

    /// Whether an upstream that took the transition may still be working out what it was asked for.
    fn may_still_show(&self, transition: &Transition) -> bool {
        !power::gives_up(convert::sent_at(transition), self.driver.task_deadline(), true, time::now())
    }
}

/// Earliest time by the upstream's clock at which it can have taken the transition.
fn earliest(transition: &Transition) -> Timestamp {
    let skew = i64::try_from(SKEW.as_millis()).unwrap_or(i64::MAX);
    Timestamp(convert::sent_at(transition).0.saturating_sub(skew))
}
