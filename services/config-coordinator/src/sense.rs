//! Reads the states of the configuration upstream: by requests, and by listening for pushes.
//!
//! Pushes and polls for changes are for speed. They may get lost, so they are not relied on: as long as configuration
//! decides about a node, the upstream is asked about it again at long intervals.

use std::{pin::pin, sync::Arc, time::Duration};

use chassis::{
    Fault,
    observe::{
        beat::PollBeats,
        freshness::BEAT,
        listen::{PushEvent, listen},
        mirror::Mirror,
        work::WorkQueue,
    },
    process::pause::{self, FailureStreak},
};
use domain::{
    boot::{component::Component, configuration},
    core::id::ComponentId,
};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use crate::{
    claims::{ClaimAnswer, WorkClaims},
    follow::FollowedComponents,
    observe::{ConfigurationObserver, QueryReason},
    rounds,
    upstream::{Failure, configuration::NamedObservation},
};

/// Messages that are stored together when they arrive faster than they can be stored. A message is usually about one
/// node, and a commit of a thousand takes as long as one of a single message.
const MESSAGES: usize = 1000;

/// Components in one round: a whole machine, so that one fetch answers for all of them.
const BATCH: usize = 20_000;

/// Keeps the known configuration of enabled components fresh.
pub(crate) struct ConfigurationPoller {
    observer: Arc<ConfigurationObserver>,
    components: Mirror<Component>,
    /// Components that may have to be requested.
    queue: WorkQueue<ComponentId>,
    /// Claims by the reason of the request.
    claims: Arc<WorkClaims<QueryReason>>,
    /// Components whose configuration decides about them.
    followed: Arc<FollowedComponents>,
    /// Moments of the audits, which are the same for all components.
    beats: PollBeats,
}

impl ConfigurationPoller {
    pub(crate) fn new(
        observer: Arc<ConfigurationObserver>,
        components: Mirror<Component>,
        queue: WorkQueue<ComponentId>,
        claims: Arc<WorkClaims<QueryReason>>,
        followed: Arc<FollowedComponents>,
    ) -> Self {
        Self { observer, components, queue, claims, followed, beats: PollBeats::new(Instant::now()) }
    }

    /// Queues components that may have to be requested.
    pub(crate) fn mark(&self, ids: &[ComponentId]) {
        self.queue.mark(ids.iter().cloned());
    }

    /// Requests the states of queued components, without end.
    pub(crate) async fn ask(&self) {
        rounds::run(&self.queue, BATCH, Duration::ZERO, |ids| self.round(ids)).await;
    }

    /// Listens for changes without end, if the upstream pushes any. After every gap all states are requested once; the
    /// time before the start is a gap too, and so is a push that could not be stored.
    pub(crate) async fn listen(&self) {
        let connect = || async {
            let pushes = self.observer.upstream.watch().await?;
            Ok(pushes.map_or_else(|| stream::pending().left_stream(), StreamExt::right_stream))
        };
        let mut pushes = pin!(listen("configurations", connect).ready_chunks(MESSAGES));
        let mut failures = FailureStreak::default();
        while let Some(together) = pushes.next().await {
            let Err(fault) = self.take(together).await else {
                failures.end();
                continue;
            };
            if failures.add() {
                tracing::warn!(%fault, "pushed configurations are not stored, requesting all of them again");
            }
            sleep(failures.pause()).await;
            self.request_all();
        }
    }

    /// Withdraws all states after a sleep of the process or a loss of commits, and requests them again, without end. Until
    /// then no decision rests on them.
    pub(crate) async fn notice_gaps(&self) {
        let mut losses = pin!(self.observer.states.view().losses());
        loop {
            if self.observer.is_out_of_date() {
                tracing::warn!(
                    "configuration states are of before a gap or a loss, reading all of them again"
                );
                self.observer.withdraw_all().await;
                self.claims.end_rests(Instant::now());
                self.request_all();
            }
            self.observer.freshness.beat();
            tokio::select! {
                Some(()) = losses.next() => {}
                () = sleep(BEAT) => {}
            }
        }
    }

