//! Polls nodes whose configuration is awaited for changes, where no upstream pushes any.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use chassis::{observe::work::WorkQueue, process::pause::FailureStreak};
use domain::core::{
    id::ComponentId,
    looks::{Arrivals, Look, Pace},
};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{self, sleep, sleep_until},
};

use crate::observe::{AnswerWeight, ConfigurationObserver, PollYield};

/// Components whose configuration decides about them, and those whose configuration is awaited.
#[derive(Default)]
pub(crate) struct FollowedComponents {
    members: Mutex<FollowedSets>,
    come: Notify,
}

#[derive(Default)]
struct FollowedSets {
    decided: BTreeSet<ComponentId>,
    awaited: BTreeSet<ComponentId>,
    /// Components added since the last poll.
    came: Option<Arrivals>,
    /// Time of the last addition to or removal from the awaited components.
    stirred: Option<Instant>,
}

impl FollowedComponents {
    /// Notes the weight of a component's configuration.
    pub(crate) fn see(&self, id: &ComponentId, weight: AnswerWeight, now: Instant) {
        let mut members = self.members.lock();
        if weight == AnswerWeight::None {
            members.decided.remove(id);
        } else if !members.decided.contains(id) {
            members.decided.insert(id.clone());
        }
        if weight != AnswerWeight::Awaited {
            members.leave(id, now);
        } else if !members.awaited.contains(id) {
            members.come(id.clone(), now);
            self.come.notify_one();
        }
    }

    /// Returns the number of components whose configuration decides about them.
    pub(crate) fn count(&self) -> usize {
        self.members.lock().decided.len()
    }

    /// Returns when to poll next; `None`: no component is awaited.
    fn due(&self, pace: &Pace) -> Option<Instant> {
        let members = self.members.lock();
        (!members.awaited.is_empty()).then(|| pace.next(members.came, members.stirred))
    }

    /// Returns all awaited components for a poll. Later additions count as added since this poll.
    fn awaited(&self) -> Vec<ComponentId> {
        let mut members = self.members.lock();
        members.came = None;
        members.awaited.iter().cloned().collect()
    }
}

impl FollowedSets {
    fn come(&mut self, id: ComponentId, now: Instant) {
        self.awaited.insert(id);
        let before = self.came.unwrap_or(Arrivals { first: now, last: now, count: 0 });
        self.came = Some(Arrivals { last: now, count: before.count + 1, ..before });
        self.stirred = Some(now);
    }

    fn leave(&mut self, id: &ComponentId, now: Instant) {
        if self.awaited.remove(id) {
            self.stirred = Some(now);
            if self.awaited.is_empty() {
                self.came = None;
            }
        }
    }
}

/// Poller of changes.
pub(crate) struct ChangePoller {
    pub(crate) observer: Arc<ConfigurationObserver>,
    pub(crate) followed: Arc<FollowedComponents>,
    /// Queue for components that are not awaited any more, or whose state is needed again.
    pub(crate) queue: WorkQueue<ComponentId>,
}

impl ChangePoller {
    /// Polls for changes without end. Returns at once if the upstream pushes changes.
    pub(crate) async fn run(&self) {
        let Some(least) = self.observer.upstream.poll_period() else { return };
        let (mut last, mut failures) = (Look::none(now()), FailureStreak::default());
        loop {
            let most = self.observer.options.in_force().polling_period();
            self.wait(&Pace { least, most, last }).await;
            let ids = self.followed.awaited();
            let began = now();
            let outcome = self.observer.follow(&ids).await;
            let ended = now();
            let PollYield { pages, brought } = outcome.as_ref().copied().unwrap_or_default();
            last = Look { ended, took: ended - began, pages, brought };
            self.queue.mark(ids.into_iter().filter(|id| self.observer.weight(id) != AnswerWeight::Awaited));
            match outcome {
                Ok(_) => {
                    failures.end();
                }
                Err(error) => {
                    error.log();
                    failures.add();
                    sleep(failures.pause()).await;
                }
            }
        }
    }

    /// Waits until the next poll is due.
    async fn wait(&self, pace: &Pace) {
        loop {
            let come = self.followed.come.notified();
            match self.followed.due(pace) {
                None => come.await,
                Some(at) if at <= now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at.into()) => {}
                    () = come => {}
                },
            }
        }
    }
}

/// Returns the time of the runtime, which a test or a simulation may control.
fn now() -> Instant {
    time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::core::looks::MOMENT;

    use super::*;

    #[test]
    fn those_who_went_again_are_not_waited_for() {
        let (followed, start) = (FollowedComponents::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let [one, other] = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        let (least, most) = (Duration::from_secs(2), Duration::from_secs(15));
        let pace = Pace { least, most, last: Look::none(at(0)) };
        followed.see(&one, AnswerWeight::Awaited, at(10));
        followed.see(&one, AnswerWeight::None, at(20));
        assert_eq!((followed.count(), followed.due(&pace)), (0, None));
        followed.see(&other, AnswerWeight::Awaited, at(100));
        assert_eq!(followed.due(&pace), Some(at(100) + MOMENT));
    }

    #[test]
    fn who_is_configured_is_counted_and_not_looked_at() {
        let (followed, start) = (FollowedComponents::default(), Instant::now());
        let [one, other] = ["x1", "x2"].map(|id| ComponentId::parse(id).unwrap());
        for id in [&one, &other] {
            followed.see(id, AnswerWeight::Awaited, start);
        }
        followed.see(&one, AnswerWeight::Known, start);
        assert_eq!((followed.count(), followed.awaited()), (2, vec![other.clone()]));
        followed.see(&other, AnswerWeight::Known, start);
        assert_eq!((followed.count(), followed.awaited()), (2, vec![]));
        followed.see(&one, AnswerWeight::None, start);
        followed.see(&other, AnswerWeight::Awaited, start);
        assert_eq!((followed.count(), followed.awaited()), (1, vec![other]));
    }
}
