//! Learning what the configuration upstream says: by asking, and by listening to those who tell of changes.
//!
//! What is told, or found by looking for changes, makes things quick. It may get lost, so it is not relied on: as
//! long as configuration decides about a node, the upstream is asked about it again and again, at leisure.

use std::{sync::Arc, time::Duration};

use chassis::{mirror::Mirror, pause, work::WorkQueue};
use domain::{
    boot::{component::Component, configuration},
    core::id::ComponentId,
};
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep};

use crate::{
    claims::{Answer, Claims},
    follow::{Followed, Stake},
    observe::{Need, ObserveError, Observer},
    rounds,
    silence::Silence,
    upstream::{Failure, configuration::Said},
};

/// Messages that are stored together when they come faster than they can be stored. A message has one node
/// as a rule, and a commit takes as long for a thousand as for one.
const MESSAGES: usize = 1000;

/// Components in one round: a whole machine, so that one fetch answers for all of them.
const BATCH: usize = 20_000;

/// Keeps what is known about the configuration of enabled components fresh.
pub(crate) struct Sensor {
    observer: Arc<Observer>,
    components: Mirror<Component>,
    /// Components that may have to be asked about.
    queue: WorkQueue<ComponentId>,
    /// By why it is being asked.
    claims: Arc<Claims<Need>>,
    /// Components about which configuration decides.
    followed: Arc<Followed>,
    /// All of those are asked about at the same moments, counted from here.
    start: Instant,
}

/// How it went to listen.
#[derive(Default)]
struct Link {
    /// Breaks since something was heard.
    failures: u32,
    /// Since nobody could be listened to.
    silence: Silence,
    /// What was known before counts as unknown on record.
    lost: bool,
}

impl Sensor {
    pub(crate) fn new(
        observer: Arc<Observer>,
        components: Mirror<Component>,
        queue: WorkQueue<ComponentId>,
        claims: Arc<Claims<Need>>,
        followed: Arc<Followed>,
    ) -> Self {
        Self { observer, components, queue, claims, followed, start: Instant::now() }
    }

    /// What was found out about components that come or go is old, and those that came are asked about.
    pub(crate) fn hand_over(&self, ids: &[ComponentId]) {
        self.observer.hand_over(ids);
        ids.iter().for_each(|id| self.claims.idle(id));
        self.queue.mark(ids.iter().cloned());
    }

    /// Asks about components as they are marked, without end.
    pub(crate) async fn ask(&self) {
        rounds::run(&self.queue, BATCH, Duration::ZERO, |ids| self.round(ids)).await;
    }

    /// Listens for changes without end, if the upstream tells of any. After every gap everything is asked for
    /// once; the time before the start is a gap too.
    pub(crate) async fn listen(&self) {
        let mut link = Link::default();
        loop {
            let began = Instant::now();
            let Err(error) = self.listen_once(&mut link).await else { return };
            if link.failures == 0 {
                tracing::warn!(%error, "configuration changes are not heard of, listening again");
            }
            if link.silence.lasts(began, Instant::now()) && !link.lost {
                link.lost = self.lose_all(&error).await;
            }
            link.failures += 1;
            sleep(pause::after(link.failures)).await;
        }
    }

    /// Listens until the stream breaks. Ends well where there is none.
    async fn listen_once(&self, link: &mut Link) -> Result<(), ObserveError> {
        let messages = self.observer.upstream.watch().await?;
        (link.silence, link.lost) = (Silence::default(), false);
        self.observer.may_have_missed();
        self.queue.mark(self.components.enabled());
        match messages {
            Some(messages) => self.take(messages, &mut link.failures).await,
            None => Ok(()),
        }
    }

    /// Keeps what is heard until the stream breaks, or until something could not be kept: that is a gap too.
    async fn take(
        &self,
        messages: impl Stream<Item = Result<Vec<Said>, Failure>> + Unpin,
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

    /// What is known about everybody may have changed unheard. Gives whether that is on record.
    async fn lose_all(&self, why: &ObserveError) -> bool {
        let ObserveError::Upstream(failure) = why else { return false };
        let enabled: Vec<_> = self.components.enabled().collect();
        let lost = self.observer.lose(&self.observer.inquire(&enabled), failure).await;
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
        let outcome = self.observer.look(&due).await;
        if let Err(error) = &outcome {
            error.log();
        }
        let failed: Vec<_> = due.iter().filter(|id| !self.settle(id, outcome.is_ok())).collect();
        self.claims.again(failed, Instant::now());
        self.queue.mark(due);
    }

    /// Notes when a component is to be asked about next; gives false if it has to be tried again soon.
    fn settle(&self, id: &ComponentId, answered: bool) -> bool {
        let now = Instant::now();
        match self.observer.need(id) {
            None => self.claims.release(id),
            Some(_) if !answered => return false,
            Some(Need::Audit { .. }) => self.claims.rest(id, self.next_audit(now)),
            Some(Need::Evidence { .. }) if self.observer.is_missing(id) => {
                // Nobody tells when it is back, and finding out may take a fetch of everything: one does for all that
                // are missing.
                self.claims.rest(id, next_moment(self.start, self.least(), now));
            }
            Some(Need::Evidence { .. }) => return false,
        }
        true
    }

    /// Those of `ids` that have to be asked about now. The others need nothing, or are marked for later.
    fn due(&self, ids: Vec<ComponentId>) -> Vec<ComponentId> {
        let now = Instant::now();
        let mut due = Vec::new();
        for id in ids {
            // What comes to this replica is marked when it has been taken over.
            let ours = self.observer.custody.has(id.as_str());
            let stake = if ours { self.observer.stake(&id) } else { Stake::None };
            self.followed.see(&id, stake, now.into_std());
            let Some(need) = self.observer.need(&id).filter(|_| ours) else {
                self.claims.idle(&id);
                self.queue.unmark(&id);
                continue;
            };
            let earliest = match need {
                Need::Evidence { .. } => now,
                // What was learnt just now is not asked for again at once because everybody else is.
                Need::Audit { .. } => self.next_audit(now + self.least()),
            };
            match self.claims.claim_from(&id, need, earliest, now) {
                Answer::Granted => due.push(id),
                Answer::Early(at) => self.queue.mark_at(id, at),
                // The round that is at it marks the component when it ends.
                Answer::Busy | Answer::Done => {}
            }
        }
        due
    }

    /// The next moment at which components are asked about again. It is the same for everybody, so that one fetch
    /// does for all, however many begin to be followed one by one.
    fn next_audit(&self, now: Instant) -> Instant {
        next_moment(self.start, configuration::audit_period(self.least(), self.followed.count()), now)
    }

    /// Least time between audits.
    fn least(&self) -> Duration {
        self.observer.options.in_force().polling_period()
    }
}

/// The first moment after `now` that is a multiple of `period` away from `start`.
fn next_moment(start: Instant, period: Duration, now: Instant) -> Instant {
    let past = now.duration_since(start).as_nanos();
    let into = past.checked_rem(period.as_nanos()).unwrap_or_default();
    // Shorter than the period, which fits.
    now + period - Duration::from_nanos(u64::try_from(into).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_looks_at_the_same_moments() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        for (now, next) in [(0, 2000), (1, 2000), (1999, 2000), (2000, 4000), (7001, 8000)] {
            assert_eq!(next_moment(start, Duration::from_secs(2), at(now)), at(next), "{now}");
        }
    }
}