    /// Stores pushes that arrived together. Those from before a break are about states that are requested again.
    async fn take(&self, pushes: Vec<PushEvent<Vec<NamedObservation>, Failure>>) -> Result<(), Fault> {
        let mut said = Vec::new();
        for push in pushes {
            match push {
                PushEvent::Pushed(observations) => said.extend(observations),
                PushEvent::Began => {
                    said.clear();
                    self.request_all();
                }
                PushEvent::Lost(failure) => {
                    said.clear();
                    self.lose_all(&failure).await;
                }
            }
        }
        if said.is_empty() { Ok(()) } else { self.observer.told(said).await }
    }

    /// Requests the states of all components, which may have changed unnoticed.
    fn request_all(&self) {
        self.observer.may_have_missed();
        self.queue.mark(self.components.enabled());
    }

    /// Withdraws the states of all components, which may have changed unnoticed. The write is retried until it is on
    /// record.
    async fn lose_all(&self, why: &Failure) {
        let enabled: Vec<_> = self.components.enabled().collect();
        let batch = self.observer.query_about(&enabled);
        let note = |fault, _| {
            tracing::warn!(%fault, "the silence of the configuration upstream is not recorded, trying again");
        };
        pause::until_done(|| self.observer.lose(&batch, why), note).await;
    }

    async fn round(&self, ids: Vec<ComponentId>) {
        let due = self.due(ids);
        if due.is_empty() {
            return;
        }
        let _turn = self.observer.term.turn("read configurations");
        let outcome = self.observer.look(&due).await;
        if let Err(error) = &outcome {
            error.log();
        }
        let failed: Vec<_> = due.iter().filter(|id| !self.settle(id, outcome.is_ok())).collect();
        self.claims.again(failed, Instant::now());
        self.queue.mark(due);
    }

    /// Schedules the next request for a component; returns false if it has to be tried again soon.
    fn settle(&self, id: &ComponentId, answered: bool) -> bool {
        let now = Instant::now();
        match self.observer.need(id) {
            None => self.claims.release(id),
            Some(_) if !answered => return false,
            Some(QueryReason::Audit { .. }) => self.claims.rest(id, self.next_audit(now)),
            Some(QueryReason::Evidence { .. }) if self.observer.is_missing(id) => {
                // The return of the node is not pushed, and finding out may take a fetch of everything: one fetch
                // serves all missing nodes.
                self.claims.rest(id, self.beats.next(now, self.least()));
            }
            Some(QueryReason::Evidence { .. }) => return false,
        }
        true
    }

    /// Returns those of `ids` that have to be requested now. The others need no request, or are queued for later.
    fn due(&self, ids: Vec<ComponentId>) -> Vec<ComponentId> {
        let now = Instant::now();
        let mut due = Vec::new();
        for id in ids {
            self.followed.see(&id, self.observer.weight(&id), now.into_std());
            let Some(need) = self.observer.need(&id) else {
                self.claims.idle(&id);
                self.queue.unmark(&id);
                continue;
            };
            let earliest = match need {
                QueryReason::Evidence { .. } => now,
                // A new state is not requested again at once just because all others are due.
                QueryReason::Audit { .. } => self.next_audit(now + self.least()),
            };
            match self.claims.claim_from(&id, need, earliest, now) {
                ClaimAnswer::Granted => due.push(id),
                ClaimAnswer::Early(at) => self.queue.mark_at(id, at),
                // The round that works on the component queues it at its end.
                ClaimAnswer::Busy | ClaimAnswer::Done => {}
            }
        }
        due
    }

    /// Returns the next moment of the audits. It is the same for all components, so that one fetch serves them all,
    /// however many are added one by one.
    fn next_audit(&self, now: Instant) -> Instant {
        self.beats.next(now, configuration::audit_period(self.least(), self.followed.count()))
    }

    /// Returns the least time between audits.
    fn least(&self) -> Duration {
        self.observer.options.in_force().polling_period()
    }
}
