//! Reads the states of the configuration upstream: by requests, and by listening for pushes.
//!
//! Pushes and polls for changes are for speed. They may get lost, so they are not relied on: as long as configuration
//! decides about a node, the upstream is asked about it again at long intervals.

use std::{sync::Arc, time::Duration};

use chassis::{
    observe::{beat::PollBeats, mirror::Mirror, outage::OutageTimer, work::WorkQueue},
    process::pause,
};
use domain::{
    boot::{component::Component, configuration},
    core::id::ComponentId,
};
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep};

use crate::{
    claims::{ClaimAnswer, WorkClaims},
    follow::FollowedComponents,
    observe::{ConfigurationObserver, ObserveError, QueryReason},
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

/// State of the connection for pushes.
#[derive(Default)]
struct PushConnection {
    /// Breaks since the last message.
    failures: u32,
    /// Time without a connection.
    outage: OutageTimer,
    /// Whether the earlier states count as unknown on record.
    lost: bool,
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
    /// time before the start is a gap too.
    pub(crate) async fn listen(&self) {
        let mut connection = PushConnection::default();
        loop {
            let began = Instant::now();
            let Err(error) = self.listen_once(&mut connection).await else { return };
            if connection.failures == 0 {
                tracing::warn!(%error, "configuration changes are not heard of, listening again");
            }
            if connection.outage.is_too_long(began, Instant::now()) && !connection.lost {
                connection.lost = self.lose_all(&error).await;
            }
            connection.failures += 1;
            sleep(pause::after(connection.failures)).await;
        }
    }

    /// Requests all states again after each loss of commits, without end.
    pub(crate) async fn recover_losses(&self) {
        let mut losses = std::pin::pin!(self.observer.states.view().losses());
        while losses.next().await.is_some() {
            tracing::warn!("the database has lost configuration states, reading all of them again");
            self.observer.may_have_missed();
            self.observer.withdraw_inherited().await;
            self.claims.end_rests(Instant::now());
            self.queue.mark(self.components.enabled());
        }
    }

    /// Listens until the stream breaks. Returns `Ok` if the upstream has no stream.
    async fn listen_once(&self, connection: &mut PushConnection) -> Result<(), ObserveError> {
        let messages = self.observer.upstream.watch().await?;
        (connection.outage, connection.lost) = (OutageTimer::default(), false);
        self.observer.may_have_missed();
        self.queue.mark(self.components.enabled());
        match messages {
            Some(messages) => self.take(messages, &mut connection.failures).await,
            None => Ok(()),
        }
    }

    /// Stores pushes until the stream breaks, or until one could not be stored: that is a gap too.
    async fn take(
        &self,
        messages: impl Stream<Item = Result<Vec<NamedObservation>, Failure>> + Unpin,
        failures: &mut u32,
    ) -> Result<(), ObserveError> {
        let mut messages = messages.ready_chunks(MESSAGES);
        while let Some(together) = messages.next().await {
            let said = together.into_iter().collect::<Result<Vec<_>, _>>()?;
            self.observer.told(said.into_iter().flatten().collect()).await?;
            *failures = 0;
        }
        Ok(())
    }

    /// Withdraws the states of all components, which may have changed unnoticed. Returns whether that is on record.
    async fn lose_all(&self, why: &ObserveError) -> bool {
        let ObserveError::Upstream(failure) = why else { return false };
        let enabled: Vec<_> = self.components.enabled().collect();
        let lost = self.observer.lose(&self.observer.query_about(&enabled), failure).await;
        if let Err(fault) = &lost {
            tracing::warn!(%fault, "the silence of the configuration upstream is not recorded");
        }
        lost.is_ok()
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
