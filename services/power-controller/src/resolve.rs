//! Finds out what became of transitions whose answer was lost.

use std::{collections::HashSet, time::Duration};

use chassis::pause;
use domain::time::Timestamp;
use proto::power::{Delivery, Transition};
use tokio::time::Instant;

use crate::{
    act::{Actor, Changes, upstream_deadline},
    convert,
    driver::Accepted,
    plan,
};

/// How far the upstream's clock may be behind ours. Clocks of one site agree within milliseconds; seconds
/// cost nothing, since a match needs the same nodes too.
const SKEW: Duration = Duration::from_secs(5);

/// How long a call may still take effect in the upstream after we lost it. A call is handled within
/// milliseconds of its arrival, and one that is still on its way by then was lost with its connection.
const QUIET: Duration = Duration::from_secs(2);

impl Actor {
    /// Looks for transitions in the upstream. What is found was accepted; what is not found after a quiet
    /// period is sent again as the same attempt.
    pub(crate) async fn resolve(&self, transitions: Vec<Transition>) {
        let looked_at = Instant::now();
        let oldest = transitions.iter().map(earliest).min().unwrap_or_default();
        match self.driver.accepted_since(oldest, upstream_deadline(&self.options)).await {
            Ok(accepted) => {
                let taken = self.adopted();
                for transition in transitions {
                    let since = earliest(&transition);
                    let recent: Vec<_> = accepted.iter().filter(|one| one.at >= since).cloned().collect();
                    self.settle(transition, &recent, &taken, looked_at).await;
                }
            }
            Err(failure) => {
                tracing::warn!(error = %failure, "cannot look for transitions in doubt, trying again");
                transitions.iter().for_each(|transition| self.look_later(transition));
            }
        }
    }

    /// Ids of the upstream that are ours already.
    fn adopted(&self) -> HashSet<String> {
        self.transitions.view().all().iter().map(|one| one.upstream_id.clone()).collect()
    }

    fn look_later(&self, transition: &Transition) {
        let mut notes = self.notes.lock();
        let note = notes.entry(transition.id.clone()).or_default();
        note.failures += 1;
        let at = Instant::now() + pause::after(note.failures);
        self.undelivered.mark_at(transition.id.as_str().into(), at);
    }

    async fn settle(
        &self,
        transition: Transition,
        accepted: &[Accepted],
        taken: &HashSet<String>,
        looked_at: Instant,
    ) {
        if let Some(upstream_id) = plan::adopt(&transition, accepted, |id| taken.contains(id)) {
            return self.accepted(transition, upstream_id).await;
        }
        let quiet_at = self.unknown_since(&transition.id, looked_at) + QUIET;
        if looked_at < quiet_at {
            return self.undelivered.mark_at(transition.id.as_str().into(), quiet_at);
        }
        tracing::info!(transition = transition.id, "transition did not arrive, sending it again");
        if let Some(note) = self.notes.lock().get_mut(&transition.id) {
            note.unknown_since = None;
        }
        let id = transition.id.as_str().into();
        let again = Transition { delivery: Delivery::Prepared.into(), sent_at: None, ..transition };
        self.write(Changes { put: vec![again], delete: Vec::new() }).await;
        self.undelivered.mark([id]);
    }

    /// Since when a transition is in doubt; after a restart since the first look at it.
    fn unknown_since(&self, id: &str, looked_at: Instant) -> Instant {
        *self.notes.lock().entry(id.to_owned()).or_default().unknown_since.get_or_insert(looked_at)
    }
}

/// Earliest time by the upstream's clock at which it can have taken the transition.
fn earliest(transition: &Transition) -> Timestamp {
    let skew = i64::try_from(SKEW.as_millis()).unwrap_or(i64::MAX);
    Timestamp(convert::sent_at(transition).0.saturating_sub(skew))
}
